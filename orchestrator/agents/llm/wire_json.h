// wire_json.h: careful reads of JSON that somebody else wrote. For .cc files only: it is heavy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "orchestrator/agents/llm/message.h"

namespace crucible {

using Json = nlohmann::json;

// Discarded (is_discarded()) when malformed: no exception leaves.
inline Json ParseJson(const std::string& text) { return Json::parse(text, nullptr, false); }

// Bytes that are not UTF-8 (a tool printed them) become U+FFFD instead of an exception.
inline std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The member of an object, or null for anything else.
inline const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

inline std::string StringOf(const Json& object, const char* name) {
  const Json& value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// A whole number from 0 to 2^53, or nothing.
inline std::optional<std::int64_t> CountOf(const Json& object, const char* name) {
  const Json& value = Member(object, name);
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= 0 && number <= 9007199254740992.0)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// What a history sends for a tool call: always an object, because servers refuse anything else.
// Text that is no object is wrapped, so the model sees what it wrote.
inline Json ArgumentsObject(const std::string& text) {
  if (text.empty()) return Json::object();
  Json parsed = ParseJson(text);
  if (parsed.is_object()) return parsed;
  return Json{{"malformed_arguments", text}};
}

// The usage object of either format; fields that are absent keep their value. True if it said any.
bool ReadUsage(const Json& usage, Usage* into);

}  // namespace crucible
