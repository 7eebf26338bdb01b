#include "orchestrator/agents/proposer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/case_numbers.h"
#include "orchestrator/agents/knobs.h"
#include "orchestrator/agents/proposals.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/judge.h"
#include "orchestrator/repository.h"
#include "results_log/conditions.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr char kAuthor[] = "proposer";

// What became of one proposal.
struct Outcome {
  EntryKind kind = EntryKind::kNull;
  std::string summary, reason;
  std::optional<JudgeReport> report;
  bool accepted = false;
  std::optional<double> ratio;
};

class Proposer {
 public:
  Proposer(MissionOrder order, Target target, Store store, Repository repository, KnobSpace space)
      : order_(std::move(order)),
        target_(std::move(target)),
        store_(std::move(store)),
        repository_(std::move(repository)),
        space_(std::move(space)),
        hold_(order_.baseline) {}

  Result<MissionResult> Run() {
    CRUCIBLE_ASSIGN(const Configuration start, ReadConfiguration(space_, order_.worktree));
    CRUCIBLE_ASSIGN(std::set<std::string> rejected, KnownRejections());
    ProposalSearch search(space_, start, order_.cases, std::move(rejected));
    CRUCIBLE_TRY(QueueRetests(&search));
    bool used_up = false;
    while (experiments_ < order_.experiments && !OutOfTime()) {
      CRUCIBLE_ASSIGN(const auto proposal, search.Next());
      if (!proposal) {
        used_up = true;
        break;
      }
      CRUCIBLE_TRY(Experiment(&search, *proposal));
    }
    return Finish(used_up);
  }

 private:
  bool OutOfTime() const { return SystemClock().UnixMs() >= order_.deadline_ms; }
  std::filesystem::path Folder() const { return order_.workspace.Mission(order_.id); }

  // Configurations that today's conditions say not to try again.
  Result<std::set<std::string>> KnownRejections() {
    EntryFilter filter;
    filter.target = target_.name;
    filter.cases = order_.cases;
    filter.kinds = {EntryKind::kLoss, EntryKind::kNull, EntryKind::kRefused};
    filter.superseded = false;
    CRUCIBLE_ASSIGN(const std::vector<Entry> entries, store_.QueryEntries(filter));
    std::set<std::string> known;
    for (const Entry& entry : entries) {
      if (!ChangedSince(entry.conditions, order_.now).empty()) continue;
      const json change = json::parse(entry.change, nullptr, false);
      if (change.is_object() && change.contains("scoped") && change["scoped"].is_string())
        known.insert(change["scoped"].get<std::string>());
    }
    return known;
  }

  Result<> QueueRetests(ProposalSearch* search) {
    for (const std::string& key : order_.retry) {
      const auto entry = store_.FindEntry(key);
      if (!entry) continue;
      Configuration wanted = KnobsOf(*entry);
      if (wanted.empty()) {
        CRUCIBLE_ASSIGN(wanted, KeptBy(entry->mission));
      }
      if (wanted.empty()) continue;
      search->TryFirst(wanted);
      if (entry->kind == EntryKind::kInconclusive) search->Recall(wanted, WorstClaim(*entry));
    }
    return {};
  }

  // Time after / before of the claimed case that gained least; 1 where none was measured.
  static double WorstClaim(const Entry& entry) {
    double worst = 0;
    for (const CaseResult& result : entry.cases)
      if (result.role == "claim") worst = std::max(worst, result.ratio.value_or(1));
    return worst > 0 ? worst : 1;
  }

  static Configuration KnobsOf(const Entry& entry) {
    Configuration knobs;
    const json change = json::parse(entry.change, nullptr, false);
    if (!change.is_object() || !change.contains("knobs")) return knobs;
    for (const auto& [name, values] : change["knobs"].items())
      if (values.is_array() && values.size() == 2) knobs[name] = values[1].get<std::int64_t>();
    return knobs;
  }

  // A merge that stayed undecided names no knobs: what its mission had kept is what it was about.
  Result<Configuration> KeptBy(const std::string& mission) {
    Configuration kept;
    if (mission.empty()) return kept;
    EntryFilter filter;
    filter.mission = mission;
    filter.author = kAuthor;
    CRUCIBLE_ASSIGN(const std::vector<Entry> entries, store_.QueryEntries(filter));
    for (const Entry& entry : entries) {
      const bool committed =
          std::any_of(entry.evidence.begin(), entry.evidence.end(),
                      [](const Evidence& evidence) { return evidence.kind == "commit"; });
      if (!committed) continue;
      for (const auto& [name, value] : KnobsOf(entry)) kept[name] = value;
    }
    return kept;
  }

