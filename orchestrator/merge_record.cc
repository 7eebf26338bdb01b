#include "orchestrator/merge_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/clock.h"
#include "missions/states.h"
#include "orchestrator/agents/case_numbers.h"
#include "results_log/landing.h"

namespace crucible {
namespace {

constexpr char kAuthor[] = "orchestrator";

std::string LandedText(JudgeReport report) {
  std::erase_if(report.cases, [](const CaseResult& result) { return result.role != "claim"; });
  return CaseNumbers(report);
}

}  // namespace

Result<> MergeRecord::Begin() {
  MoveState(row_.id, &row_.state, "merging");
  row_.merge_commit.clear();
  return store_.PutMission(row_);
}

Result<> MergeRecord::BeforeMove(const std::string& commit) {
  row_.merge_commit = commit;
  return store_.PutMission(row_);
}

Result<Integration> MergeRecord::Reject(const JudgeReport& report) {
  if (!report.first_failed_check.empty())
    return Refuse("check_failed", EntryKind::kRefused,
                  "the full check of the merged tree failed: " + report.first_failed_check,
                  &report);
  // Its results were right in the checks and wrong where it was timed.
  if (report.verdict == "check_failed")
    return Refuse("check_failed", EntryKind::kRefused, report.reason, &report);
  if (report.verdict == "flagged") return Hold("flagged", report.reason);
  if (report.verdict == "inconclusive" || report.verdict == "refused")
    return Refuse("inconclusive", EntryKind::kInconclusive, report.reason, &report);
  if (report.verdict == "crashed")
    return Refuse("check_failed", EntryKind::kCrashed, report.reason, &report);
  for (const CaseResult& result : report.cases)
    if (result.role == "ratchet" && result.verdict == "rejected")
      return Refuse("ratchet_failed", EntryKind::kLoss, report.reason, &report);
  return Refuse("not_faster", EntryKind::kNull, report.reason, &report);
}

Result<Integration> MergeRecord::Hold(const std::string& outcome, const std::string& text) {
  MoveState(row_.id, &row_.state, "ended");
  row_.merge_outcome = outcome;
  CRUCIBLE_TRY(store_.PutMission(row_));
  Event("merge", fmt::format("{}: {}: {}; `crucible mission approve {}` lets it in", order_.id,
                             outcome, text, order_.id));
  return Integration{outcome, text};
}

Result<Integration> MergeRecord::Refuse(const std::string& outcome, EntryKind kind,
                                        const std::string& text, const JudgeReport* report) {
  Entry entry = MergeEntry(report);
  entry.kind = kind;
  entry.summary = fmt::format("merge of {} {}", order_.id, outcome);
  entry.reason = text;
  MoveState(row_.id, &row_.state, "done");
  row_.merge_outcome = outcome;
  row_.merge_commit.clear();
  CRUCIBLE_TRY(store_.InTransaction([&]() -> Result<> {
    CRUCIBLE_TRY(store_.AddEntry(entry));
    return store_.PutMission(row_);
  }));
  Event("merge", fmt::format("{}: {}: {}", order_.id, outcome, text));
  return Integration{outcome, text};
}

// One transaction: the entry, the points and records, the mission's end.
Result<Integration> MergeRecord::Land(const JudgeReport& report,
                                      const std::set<std::string>& short_of_record) {
  Entry entry = MergeEntry(&report);
  entry.kind = EntryKind::kWin;
  entry.landed = true;
  entry.summary = LandedText(report);
  entry.reason = report.reason;
  entry.evidence.push_back({"merge_commit", row_.merge_commit, ""});
  CRUCIBLE_ASSIGN(const std::vector<Entry> wins, store_.QueryEntries(Kept()));
  const std::vector<Point> points = PointsOfLanding(entry, row_.merge_commit, short_of_record);
  MoveState(row_.id, &row_.state, "done");
  row_.merge_outcome = "landed";
  CRUCIBLE_TRY(store_.InTransaction([&]() -> Result<> {
    CRUCIBLE_TRY(store_.AddEntry(entry));
    CRUCIBLE_TRY(store_.AddPoints(points));
    for (const Entry& win : wins) CRUCIBLE_TRY(store_.MarkLanded(win.key));
    return store_.PutMission(row_);
  }));
  Event("landed", fmt::format("{} landed as {}: {}", order_.id, row_.merge_commit.substr(0, 12),
                              entry.summary));
  return Integration{"landed", entry.summary};
}

Entry MergeRecord::MergeEntry(const JudgeReport* report) {
  Entry entry;
  entry.key = order_.key_prefix + ".merge";
  entry.time_ms = SystemClock().UnixMs();
  entry.target = target_;
  entry.campaign = order_.campaign;
  entry.mission = order_.id;
  entry.author = kAuthor;
  entry.flavour = order_.flavour;
  entry.mechanism = Mechanisms();
  entry.hypothesis = "what the mission kept holds on the merged tree";
  entry.conditions = order_.now;
  if (report != nullptr) {
    for (const auto& [name, value] : report->conditions) entry.conditions[name] = value;
    entry.cases = report->cases;
    entry.evidence = report->evidence;
    entry.margins = report->margins;
  }
  if (entry.cases.empty())
    for (const std::string& name : order_.cases)
      entry.cases.push_back({.name = name, .role = "claim", .verdict = "not_measured"});
  entry.evidence.push_back({"commit", row_.best_commit, ""});
  entry.evidence.push_back({"base_commit", order_.base_commit, ""});
  return entry;
}

// What the mission's own experiments had kept, and the merge's entry once it landed.
EntryFilter MergeRecord::Kept() const {
  EntryFilter filter;
  filter.mission = order_.id;
  filter.campaign = order_.campaign;
  filter.kinds = {EntryKind::kWin};
  return filter;
}

std::string MergeRecord::Mechanisms() {
  const auto wins = store_.QueryEntries(Kept());
  std::vector<std::string> names;
  if (wins)
    for (const Entry& win : *wins)
      if (win.author != kAuthor &&
          std::find(names.begin(), names.end(), win.mechanism) == names.end())
        names.push_back(win.mechanism);
  return names.empty() ? "merge" : fmt::format("{}", fmt::join(names, " + "));
}

std::string MergeRecord::MergeMessage() {
  return fmt::format("Merge {}: {}\n\nMission {} of campaign {}, cases {}.\n", order_.id,
                     Mechanisms(), order_.id, order_.campaign, fmt::join(order_.cases, ", "));
}

void MergeRecord::Event(const std::string& kind, const std::string& text) {
  (void)store_.AddEvent(order_.campaign, order_.id, kind, text);
  fmt::print(stderr, "{} {}\n", FormatUtc(SystemClock().UnixMs()), text);
}

}  // namespace crucible
