// bench.h: one call of the judge while it runs: its arms, its randomness, its deadline, its report.
// The steps (checks, pairs, absolute times) are methods; judge.cc strings them together.
// Not thread-safe.
#pragma once

#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checks/judge/judge.h"
#include "checks/judge/pair_session.h"

namespace crucible::judge {

// Removed with everything in it at the end.
struct TemporaryFolder {
  std::filesystem::path path;

  TemporaryFolder() = default;
  TemporaryFolder(TemporaryFolder&& other) noexcept : path(std::exchange(other.path, {})) {}
  ~TemporaryFolder();
};

// Is this check part of a level, and named, or is none named?
bool BelongsTo(const CheckCase& check, CheckLevel level);
bool NamedIn(const std::vector<std::string>& names, const std::string& name);

class Bench {
 public:
  // Starts no process yet. kUsage for a command that cannot be substituted or a missing baseline.
  static Result<Bench> Make(const Request& request, std::string op, bool needs_baseline,
                            Clock& clock);
  Bench(Bench&&) = default;

  // Runs the checks of `level` on the candidate, all of them; true when all pass. A wrong result or
  // a crash sets the report's verdict.
  bool Check(CheckLevel level, const std::vector<std::string>& only);

  // Runs the target's tools on the candidate's build, those that the machine has; true when none of
  // them found anything. The report names those that were not run.
  bool CheckWithTools();

  // Decides these cases together as one claim; true when all are accepted.
  bool Claim(const std::vector<TargetCase>& cases, const std::string& rule_name);
  // Ratchets each of these cases; true when all pass. One that is too good to be true is flagged.
  bool Ratchet(const std::vector<TargetCase>& cases);
  // Absolute times, candidate and peers in turn; false when the candidate fails.
  bool Measure(const std::vector<TargetCase>& cases, bool with_peers);

  // Runs every cheating kernel of the target; true when each is rejected for its own reason. One
  // row of checks a kernel: "pass" means that it was caught.
  bool CatchExploits();

  // Fills in what only the end knows and hands the report out.
  Report Finish();
  Report& report() { return report_; }
  bool failed() const { return !report_.error.empty(); }

 private:
  Bench(const Request& request, std::string op, Clock& clock);

  Result<ArmRunner> MakeArm(const std::string& name, Side side, const Arm& arm,
                            const std::vector<std::string>& command) const;
  void Blame(const Failure& failure);  // sets the verdict, or the error when it is not the kernel's
  std::int64_t TimeFor(std::int64_t usual_ms, std::size_t cases_left) const;
  std::int64_t LeftMs() const;
  // More than flag_speedup times faster and accepted: flags it instead.
  bool TooGood(const decide::Decision& decision, decide::Verdict* verdict,
               std::string* reason) const;
  bool SameLibrary();  // both arms are the same bytes: nothing to measure
  Outcome<decide::Decision> RunPair(const TargetCase& item, Decider decider, std::int64_t usual_ms,
                                    std::size_t cases_left, const std::string& what);
  void Tell(const std::string& line) const;

  const Request* request_;
  Clock* clock_;
  std::int64_t start_ns_ = 0, limit_ms_ = 0;
  TemporaryFolder folder_;  // harness logs
  std::mt19937_64 random_;
  std::optional<ArmRunner> baseline_, candidate_;
  ClocksSeen clocks_;
  Report report_;
};

}  // namespace crucible::judge
