#include "orchestrator/integrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/json.h"
#include "missions/states.h"
#include "orchestrator/agents/case_numbers.h"
#include "orchestrator/baseline.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/judge.h"
#include "orchestrator/repository.h"
#include "results_log/landing.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr char kAuthor[] = "orchestrator";
constexpr char kSignature[] = "crucible";
constexpr int kMovedMainTries = 3;

class Integrator {
 public:
  Integrator(MissionOrder order, Target target, Store store, Repository repository, MissionRow row)
      : order_(std::move(order)),
        target_(std::move(target)),
        store_(std::move(store)),
        repository_(std::move(repository)),
        row_(std::move(row)) {}

  Result<Integration> Run(bool approved) {
    MoveState(row_.id, &row_.state, "merging");
    row_.merge_commit.clear();
    CRUCIBLE_TRY(store_.PutMission(row_));
    CRUCIBLE_ASSIGN(const std::string foreign, ForeignPaths());
    if (!foreign.empty())
      return Refuse("protected_path", EntryKind::kRefused,
                    "it changes paths outside the mission: " + foreign);
    for (int i = 0; i < kMovedMainTries; ++i) {
      CRUCIBLE_ASSIGN(auto result, Attempt(approved));
      if (result) return *result;
      Event("merge", fmt::format("{}: main moved meanwhile, merging again", order_.id));
    }
    return Refuse("conflict", EntryKind::kInconclusive,
                  fmt::format("main moved {} times during the merge", kMovedMainTries));
  }

  Result<bool> FinishLanded() {
    if (row_.merge_commit.empty()) return false;
    std::string note;
    CRUCIBLE_TRY(repository_.FinishMove(&note));
    if (!note.empty()) Event("note", note);
    CRUCIBLE_ASSIGN(const std::string tip, repository_.MainTip());
    CRUCIBLE_ASSIGN(const bool landed, repository_.IsAncestor(row_.merge_commit, tip));
    if (!landed) return false;
    CRUCIBLE_ASSIGN(const JudgeReport report, ReadJudgeReport(order_.workspace, ReportFile()));
    CRUCIBLE_TRY(RecordLanding(report));
    return true;
  }

 private:
  std::filesystem::path ReportFile() const {
    return order_.workspace.Mission(order_.id) / "reports" / "gate.json";
  }

  Result<std::string> ForeignPaths() {
    CRUCIBLE_ASSIGN(const auto changes,
                    repository_.ChangedPaths(order_.base_commit, row_.best_commit));
    std::vector<std::string> foreign;
    for (const ChangedPath& change : changes)
      if (!IsEditable(target_, change.path)) foreign.push_back(change.path);
    return fmt::format("{}", fmt::join(foreign, ", "));
  }

  // Nothing: main moved between the gate and the swap, so the merged tree is not what was judged.
  Result<std::optional<Integration>> Attempt(bool approved) {
    CRUCIBLE_ASSIGN(const std::string tip, repository_.MainTip());
    CRUCIBLE_ASSIGN(const MergeOutcome merged,
                    repository_.Merge(tip, row_.best_commit, MergeMessage(), kSignature));
    if (merged.commit.empty())
      return Decided(Refuse("conflict", EntryKind::kRefused,
                            fmt::format("conflicts with main {} in {}", tip.substr(0, 12),
                                        fmt::join(merged.conflicts, ", "))));
    Event("merge", fmt::format("{}: building the merged tree", order_.id));
    const BaselineContext context{&order_.workspace, &target_, &repository_, order_.run_nonce};
    CRUCIBLE_ASSIGN(const Arm baseline, BaselineArm(context, tip));
    const auto candidate = BuildMerged(merged.commit, baseline);
    if (!candidate)
      return Decided(Refuse("build_failed", EntryKind::kCrashed, candidate.error().text));
    Event("merge",
          fmt::format("{}: full check, comparison and ratchet of the merged tree", order_.id));
    CRUCIBLE_ASSIGN(
        JudgeReport report,
        RunJudge(order_.workspace, RequestOf("gate", baseline, *candidate, order_.cases)));
    if (report.pass || report.verdict == "flagged")
      CRUCIBLE_TRY(RatchetAgainstRecords(context, tip, *candidate, &report));
    if (!report.pass && !(approved && report.verdict == "flagged")) return Decided(Reject(report));
    if (!approved && Held())
      return Decided(Hold("awaiting_approval", "passed the gate; the campaign asks a person"));
    row_.merge_commit = merged.commit;
    CRUCIBLE_TRY(store_.PutMission(row_));
    std::string note;
    const auto moved = repository_.MoveMain(tip, merged.commit, &note);
    if (!moved && moved.error().kind == ErrorKind::kConflict) return std::optional<Integration>();
    if (!moved) return tl::unexpected(moved.error());
    if (!note.empty()) Event("note", note);
    CRUCIBLE_TRY(RecordLanding(report));
    return std::optional(Integration{"landed", LandedText(report)});
  }

