#include "orchestrator/agents/tools/duplicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/json.h"
#include "orchestrator/agents/tools/bounded.h"
#include "results_log/retest.h"

namespace crucible {
namespace {

using nlohmann::json;
using Params = std::map<std::string, std::string>;

constexpr std::size_t kLongestReason = 300;

std::string Normal(const std::string& text) {
  std::string normal;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80)
      normal.push_back(static_cast<char>(std::tolower(byte)));
    else if (!normal.empty() && normal.back() != ' ')
      normal.push_back(' ');
  }
  while (!normal.empty() && normal.back() == ' ') normal.pop_back();
  return normal;
}

// [before, after] and "after" set the same thing.
Params ParamsOf(const json& object) {
  Params params;
  if (!object.is_object()) return params;
  for (const auto& [name, value] : object.items()) {
    const json& after = value.is_array() && value.size() == 2 ? value[1] : value;
    params[Normal(name)] = after.is_string() ? Normal(after.get<std::string>()) : JsonText(after);
  }
  return params;
}

// An entry says what it set under "params" or "knobs"; one of a person's is the object itself.
Params ParamsOf(const Entry& entry) {
  json change = json::parse(entry.change, nullptr, false);
  if (!change.is_object()) return {};
  for (const char* key : {"params", "knobs"})
    if (change.contains(key)) return ParamsOf(change[key]);
  for (const char* key : {"tree", "against", "description", "diff", "scoped", "repaired"})
    change.erase(key);
  return ParamsOf(change);
}

std::string TextAt(const Entry& entry, const char* key) {
  const json change = json::parse(entry.change, nullptr, false);
  if (!change.is_object() || !change.contains(key) || !change[key].is_string()) return "";
  return change[key].get<std::string>();
}

bool Same(const Entry& entry, const Experiment& experiment, const Params& params) {
  if (!experiment.tree.empty() && TextAt(entry, "tree") == experiment.tree &&
      TextAt(entry, "against") == experiment.against)
    return true;
  return !experiment.mechanism.empty() && Normal(entry.mechanism) == Normal(experiment.mechanism) &&
         ParamsOf(entry) == params;
}

}  // namespace

const Entry* FindRejection(const std::vector<Entry>& entries, const Experiment& experiment,
                           const Conditions& now, const std::vector<std::string>& retry) {
  const std::set<std::string> replaced = ReplacedKeys(entries);
  const Params params = ParamsOf(json::parse(experiment.params, nullptr, false));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (!IsRejection(entry->kind) || entry->conflated || replaced.contains(entry->key)) continue;
    if (std::find(retry.begin(), retry.end(), entry->key) != retry.end()) continue;
    if (!Concerns(*entry, experiment.cases) || !ChangedSince(entry->conditions, now).empty())
      continue;
    if (Same(*entry, experiment, params)) return &*entry;
  }
  return nullptr;
}

std::string Citation(const Entry& entry) {
  std::string text = fmt::format(
      "{} {}: {}", entry.id > 0 ? fmt::format("[e{}]", entry.id) : fmt::format("[{}]", entry.key),
      entry.mechanism, ToText(entry.kind));
  if (!entry.summary.empty()) text += "; " + Shorten(entry.summary, kLongestReason);
  if (!entry.reason.empty()) text += ": " + Shorten(entry.reason, kLongestReason);
  return text;
}

}  // namespace crucible
