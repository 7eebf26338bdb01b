// The commands that only look: show, query, export, retest, records.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "base/counted.h"
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

constexpr int kUsualRows = 20;

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

// How many rejections were looked at and what became of them, so that "nothing" can be believed.
std::string SurveyText(const RetestSurvey& survey, const std::string& target, const Texts& cases) {
  const int up = static_cast<int>(survey.retests.size());
  const int all =
      up + survey.holding + survey.settled + survey.replaced + survey.without_conditions;
  const std::string of =
      fmt::format("{}{}", target.empty() ? "" : " of " + target,
                  cases.empty() ? "" : fmt::format(", {}", fmt::join(cases, " or ")));
  if (all == 0)
    return fmt::format("nothing is up for a retest: no entry{} is a rejection or undecided\n", of);
  Texts became;
  const auto add = [&](int count, const char* what) {
    if (count > 0) became.push_back(fmt::format("{} {}", count, what));
  };
  add(survey.holding, "whose conditions are not known to have changed");
  add(survey.replaced, "replaced by a newer entry");
  add(survey.settled, "won or measured again since");
  add(survey.without_conditions, "without any conditions");
  return fmt::format(
      "{} up for a retest; looked at {}{}{}\n", up == 0 ? "nothing is" : std::to_string(up),
      Counted(all, "rejection or undecided result", "rejections or undecided results"), of,
      became.empty() ? "" : fmt::format(": {}", fmt::join(became, ", ")));
}

}  // namespace

Result<int> ShowOfLog(const LogOptions& options, std::ostream& out, std::ostream&) {
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

Result<int> QueryLog(const LogOptions& options, std::ostream& out, std::ostream& err) {
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
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(auto entries, store.QueryEntries(filter));
  std::reverse(entries.begin(), entries.end());  // newest first, however many
  const auto limit =
      static_cast<std::size_t>(options.limit.value_or(options.as_json ? 0 : kUsualRows));
  const std::size_t cut = limit > 0 && entries.size() > limit ? entries.size() - limit : 0;
  entries.resize(entries.size() - cut);
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
  if (cut > 0) fmt::print(err, "({} more: --limit 0)\n", cut);
  return 0;
}

Result<int> ExportLog(const LogOptions& options, std::ostream& out, std::ostream&) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const std::string text, ExportLines(&store, {.events = options.events}));
  if (options.file.empty() || options.file == "-") {
    out << text;  // JSON in itself
    return 0;
  }
  CRUCIBLE_TRY(WriteOutput(options.file, text));
  if (options.as_json)
    out << Dump({{"file", options.file}, {"lines", std::count(text.begin(), text.end(), '\n')}})
        << "\n";
  return 0;
}

Result<int> RetestsOfLog(const LogOptions& options, std::ostream& out, std::ostream&) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const std::string target, OnlyTarget(&store, options.target, options.cases));
  CRUCIBLE_ASSIGN(const Conditions now,
                  ConditionsToday(&store, target, options.cases, options.now));
  EntryFilter filter;
  filter.target = target;
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(filter));
  json list = json::array();
  const RetestSurvey survey = SurveyRetests(entries, options.cases, now);
  for (const Retest& retest : survey.retests) {
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
  out << SurveyText(survey, target, options.cases);
  fmt::print(out, "today: {}\n",
             today.empty() ? "no conditions are known; name them with --now FIELD=VALUE"
                           : fmt::format("{}", fmt::join(today, "; ")));
  return 0;
}

Result<int> RecordsOfLog(const LogOptions& options, std::ostream& out, std::ostream&) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  if (!options.target.empty()) CRUCIBLE_TRY(OnlyTarget(&store, options.target, {}));
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