  static Result<std::optional<Integration>> Decided(Result<Integration> result) {
    if (!result) return tl::unexpected(result.error());
    return std::optional(std::move(*result));
  }

  bool Held() const {
    const json settings = json::parse(row_.settings, nullptr, false);
    return settings.is_object() && settings.value("approve", false);
  }

  Result<Arm> BuildMerged(const std::string& commit, const Arm& baseline) {
    const std::filesystem::path worktree = order_.workspace.Worktree("integration");
    CRUCIBLE_TRY(repository_.CheckoutDetached("integration", worktree, commit));
    BuildRequest request;
    request.target = &target_;
    request.arm.name = commit.substr(0, 12);
    request.arm.source = worktree;
    request.arm.main = baseline.main;
    request.arm.build = order_.workspace.Mission(order_.id) / "build-merged";
    request.programs = order_.workspace.programs;
    request.log = order_.workspace.Mission(order_.id) / "build-merged.log";
    request.environment = order_.workspace.Environment(order_.id, order_.run_nonce);
    if (target_.build_on_device)
      request.runner =
          RunnerPrefix(order_.workspace, target_.device, target_.build_limit_ms, "high");
    return BuildArm(request);
  }

  // Small losses under the limit would add up over many merges if each were judged against the tip
  // alone: cases whose record was set by an older binary are measured against that one too. A claim
  // that is not shown to beat it lands, and leaves the record where it is.
  Result<> RatchetAgainstRecords(const BaselineContext& context, const std::string& tip,
                                 const Arm& candidate, JudgeReport* report) {
    CRUCIBLE_ASSIGN(const std::vector<Point> points, store_.Points(target_.name));
    std::map<std::string, std::string> record_of;  // case -> commit
    for (const Point& point : points)
      if (point.kind == "main" && point.record) record_of[point.case_name] = point.name;
    std::map<std::string, std::vector<std::string>> by_commit;
    for (const auto& [name, commit] : record_of) {
      if (commit == tip || target_.FindCase(name) == nullptr) continue;
      CRUCIBLE_ASSIGN(const std::string then, KernelGeneration(context, commit, {name}));
      CRUCIBLE_ASSIGN(const std::string now, KernelGeneration(context, tip, {name}));
      if (then != now) by_commit[commit].push_back(name);  // else the tip is that binary
    }
    std::vector<std::string> short_of_record;
    for (const auto& [commit, names] : by_commit) {
      CRUCIBLE_ASSIGN(const JudgeReport ratchet, RatchetOf(context, commit, names, candidate));
      report->evidence.insert(report->evidence.end(), ratchet.evidence.begin(),
                              ratchet.evidence.end());
      if (!ratchet.pass) {
        report->pass = false;
        report->verdict = ratchet.verdict;  // undecided stays undecided: it is measured again
        report->reason =
            fmt::format("against the record of {}: {}", commit.substr(0, 12), ratchet.reason);
        report->cases = ratchet.cases;
        return {};
      }
      for (const CaseResult& result : ratchet.cases)
        if (result.ratio_high.value_or(1) >= 1) short_of_record.push_back(result.name);
    }
    return WriteFileAtomically(ShortOfRecordFile(), json(short_of_record).dump() + "\n");
  }

  Result<JudgeReport> RatchetOf(const BaselineContext& context, const std::string& commit,
                                const std::vector<std::string>& cases, const Arm& candidate) {
    CRUCIBLE_ASSIGN(const Arm record, BaselineArm(context, commit));
    JudgeRequest request = RequestOf("ratchet", record, candidate, cases);
    request.report =
        ReportFile().parent_path() / fmt::format("ratchet-{}.json", commit.substr(0, 12));
    return RunJudge(order_.workspace, request);
  }

  JudgeRequest RequestOf(const std::string& op, const Arm& baseline, const Arm& candidate,
                         const std::vector<std::string>& cases) const {
    JudgeRequest request;
    request.op = op;
    request.target = &target_;
    request.baseline = baseline;
    request.candidate = candidate;
    request.cases = cases;
    request.priority = "high";
    request.report = ReportFile();
    request.log = order_.workspace.Mission(order_.id) / "gate.log";
    request.environment = order_.workspace.Environment(order_.id, order_.run_nonce);
    return request;
  }

  // Kept beside the gate's report, so that a landing that a kill interrupted is recorded the same.
  std::filesystem::path ShortOfRecordFile() const {
    return ReportFile().parent_path() / "short_of_record.json";
  }

  Result<std::set<std::string>> ReadShortOfRecord() const {
    CRUCIBLE_ASSIGN(const std::string text, ReadFile(ShortOfRecordFile()));
    return json::parse(text).get<std::set<std::string>>();  // written whole, by this program
  }