  Result<> Experiment(ProposalSearch* search, const Proposal& proposal) {
    ++number_;
    const Configuration before = search->incumbent();
    Event("experiment", fmt::format("{} #{}: {}", order_.id, number_, proposal.hypothesis));
    Outcome outcome;
    if (!proposal.refused.empty()) {
      outcome.kind = EntryKind::kRefused;
      outcome.summary = "statically invalid: not built";
      outcome.reason = proposal.refused;
    } else {
      ++experiments_;
      CRUCIBLE_TRY(WriteConfiguration(space_, order_.worktree, proposal.configuration));
      CRUCIBLE_ASSIGN(outcome, Measure());
    }
    std::string commit;
    if (outcome.accepted) {
      CRUCIBLE_ASSIGN(
          commit, repository_.CommitAll(order_.worktree, CommitMessage(proposal, before, outcome),
                                        "crucible proposer"));
      hold_ = candidate_;
      hold_slot_ = 1 - hold_slot_;
      hold_.name = commit.substr(0, 12);
      ++accepted_;
    } else {
      CRUCIBLE_TRY(WriteConfiguration(space_, order_.worktree, before));
    }
    CRUCIBLE_TRY(Record(*search, proposal, before, outcome, commit));
    if (outcome.accepted)
      search->Accepted(proposal, outcome.ratio.value_or(1));
    else if (outcome.kind == EntryKind::kInconclusive)
      search->Undecided(proposal, outcome.ratio);
    else
      search->Rejected(proposal, outcome.ratio);
    return {};
  }

  // Builds, checks and measures the worktree as it stands.
  Result<Outcome> Measure() {
    Outcome outcome;
    const auto built = BuildCandidate();
    if (!built) {
      outcome.kind = EntryKind::kCrashed;
      outcome.summary = "the build failed";
      outcome.reason = built.error().text;
      return outcome;
    }
    candidate_ = *built;
    Result<JudgeReport> judged = Judge("screen");  // begins with the quick check
    std::map<std::string, Margin> margins;
    if (judged) margins = judged->margins;
    std::string rule = "screen";
    if (judged && WorthMerging(*judged)) {
      judged = Judge(rule = "confirm");
      outcome.accepted = judged && WorthMerging(*judged);
    }
    if (!judged) return WithoutVerdict(judged.error());
    JudgeReport report = std::move(*judged);
    outcome.ratio = report.Ratio(order_.cases);
    outcome.kind = KindOf(report, rule, order_.cases);
    outcome.summary = CaseNumbers(report);
    outcome.reason = report.reason;
    if (!report.first_failed_check.empty()) {
      outcome.summary = "wrong result";
      outcome.reason = report.first_failed_check;
    }
    if (report.margins.empty()) report.margins = margins;  // a confirmation checks nothing again
    outcome.report = std::move(report);
    return outcome;
  }

  // A gain beyond what is believed at once is kept as well: the merge shows it to a person.
  static bool WorthMerging(const JudgeReport& report) {
    return report.pass || report.verdict == "flagged";
  }

  // The candidate hung, or took the judge down with it: that is an answer about the candidate.
  static Outcome WithoutVerdict(const Error& error) {
    Outcome outcome;
    outcome.kind = EntryKind::kCrashed;
    outcome.summary = "no verdict";
    outcome.reason = error.text;
    return outcome;
  }

  Result<Arm> BuildCandidate() {
    BuildRequest request;
    request.target = &target_;
    request.arm.name = fmt::format("{}.{}", order_.id, number_);
    request.arm.source = order_.worktree;
    request.arm.build = Folder() / fmt::format("build-{}", 1 - hold_slot_);
    request.arm.main = order_.baseline.main;
    request.programs = order_.workspace.programs;
    request.log = Folder() / "build.log";
    request.environment = order_.workspace.Environment(order_.id, order_.run_nonce);
    if (target_.build_on_device)
      request.runner =
          RunnerPrefix(order_.workspace, target_.device, target_.build_limit_ms, "normal");
    return BuildArm(request);
  }

  Result<JudgeReport> Judge(const std::string& rule) {
    JudgeRequest request;
    request.op = "compare";
    request.target = &target_;
    request.baseline = hold_;
    request.candidate = candidate_;
    request.cases = order_.cases;
    request.rule = rule;
    request.checked_already = rule == "confirm";
    request.report = Folder() / "reports" / fmt::format("{:03}-{}.json", number_, rule);
    request.log = Folder() / "judge.log";
    request.environment = order_.workspace.Environment(order_.id, order_.run_nonce);
    return RunJudge(order_.workspace, request);
  }

  std::string Mechanism(const Proposal& proposal) const {
    return fmt::format("{}", fmt::join(proposal.turned, " + "));
  }

