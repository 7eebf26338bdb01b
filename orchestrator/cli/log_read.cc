// The commands that only look: show, query, export, retest, records.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <ostream>

#include "base/json.h"
#include "base/output.h"
#include "orchestrator/cli/log_command.h"
#include "orchestrator/cli/log_options.h"
#include "orchestrator/cli/log_text.h"
#include "orchestrator/cli/records.h"
#include "results_log/jsonl.h"
#include "results_log/retest.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

Result<Store> Reading(const LogOptions& options) {
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFile(options.log));
  return Store::OpenReadOnly(file);
}

// The newer entries that took this one's place, "e26 e27".
Result<std::string> ReplacedBy(Store* store, const Entry& entry) {
  EntryFilter filter;
  filter.target = entry.target;
  filter.superseded = true;
  CRUCIBLE_ASSIGN(const auto entries, store->QueryEntries(filter));
  Texts ids;
  for (const Entry& other : entries)
    if (other.supersedes == entry.key || other.split_from == entry.key)
      ids.push_back(fmt::format("e{}", other.id));
  return fmt::format("{}", fmt::join(ids, " "));
}

}  // namespace

Result<int> ShowOfLog(const LogOptions& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const Entry entry, store.FindEntry(options.id));
  CRUCIBLE_ASSIGN(const std::string replaced_by, ReplacedBy(&store, entry));
  if (options.as_json)
    out << Dump(WithId(entry)) << "\n";
  else
    PrintEntry(entry, out);
  if (!options.as_json && !replaced_by.empty())
    fmt::print(out, "  {:<12} {}\n", "replaced by", replaced_by);
  return 0;
}

Result<int> QueryLog(const LogOptions& options, std::ostream& out) {
  EntryFilter filter;
  filter.cases = options.cases;
  for (const std::string& name : options.kinds) {
    const auto kind = EntryKindFromText(name);
    if (!kind)
      return Fail(ErrorKind::kUsage, "query log", "", fmt::format("--kind {} is unknown", name),
                  "kinds: win, loss, null, inconclusive, refused, crashed, note, floor");
    filter.kinds.push_back(*kind);
  }
  filter.target = options.target;
  filter.campaign = options.campaign;
  filter.mission = options.mission;
  filter.mechanism = options.mechanism;
  filter.author = options.author;
  filter.text = options.text;
  filter.superseded = options.superseded;
  filter.limit = options.limit;
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(filter));
  json list = json::array();
  for (const Entry& entry : entries) {
    if (options.as_json)
      list.push_back(WithId(entry));
    else
      out << Row(entry) << "\n";
  }
  if (options.as_json)
    out << Dump(list) << "\n";
  else if (entries.empty())
    out << "no entry matches\n";
  return 0;
}

Result<int> ExportLog(const LogOptions& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const std::string text, ExportLines(&store, {.events = options.events}));
  if (options.file.empty() || options.file == "-")
    out << text;
  else
    CRUCIBLE_TRY(WriteOutput(options.file, text));
  return 0;
}

Result<int> RetestsOfLog(const LogOptions& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const std::string target, OnlyTarget(&store, options.target));
  CRUCIBLE_ASSIGN(const Conditions now,
                  ConditionsToday(&store, target, options.cases, options.now));
  EntryFilter filter;
  filter.target = target;
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(filter));
  json list = json::array();
  for (const Retest& retest : FindRetests(entries, options.cases, now)) {
    json changed = json::array();
    for (const ChangedCondition& item : retest.changed)
      changed.push_back({{"field", item.field}, {"then", item.then}, {"now", item.now}});
    list.push_back({{"entry", WithId(retest.entry)}, {"changed", changed}});
    if (!options.as_json)
      fmt::print(out, "{}\n       changed: {}\n       it said: {}\n", Row(retest.entry),
                 Describe(retest.changed),
                 retest.entry.reason.empty() ? retest.entry.summary : retest.entry.reason);
  }
  if (options.as_json) {
    out << Dump(list) << "\n";
    return 0;
  }
  Texts today;
  for (const auto& [field, value] : now)
    if (MattersForRetest(field)) today.push_back(field + " = " + value);
  if (list.empty())
    out << "nothing is up for a retest\n";
  else
    fmt::print(out, "{} up for a retest\n", list.size());
  fmt::print(out, "today: {}\n",
             today.empty() ? "no conditions are known; name them with --now FIELD=VALUE"
                           : fmt::format("{}", fmt::join(today, "; ")));
  return 0;
}

Result<int> RecordsOfLog(const LogOptions& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const auto points, store.Points(options.target));
  EntryFilter measurements;
  measurements.target = options.target;
  measurements.kinds = {EntryKind::kNote};
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(measurements));
  const json records = RecordsOf(points, entries);
  out << (options.as_json ? Dump(records) + "\n" : RecordsText(records));
  return 0;
}

}  // namespace crucible