  Result<Integration> Reject(const JudgeReport& report) {
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

  Result<Integration> Hold(const std::string& outcome, const std::string& text) {
    MoveState(row_.id, &row_.state, "ended");
    row_.merge_outcome = outcome;
    CRUCIBLE_TRY(store_.PutMission(row_));
    Event("merge", fmt::format("{}: {}: {}; `crucible mission approve {}` lets it in", order_.id,
                               outcome, text, order_.id));
    return Integration{outcome, text};
  }

  Result<Integration> Refuse(const std::string& outcome, EntryKind kind, const std::string& text,
                             const JudgeReport* report = nullptr) {
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

  Entry MergeEntry(const JudgeReport* report) {
    Entry entry;
    entry.key = order_.key_prefix + ".merge";
    entry.time_ms = SystemClock().UnixMs();
    entry.target = target_.name;
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

  std::string Mechanisms() {
    EntryFilter filter;
    filter.mission = order_.id;
    filter.campaign = order_.campaign;
    filter.kinds = {EntryKind::kWin};
    const auto wins = store_.QueryEntries(filter);
    std::vector<std::string> names;
    if (wins)
      for (const Entry& win : *wins)
        if (win.author != kAuthor &&
            std::find(names.begin(), names.end(), win.mechanism) == names.end())
          names.push_back(win.mechanism);
    return names.empty() ? "merge" : fmt::format("{}", fmt::join(names, " + "));
  }

  std::string MergeMessage() {
    return fmt::format("Merge {}: {}\n\nMission {} of campaign {}, cases {}.\n", order_.id,
                       Mechanisms(), order_.id, order_.campaign, fmt::join(order_.cases, ", "));
  }

  static std::string LandedText(JudgeReport report) {
    std::erase_if(report.cases, [](const CaseResult& result) { return result.role != "claim"; });
    return CaseNumbers(report);
  }

  // One transaction: the entry, the points and records, the mission's end.
  Result<> RecordLanding(const JudgeReport& report) {
    Entry entry = MergeEntry(&report);
    entry.kind = EntryKind::kWin;
    entry.landed = true;
    entry.summary = LandedText(report);
    entry.reason = report.reason;
    entry.evidence.push_back({"merge_commit", row_.merge_commit, ""});
    CRUCIBLE_ASSIGN(const std::set<std::string> short_of_record, ReadShortOfRecord());
    const std::vector<Point> points = PointsOfLanding(entry, row_.merge_commit, short_of_record);
    EntryFilter filter;
    filter.mission = order_.id;
    filter.campaign = order_.campaign;
    filter.kinds = {EntryKind::kWin};
    CRUCIBLE_ASSIGN(const std::vector<Entry> wins, store_.QueryEntries(filter));
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
    return {};
  }

  void Event(const std::string& kind, const std::string& text) {
    (void)store_.AddEvent(order_.campaign, order_.id, kind, text);
    fmt::print(stderr, "{} {}\n", FormatUtc(SystemClock().UnixMs()), text);
  }

  MissionOrder order_;
  Target target_;
  Store store_;
  Repository repository_;
  MissionRow row_;
};

// One integration at a time: a person's approval waits for the campaign's merge and that for it.
Result<FileLock> TakeTurn(const MissionOrder& order) {
  return FileLock::Take(order.workspace.home / "merge.lock");
}

Result<Integrator> Prepare(const MissionOrder& order) {
  CRUCIBLE_ASSIGN(Target target, LoadTarget(order.target_file));
  CRUCIBLE_ASSIGN(Store store, Store::Open(order.workspace.LogFile()));
  // Not from the mission's own checkouts: they are swept when its campaign ends.
  CRUCIBLE_ASSIGN(Repository repository,
                  Repository::Open(std::filesystem::current_path(), order.main_branch));
  CRUCIBLE_ASSIGN(const auto row, store.FindMission(order.id));
  if (!row)
    return Fail(ErrorKind::kNotFound, "integrate", order.id, "the log has no such mission",
                "see `crucible mission list`");
  if (row->best_commit.empty())
    return Fail(ErrorKind::kUsage, "integrate", order.id, "the mission has no commit",
                "nothing is to be merged");
  if (row->state != "ended" && row->state != "merging")
    return Fail(ErrorKind::kConflict, "integrate", order.id,
                fmt::format("it is {} {}", row->state, row->merge_outcome),
                fmt::format("see `crucible mission show {}`", order.id));
  return Integrator(order, std::move(target), std::move(store), std::move(repository), *row);
}

}  // namespace

Result<Integration> Integrate(const MissionOrder& order, bool approved) {
  CRUCIBLE_TRY(Prepare(order));  // a mistake is told at once; what may have changed is read again
  CRUCIBLE_ASSIGN(const FileLock turn, TakeTurn(order));
  CRUCIBLE_ASSIGN(Integrator integrator, Prepare(order));
  return integrator.Run(approved);
}

Result<bool> FinishInterruptedLanding(const MissionOrder& order) {
  CRUCIBLE_ASSIGN(const FileLock turn, TakeTurn(order));
  CRUCIBLE_ASSIGN(Integrator integrator, Prepare(order));
  return integrator.FinishLanded();
}

}  // namespace crucible
