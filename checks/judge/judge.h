// judge.h: the questions of crucible_check, as a library.
//
// Runs harness processes one at a time and takes no lock: whoever calls it holds the device (see
// gpu_run). A usage error (unknown case, missing arm) is an Error of kind kUsage; everything else
// ends in a Report, also when an arm crashed. Not thread-safe; one call at a time per device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "checks/judge/verdict_report.h"
#include "checks/target.h"

namespace crucible::judge {

struct Request {
  Target target;
  Arm candidate;
  std::optional<Arm> baseline;      // compare, ratchet, gate
  std::vector<std::string> cases;   // empty: all (check: names of measured cases or checks)
  std::vector<std::string> claims;  // gate: may be empty, then everything is ratcheted
  CheckLevel level = CheckLevel::kFull;
  std::string rule = "claim";                 // compare: claim | screen | confirm
  bool with_peers = false;                    // measure
  bool quick_check = true;                    // before compare, ratchet and measure
  std::optional<std::uint64_t> seed;          // empty: from /dev/urandom, kept secret until the end
  std::optional<std::int64_t> time_limit_ms;  // of the whole; default: the target's job_limit
  std::optional<std::int64_t> case_ms;        // of one case; default: the target's, by rule
  std::optional<double> slot_ms;              // default: the target's
  std::function<void(const std::string&)> progress;  // one line of text; may be empty
  // The arms may be cheats that a harness admits although their files forbid it: to see that they
  // win no comparison. No program sets it.
  bool arms_may_be_cheats = false;
};

Result<Report> RunCheck(const Request& request, Clock& clock = SystemClock());
Result<Report> RunCompare(const Request& request, Clock& clock = SystemClock());
Result<Report> RunRatchet(const Request& request, Clock& clock = SystemClock());
Result<Report> RunGate(const Request& request, Clock& clock = SystemClock());
Result<Report> RunMeasure(const Request& request, Clock& clock = SystemClock());
// The target's cheating kernels, each to be caught for its own reason; then the candidate's own
// quick checks, so that a harness that rejects everything does not pass either.
Result<Report> RunExploits(const Request& request, Clock& clock = SystemClock());

}  // namespace crucible::judge
