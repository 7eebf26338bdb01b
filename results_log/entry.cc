#include "results_log/entry.h"

#include <fmt/format.h>

#include <array>

#include "base/json.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<EntryKind, std::string_view>, 8> kKinds = {{
    {EntryKind::kWin, "win"},
    {EntryKind::kLoss, "loss"},
    {EntryKind::kNull, "null"},
    {EntryKind::kInconclusive, "inconclusive"},
    {EntryKind::kRefused, "refused"},
    {EntryKind::kCrashed, "crashed"},
    {EntryKind::kNote, "note"},
    {EntryKind::kFloor, "floor"},
}};

template <class T>
void Put(json* object, const char* key, const std::optional<T>& value) {
  if (value) (*object)[key] = *value;
}

template <class T>
void Get(const json& object, const char* key, T* value) {
  if (const auto found = object.find(key); found != object.end()) found->get_to(*value);
}

template <class T>
void Get(const json& object, const char* key, std::optional<T>* value) {
  if (const auto found = object.find(key); found != object.end() && !found->is_null())
    *value = found->get<T>();
}

json CaseJson(const CaseResult& result) {
  json object = {{"name", result.name}, {"role", result.role}, {"verdict", result.verdict}};
  Put(&object, "before_us", result.before_us);
  Put(&object, "after_us", result.after_us);
  Put(&object, "ratio", result.ratio);
  Put(&object, "ratio_low", result.ratio_low);
  Put(&object, "ratio_high", result.ratio_high);
  Put(&object, "rounds", result.rounds);
  return object;
}

CaseResult CaseFrom(const json& object) {
  CaseResult result;
  object.at("name").get_to(result.name);
  Get(object, "role", &result.role);
  Get(object, "verdict", &result.verdict);
  Get(object, "before_us", &result.before_us);
  Get(object, "after_us", &result.after_us);
  Get(object, "ratio", &result.ratio);
  Get(object, "ratio_low", &result.ratio_low);
  Get(object, "ratio_high", &result.ratio_high);
  Get(object, "rounds", &result.rounds);
  return result;
}

}  // namespace

std::string_view ToText(EntryKind kind) {
  for (const auto& [value, text] : kKinds)
    if (value == kind) return text;
  CRUCIBLE_CHECK(false, "every kind has a text");
  return {};
}

std::optional<EntryKind> EntryKindFromText(std::string_view text) {
  for (const auto& [value, name] : kKinds)
    if (name == text) return value;
  return std::nullopt;
}

json ToJson(const Entry& entry) {
  json cases = json::array(), evidence = json::array();
  for (const CaseResult& result : entry.cases) cases.push_back(CaseJson(result));
  for (const Evidence& item : entry.evidence)
    evidence.push_back({{"kind", item.kind}, {"ref", item.ref}, {"sha256", item.sha256}});
  json margins = json::object(), worst = json::object();
  for (const auto& [gate, margin] : entry.margins) {
    margins[gate] = margin.value;
    if (margin.known())
      worst[gate] = {{"check", margin.check}, {"matrix", margin.matrix}, {"seed", margin.seed}};
  }
  json change = json::parse(entry.change.empty() ? "{}" : entry.change, nullptr, false);
  if (change.is_discarded()) change = entry.change;
  json object = {{"key", entry.key},
                 {"kind", ToText(entry.kind)},
                 {"time_ms", entry.time_ms},
                 {"target", entry.target},
                 {"campaign", entry.campaign},
                 {"mission", entry.mission},
                 {"author", entry.author},
                 {"flavour", entry.flavour},
                 {"mechanism", entry.mechanism},
                 {"hypothesis", entry.hypothesis},
                 {"summary", entry.summary},
                 {"reason", entry.reason},
                 {"change", change},
                 {"cases", cases},
                 {"conditions", entry.conditions},
                 {"evidence", evidence},
                 {"margins", margins},
                 {"landed", entry.landed},
                 {"conflated", entry.conflated},
                 {"supersedes", entry.supersedes},
                 {"split_from", entry.split_from}};
  if (!worst.empty()) object["worst"] = worst;
  return object;
}

Result<Entry> EntryFromJson(const json& object) {
  try {
    Entry entry;
    object.at("key").get_to(entry.key);
    const std::string kind = object.at("kind").get<std::string>();
    const auto known = EntryKindFromText(kind);
    if (!known)
      return Fail(ErrorKind::kUsage, "read entry", entry.key,
                  fmt::format("its kind '{}' is unknown", kind),
                  "kinds: win, loss, null, inconclusive, refused, crashed, note, floor");
    entry.kind = *known;
    object.at("time_ms").get_to(entry.time_ms);
    for (const auto& [name, field] : {std::pair{"target", &entry.target},
                                      {"campaign", &entry.campaign},
                                      {"mission", &entry.mission},
                                      {"author", &entry.author},
                                      {"flavour", &entry.flavour},
                                      {"mechanism", &entry.mechanism},
                                      {"hypothesis", &entry.hypothesis},
                                      {"summary", &entry.summary},
                                      {"reason", &entry.reason},
                                      {"supersedes", &entry.supersedes},
                                      {"split_from", &entry.split_from}})
      Get(object, name, field);
    if (const auto change = object.find("change"); change != object.end())
      entry.change = change->is_string() ? change->get<std::string>() : change->dump();
    if (const auto cases = object.find("cases"); cases != object.end())
      for (const json& item : *cases) entry.cases.push_back(CaseFrom(item));
    Get(object, "conditions", &entry.conditions);
    if (const auto evidence = object.find("evidence"); evidence != object.end())
      for (const json& item : *evidence)
        entry.evidence.push_back({item.at("kind").get<std::string>(),
                                  item.at("ref").get<std::string>(),
                                  item.value("sha256", std::string())});
    if (const auto margins = object.find("margins"); margins != object.end())
      for (const auto& [gate, value] : margins->items()) entry.margins[gate] = value.get<double>();
    if (const auto worst = object.find("worst"); worst != object.end())
      for (const auto& [gate, item] : worst->items()) {
        Margin& margin = entry.margins[gate];
        item.at("check").get_to(margin.check);
        item.at("matrix").get_to(margin.matrix);
        item.at("seed").get_to(margin.seed);
      }
    Get(object, "landed", &entry.landed);
    Get(object, "conflated", &entry.conflated);
    return entry;
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kUsage, "read entry", object.is_object() ? object.value("key", "") : "",
                error.what(), "docs/log_format.md has an example");
  }
}

}  // namespace crucible