  std::string CommitMessage(const Proposal& proposal, const Configuration& before,
                            const Outcome& outcome) const {
    std::string text = "Set";
    for (const std::string& name : proposal.turned)
      text += fmt::format(" {} {} -> {}", name, before.at(name), proposal.configuration.at(name));
    return fmt::format("{}\n\n{}\n\nMission {}, experiment {}.\n", text, outcome.summary, order_.id,
                       number_);
  }

  Result<> Record(const ProposalSearch& search, const Proposal& proposal,
                  const Configuration& before, const Outcome& outcome, const std::string& commit) {
    Entry entry;
    entry.key = fmt::format("{}.{}", order_.key_prefix, number_);
    entry.kind = outcome.kind;
    entry.time_ms = SystemClock().UnixMs();
    entry.target = target_.name;
    entry.campaign = order_.campaign;
    entry.mission = order_.id;
    entry.author = kAuthor;
    entry.flavour = order_.flavour;
    entry.mechanism = Mechanism(proposal);
    entry.hypothesis = proposal.hypothesis;
    entry.summary = outcome.summary;
    entry.reason = outcome.reason;
    json knobs = json::object();
    for (const std::string& name : proposal.turned)
      knobs[name] = {before.at(name), proposal.configuration.at(name)};
    entry.change = JsonText({{"knobs", knobs},
                             {"scoped", search.ScopedText(proposal.configuration)},
                             {"repaired", proposal.repaired}});
    entry.conditions = order_.now;
    if (outcome.report) {
      for (const auto& [name, value] : outcome.report->conditions) entry.conditions[name] = value;
      entry.cases = outcome.report->cases;
      entry.evidence = outcome.report->evidence;
      entry.margins = outcome.report->margins;
    }
    // An experiment without a measurement still belongs to the mission's cases.
    if (entry.cases.empty())
      for (const std::string& name : order_.cases)
        entry.cases.push_back({.name = name, .role = "claim", .verdict = "not_measured"});
    entry.evidence.push_back({"base_commit", order_.base_commit, ""});
    if (!commit.empty()) entry.evidence.push_back({"commit", commit, ""});
    CRUCIBLE_TRY(store_.AddEntry(entry));
    Event("decision",
          fmt::format("{} #{}: {} {}: {}", order_.id, number_, ToText(entry.kind), entry.mechanism,
                      entry.summary.empty() ? entry.reason : entry.summary));
    return {};
  }

  // Progress is a courtesy: a mission does not fail for it.
  void Event(const std::string& kind, const std::string& text) {
    (void)store_.AddEvent(order_.campaign, order_.id, kind, text);
    fmt::print(stderr, "{} {}\n", FormatUtc(SystemClock().UnixMs()), text);
  }

  Result<MissionResult> Finish(bool used_up) {
    MissionResult result;
    if (accepted_ > 0)
      result.outcome = "candidate";
    else if (!used_up && OutOfTime())
      result.outcome = "budget";
    else
      result.outcome = "no_change";
    result.report =
        fmt::format("{} built and measured, {} in all, {} kept.{}\n",
                    Counted(experiments_, "experiment"), Counted(number_, "proposal"), accepted_,
                    used_up ? " The space around the configuration held is used up." : "");
    CRUCIBLE_TRY(WriteMissionResult(Folder(), result));
    return result;
  }

  MissionOrder order_;
  Target target_;
  Store store_;
  Repository repository_;
  KnobSpace space_;
  Arm hold_, candidate_;
  int hold_slot_ = 0;    // build-0 or build-1 holds hold_ (the baseline lies elsewhere)
  int number_ = 0;       // proposals, refused ones too
  int experiments_ = 0;  // those that were built
  int accepted_ = 0;
};

}  // namespace

Result<MissionResult> RunProposer(const std::filesystem::path& order_file) {
  CRUCIBLE_ASSIGN(MissionOrder order, ReadMissionOrder(order_file));
  CRUCIBLE_ASSIGN(Target target, LoadTarget(order.target_file));
  if (target.knobs_file.empty())
    return Fail(ErrorKind::kUsage, "run proposer on", target.name, "the target names no knobs file",
                "add [knobs] file = … to " + order.target_file.string());
  // The knobs come from main's checkout, never from the worktree that is being edited.
  CRUCIBLE_ASSIGN(const std::string knobs, ReadFile(order.baseline.main / target.knobs_file));
  CRUCIBLE_ASSIGN(KnobSpace space, ParseKnobs(knobs, target.knobs_file));
  CRUCIBLE_ASSIGN(Store store, Store::Open(order.workspace.LogFile()));
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(order.worktree, order.main_branch));
  return Proposer(std::move(order), std::move(target), std::move(store), std::move(repository),
                  std::move(space))
      .Run();
}

}  // namespace crucible
