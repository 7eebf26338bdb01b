#include "checks/judge/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/counted.h"
#include "base/files.h"
#include "base/json.h"
#include "checks/judge/source_scan.h"
#include "checks/judge/tool_check.h"

namespace crucible::judge {
namespace {

using decide::Verdict;

constexpr int kCrashesUntilStop = 3;
constexpr std::int64_t kReserveMs = 2'000;  // of the job's limit, for ending in order

Result<std::uint64_t> SecretSeed() {
  std::ifstream source("/dev/urandom", std::ios::binary);
  std::uint64_t seed = 0;
  if (!source.read(reinterpret_cast<char*>(&seed), sizeof seed))
    return Fail(ErrorKind::kIo, "read", "/dev/urandom", "no random bytes", "give --seed");
  return seed & kSeedMask;
}

}  // namespace

bool NamedIn(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

bool BelongsTo(const CheckCase& check, CheckLevel level) {
  return check.level != CheckLevel::kExploits &&
         (level == CheckLevel::kFull || check.level == CheckLevel::kQuick);
}

bool Bench::TooGood(const decide::Decision& decision, Verdict* verdict, std::string* reason) const {
  const double gain = std::exp(-decision.evidence.estimate.center);
  const double most = request_->target.limits.flag_speedup;
  if (decision.verdict != Verdict::kAccepted || gain <= most) return false;
  *verdict = Verdict::kFlagged;
  *reason = fmt::format("{:.1f} times faster is beyond {:g}: a person looks first", gain, most);
  return true;
}

Bench::Bench(const Request& request, std::string op, Clock& clock)
    : request_(&request), clock_(&clock), start_ns_(clock.MonotonicNs()) {
  report_.op = std::move(op);
  limit_ms_ = request.time_limit_ms.value_or(request.target.limits.job_limit_ms);
}

Result<Bench> Bench::Make(const Request& request, std::string op, bool needs_baseline,
                          Clock& clock) {
  Bench bench(request, std::move(op), clock);
  if (needs_baseline && !request.baseline)
    return Fail(ErrorKind::kUsage, bench.report_.op, request.target.name, "there is no baseline",
                "give --baseline ARM.json");
  std::uint64_t seed = 0;
  if (request.seed) {
    seed = *request.seed & kSeedMask;
  } else {
    CRUCIBLE_ASSIGN(seed, SecretSeed());
  }
  bench.report_.seed = seed;
  bench.random_.seed(seed);
  CRUCIBLE_ASSIGN(bench.folder_.path, MakeTemporaryDirectory("crucible-check"));
  const auto& command = request.target.harness;
  CRUCIBLE_ASSIGN(bench.candidate_, bench.MakeArm("candidate " + request.candidate.name,
                                                  Side::kCandidate, request.candidate, command));
  bench.report_.candidate_hash = request.candidate.source_hash;
  if (needs_baseline) {
    CRUCIBLE_ASSIGN(bench.baseline_, bench.MakeArm("baseline " + request.baseline->name,
                                                   Side::kBaseline, *request.baseline, command));
    bench.report_.baseline_hash = request.baseline->source_hash;
  }
  return bench;
}

TemporaryFolder::~TemporaryFolder() {
  if (!path.empty()) (void)RemoveTree(path);
}

Result<ArmRunner> Bench::MakeArm(const std::string& name, Side side, const Arm& arm,
                                 const std::vector<std::string>& command) const {
  CRUCIBLE_ASSIGN(std::vector<std::string> words, Substitute(command, arm));
  std::string file = name;
  std::replace_if(
      file.begin(), file.end(), [](char c) { return c == '/' || c == ' '; }, '_');
  return ArmRunner({.name = name,
                    .side = side,
                    .target = request_->target.name,
                    .command = std::move(words),
                    .log = folder_.path / (file + ".log"),
                    .request_limit_ms = request_->target.limits.request_limit_ms,
                    .may_be_cheat = side == Side::kPeer || request_->arms_may_be_cheats},
                   *clock_);
}

void Bench::Tell(const std::string& line) const {
  if (request_->progress) request_->progress(report_.op + ": " + line);
}

std::int64_t Bench::LeftMs() const {
  return limit_ms_ - kReserveMs - (clock_->MonotonicNs() - start_ns_) / 1'000'000;
}

// What this case may take: its usual time, or an even share of what the job has left.
std::int64_t Bench::TimeFor(std::int64_t usual_ms, std::size_t cases_left) const {
  const std::int64_t wanted = request_->case_ms.value_or(usual_ms);
  const auto share = LeftMs() / static_cast<std::int64_t>(std::max<std::size_t>(cases_left, 1));
  return std::clamp<std::int64_t>(share, 1, wanted);
}

void Bench::Blame(const Failure& failure) {
  if (failure.machine || failure.side == Side::kBaseline) {
    report_.error = failure.text;
    report_.reason = "no verdict on the candidate: " + failure.text;
    return;
  }
  report_.verdict = failure.verdict;
  report_.reason = failure.text;
}

bool Bench::Check(CheckLevel level, const std::vector<std::string>& only) {
  int crashes = 0, failures = 0;
  std::string first;
  std::vector<const CheckCase*> chosen;
  for (const CheckCase& check : request_->target.checks)
    if (BelongsTo(check, level) && NamedIn(only, check.name)) chosen.push_back(&check);
  // First, because it says more than what the same code does when it runs.
  const bool source = only.empty() && !request_->target.integrity.refused.empty();
  if (source) {
    CheckRow row = SourceRow(request_->target, request_->candidate.source);
    if (!row.result.pass && failures++ == 0) first = row.name + ": " + row.result.reason;
    report_.checks.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const CheckCase& check = *chosen[i];
    CheckRow row{.name = check.name};
    if (crashes >= kCrashesUntilStop || LeftMs() <= 0) {
      row.result.reason = crashes >= kCrashesUntilStop ? "not run: the candidate keeps crashing"
                                                       : "not run: the job's time ran out";
    } else {
      Tell(fmt::format("{} ({}/{})", check.name, i + 1, chosen.size()));
      Outcome<> started;
      if (!candidate_->running()) started = candidate_->Restart();
      if (!started && started.error().machine) {
        Blame(started.error());
        return false;
      }
      auto checked =
          started ? candidate_->Check(CaseJson(check.name, check.params), random_() & kSeedMask)
                  : Outcome<CheckResult>(tl::unexpected(started.error()));
      if (checked) {
        row.result = *checked;
      } else {
        ++crashes;
        row.result.reason = checked.error().text;
      }
    }
    if (!row.result.pass && failures++ == 0) first = row.name + ": " + row.result.reason;
    report_.checks.push_back(std::move(row));
  }
  candidate_->Stop();
  if (failures == 0) return true;
  report_.verdict = crashes > 0 ? Verdict::kCrashed : Verdict::kCheckFailed;
  report_.reason =
      fmt::format("{} of {} failed, first {}", failures,
                  Counted(chosen.size() + (source ? 1 : 0), "check"), first);
  return false;
}

bool Bench::CheckWithTools() {
  bool all = true;
  for (const ToolCheck& check : request_->target.tool_checks) {
    Tell(check.name);
    CheckRow row = LeftMs() > 0 ? RunToolCheck(check, request_->candidate, LeftMs())
                                : CheckRow{.name = check.name,
                                           .result = {.reason = "not run: the job's time ran out"}};
    if (!row.not_run.empty()) {
      report_.conditions[check.tool] = "not on this machine";
      Tell(row.name + ": " + row.result.reason);
    } else if (!row.result.pass && all) {
      all = false;
      report_.verdict = Verdict::kCheckFailed;
      report_.reason = row.name + ": " + row.result.reason;
    }
    report_.checks.push_back(std::move(row));
  }
  return all;
}

bool Bench::SameLibrary() {
  for (ArmRunner* arm : {&*baseline_, &*candidate_}) {
    if (!arm->library_sha256().empty()) continue;
    if (auto started = arm->Restart(); !started) {
      Blame(started.error());
      return false;
    }
    arm->Stop();
  }
  return !baseline_->library_sha256().empty() &&
         baseline_->library_sha256() == candidate_->library_sha256();
}

Outcome<decide::Decision> Bench::RunPair(const TargetCase& item, Decider decider,
                                         std::int64_t usual_ms, std::size_t cases_left,
                                         const std::string& what) {
  PairSession session(
      *baseline_, *candidate_, CaseJson(item.name, item.params),
      {.device = request_->target.device,
       .time_ms = TimeFor(usual_ms, cases_left),
       .slot_ms = request_->slot_ms.value_or(static_cast<double>(request_->target.limits.slot_ms)),
       .progress = [&](const std::string& line) { Tell(what + " " + item.name + ": " + line); }},
      random_, *clock_);
  auto decision = session.Run(std::move(decider));
  clocks_.Add(session.clocks());
  return decision;
}

bool Bench::Claim(const std::vector<TargetCase>& cases, const std::string& rule_name) {
  const TargetLimits& limits = request_->target.limits;
  const auto named = decide::RuleByName(rule_name, limits.minimum_effect);
  CRUCIBLE_CHECK(named.has_value(), "rule names are checked before a bench is made");
  const decide::Rule rule = decide::ForOneOf(*named, cases.size());
  const std::int64_t usual_ms = rule_name == "screen" ? limits.screen_ms : limits.claim_ms;
  const bool same = SameLibrary();
  if (failed()) return false;
  std::vector<decide::Decision> decisions;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (same) {
      decisions.push_back({.verdict = Verdict::kNoDifference,
                           .reason = "both arms are the same library, byte for byte"});
      continue;
    }
    decide::Comparison comparison(rule);
    auto decision =
        RunPair(cases[i], DeciderFor(comparison), usual_ms, cases.size() - i, rule_name);
    if (!decision) {
      Blame(decision.error());
      if (failed()) return false;
      decisions.push_back({.verdict = report_.verdict, .reason = report_.reason});
    } else {
      decisions.push_back(*decision);
    }
    Tell(fmt::format("{} {}: {}, {}", rule_name, cases[i].name,
                     decide::ToText(decisions.back().verdict), decisions.back().reason));
  }
  decisions = decide::DecideTogether(std::move(decisions), rule, named->Alpha());
  // The worst case speaks for the claim.
  static constexpr Verdict kWorstFirst[] = {
      Verdict::kCrashed,      Verdict::kCheckFailed,  Verdict::kRejected, Verdict::kRefused,
      Verdict::kInconclusive, Verdict::kNoDifference, Verdict::kFlagged,  Verdict::kAccepted};
  std::size_t worst = std::size(kWorstFirst);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    decide::Decision& decision = decisions[i];
    TooGood(decision, &decision.verdict, &decision.reason);
    const auto rank = static_cast<std::size_t>(
        std::find(std::begin(kWorstFirst), std::end(kWorstFirst), decision.verdict) -
        std::begin(kWorstFirst));
    if (rank < worst) {
      worst = rank;
      report_.verdict = decision.verdict;
      report_.reason = cases[i].name + ": " + decision.reason;
    }
    report_.cases.push_back(
        {.name = cases[i].name,
         .role = "claim",
         .verdict = decision.verdict,
         .reason = decision.reason,
         .limit = limits.minimum_effect,
         .decision = decision.evidence.rounds > 0 ? std::optional(decision) : std::nullopt});
  }
  return report_.verdict == Verdict::kAccepted;
}

}  // namespace crucible::judge
