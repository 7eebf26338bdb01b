#include "orchestrator/integrate.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/file_lock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/paths.h"
#include "orchestrator/baseline.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/judge.h"
#include "orchestrator/merge_record.h"
#include "orchestrator/repository.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr char kSignature[] = "crucible";
constexpr int kMovedMainTries = 3;

class Integrator {
 public:
  Integrator(MissionOrder order, Target target, Store store, Repository repository, MissionRow row)
      : order_(std::move(order)),
        target_(std::move(target)),
        repository_(std::move(repository)),
        record_(order_, target_.name, std::move(store), std::move(row)) {}

  Result<Integration> Run(bool approved) {
    CRUCIBLE_TRY(record_.Begin());
    CRUCIBLE_ASSIGN(const std::string foreign, ForeignPaths());
    if (!foreign.empty())
      return record_.Refuse("protected_path", EntryKind::kRefused,
                            "it changes paths outside the mission: " + foreign);
    for (int i = 0; i < kMovedMainTries; ++i) {
      CRUCIBLE_ASSIGN(auto result, Attempt(approved));
      if (result) return *result;
      record_.Event("merge", fmt::format("{}: main moved meanwhile, merging again", order_.id));
    }
    return record_.Refuse("conflict", EntryKind::kInconclusive,
                          fmt::format("main moved {} times during the merge", kMovedMainTries));
  }

  Result<bool> FinishLanded() {
    if (record_.row().merge_commit.empty()) return false;
    std::string note;
    CRUCIBLE_TRY(repository_.FinishMove(&note));
    if (!note.empty()) record_.Event("note", note);
    CRUCIBLE_ASSIGN(const std::string tip, repository_.MainTip());
    CRUCIBLE_ASSIGN(const bool landed, repository_.IsAncestor(record_.row().merge_commit, tip));
    if (!landed) return false;
    CRUCIBLE_ASSIGN(const JudgeReport report, ReadJudgeReport(order_.workspace, ReportFile()));
    CRUCIBLE_ASSIGN(const std::set<std::string> short_of_record, ReadShortOfRecord());
    CRUCIBLE_TRY(record_.Land(report, short_of_record));
    return true;
  }

 private:
  std::filesystem::path ReportFile() const {
    return order_.workspace.Mission(order_.id) / "reports" / "gate.json";
  }

  Result<std::string> ForeignPaths() {
    CRUCIBLE_ASSIGN(const auto changes,
                    repository_.ChangedPaths(order_.base_commit, record_.row().best_commit));
    std::vector<std::string> foreign;
    for (const ChangedPath& change : changes)
      if (!IsEditable(target_, change.path)) foreign.push_back(change.path);
    return fmt::format("{}", fmt::join(foreign, ", "));
  }

  // Nothing: main moved between the gate and the swap, so the merged tree is not what was judged.
  Result<std::optional<Integration>> Attempt(bool approved) {
    CRUCIBLE_ASSIGN(const std::string tip, repository_.MainTip());
    CRUCIBLE_ASSIGN(
        const MergeOutcome merged,
        repository_.Merge(tip, record_.row().best_commit, record_.MergeMessage(), kSignature));
    if (merged.commit.empty())
      return Decided(record_.Refuse("conflict", EntryKind::kRefused,
                                    fmt::format("conflicts with main {} in {}", tip.substr(0, 12),
                                                fmt::join(merged.conflicts, ", "))));
    record_.Event("merge", fmt::format("{}: building the merged tree", order_.id));
    const BaselineContext context{&order_.workspace, &target_, &repository_, order_.run_nonce};
    CRUCIBLE_ASSIGN(const Arm baseline, BaselineArm(context, tip));
    const auto candidate = BuildMerged(merged.commit, baseline);
    if (!candidate)
      return Decided(record_.Refuse("build_failed", EntryKind::kCrashed, candidate.error().text));
    record_.Event("merge", fmt::format("{}: full check, comparison and ratchet of the merged tree",
                                       order_.id));
    CRUCIBLE_ASSIGN(
        JudgeReport report,
        RunJudge(order_.workspace, RequestOf("gate", baseline, *candidate, order_.cases)));
    if (report.pass || report.verdict == "flagged")
      CRUCIBLE_TRY(RatchetAgainstRecords(context, tip, *candidate, &report));
    if (!report.pass && !(approved && report.verdict == "flagged"))
      return Decided(record_.Reject(report));
    if (!approved && Held())
      return Decided(
          record_.Hold("awaiting_approval", "passed the gate; the campaign asks a person"));
    CRUCIBLE_TRY(record_.BeforeMove(merged.commit));
    std::string note;
    const auto moved = repository_.MoveMain(tip, merged.commit, &note);
    if (!moved && moved.error().kind == ErrorKind::kConflict) return std::optional<Integration>();
    if (!moved) return tl::unexpected(moved.error());
    if (!note.empty()) record_.Event("note", note);
    CRUCIBLE_ASSIGN(const std::set<std::string> short_of_record, ReadShortOfRecord());
    return Decided(record_.Land(report, short_of_record));
  }

  static Result<std::optional<Integration>> Decided(Result<Integration> result) {
    if (!result) return tl::unexpected(result.error());
    return std::optional(std::move(*result));
  }

  bool Held() const {
    const json settings = json::parse(record_.row().settings, nullptr, false);
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
    CRUCIBLE_ASSIGN(const std::vector<Point> points, record_.Points());
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
    const auto text = ReadFile(ShortOfRecordFile());
    // Merged by an older version, which did not ask: then no claim moves its record.
    if (!text && text.error().kind == ErrorKind::kNotFound)
      return std::set<std::string>(order_.cases.begin(), order_.cases.end());
    if (!text) return tl::unexpected(text.error());
    return json::parse(*text).get<std::set<std::string>>();  // written whole, by this program
  }

  MissionOrder order_;
  Target target_;
  Repository repository_;
  MergeRecord record_;
};

Result<Integrator> Prepare(const MissionOrder& order) {
  CRUCIBLE_ASSIGN(Target target, LoadTarget(order.target_file));
  CRUCIBLE_ASSIGN(Store store, Store::Open(order.workspace.LogFile()));
  // Not from the mission's own checkouts: they are swept when its campaign ends.
  CRUCIBLE_ASSIGN(const std::filesystem::path here, CurrentFolder());
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(here, order.main_branch));
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
  CRUCIBLE_ASSIGN(const FileLock turn, FileLock::Take(order.workspace.MergeLock()));
  CRUCIBLE_ASSIGN(Integrator integrator, Prepare(order));
  return integrator.Run(approved);
}

Result<bool> FinishInterruptedLanding(const MissionOrder& order) {
  CRUCIBLE_ASSIGN(const FileLock turn, FileLock::Take(order.workspace.MergeLock()));
  CRUCIBLE_ASSIGN(Integrator integrator, Prepare(order));
  return integrator.FinishLanded();
}

}  // namespace crucible
