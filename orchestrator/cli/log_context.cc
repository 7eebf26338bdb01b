// Where the log is, and what its commands take for granted: its target, today's conditions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/json.h"
#include "base/paths.h"
#include "orchestrator/cli/log_command.h"
#include "results_log/retest.h"

namespace crucible {

using nlohmann::json;
using Texts = std::vector<std::string>;

Result<std::filesystem::path> LogFile(const std::string& given) {
  if (!given.empty()) return std::filesystem::path(given);
  CRUCIBLE_ASSIGN(const std::filesystem::path here, CurrentFolder());
  CRUCIBLE_ASSIGN(const std::filesystem::path home, CrucibleHome(here));
  return home / "log.sqlite";
}

Result<std::vector<std::pair<std::string, std::string>>> NamedValues(const std::string& option,
                                                                     const Texts& words) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return Fail(ErrorKind::kUsage, "read " + option, word, "it is not NAME=VALUE",
                  fmt::format("for example {} compiler='gcc 12.2'", option));
    values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return values;
}

Result<std::string> OnlyTarget(Store* store, const std::string& given) {
  if (!given.empty()) return given;
  CRUCIBLE_ASSIGN(const auto entries, store->QueryEntries({}));
  std::set<std::string> targets;
  for (const Entry& entry : entries)
    if (!entry.target.empty()) targets.insert(entry.target);
  if (targets.size() > 1)
    return Fail(ErrorKind::kUsage, "choose target", "",
                fmt::format("the log has {}", fmt::join(targets, ", ")), "name one with --target");
  return targets.empty() ? std::string() : *targets.begin();
}

Result<Conditions> ConditionsToday(Store* store, const std::string& target, const Texts& cases,
                                   const Texts& overrides) {
  CRUCIBLE_ASSIGN(const std::string text, store->Meta("conditions:" + target));
  const json known = json::parse(text, nullptr, false);
  Conditions said;
  if (known.is_object())
    for (const auto& [field, value] : known.items())
      if (value.is_string()) said[field] = value.get<std::string>();
  EntryFilter filter;
  filter.target = target;
  CRUCIBLE_ASSIGN(const auto entries, store->QueryEntries(filter));
  Conditions now = ConditionsFromLog(entries, cases, said);
  CRUCIBLE_ASSIGN(const auto given, NamedValues("--now", overrides));
  for (const auto& [field, value] : given) now[field] = value;
  return now;
}

}  // namespace crucible
