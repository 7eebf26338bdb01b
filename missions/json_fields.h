// json_fields.h: plain data to JSON and back by one list of its fields, so that writing and reading
// cannot disagree: a template EachField(data, field) calls field("name", data.name) for each.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace crucible {

inline auto PutInto(nlohmann::json& object) {
  return [&object](const char* name, const auto& value) { object[name] = value; };
}

// Throws the library's exception on a field that is missing or of another type: for ReadFields.
inline auto GetFrom(const nlohmann::json& object) {
  return [&object](const char* name, auto& value) { object.at(name).get_to(value); };
}

// What `read` makes of it, or kUsage with the field in the library's words.
template <class Read>
auto ReadFields(const std::string& what, const std::string& next, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorKind::kUsage, "read", what, error.what(), next);
  }
}

}  // namespace crucible
