// verdict_report.h: what the judge found, and its JSON (docs/target_protocol.md, "The judge").
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checks/decide/rule.h"
#include "checks/decide/verdict.h"
#include "checks/judge/arm_runner.h"

namespace crucible::judge {

struct CheckRow {
  std::string name;
  CheckResult result;
  std::string not_run;  // a check that this machine cannot make: why; empty otherwise
};

struct CaseRow {
  std::string name;
  std::string role;  // claim | ratchet | measure
  decide::Verdict verdict = decide::Verdict::kInconclusive;
  std::string reason;
  double limit = 0;                          // ratchet's limit, or the claim's minimum effect
  std::optional<decide::Decision> decision;  // a pair that was measured
  // An absolute time ("measure"): median of slots and its interval.
  double median_us = 0, low_us = 0, high_us = 0;
  int rounds = 0;
};

struct PeerRow {
  std::string peer, name;
  double median_us = 0, low_us = 0, high_us = 0;
  std::string error;  // this peer could not measure this case
};

struct Report {
  std::string op;
  decide::Verdict verdict = decide::Verdict::kInconclusive;
  std::string reason;
  std::string error;                                // an arm or the machine failed before a verdict
  std::map<std::string, std::string> conditions;    // of the candidate's arm and this run
  std::string baseline_conditions, configuration;   // JSON object text
  std::string baseline_hash, candidate_hash;        // of the sources, from the arms
  std::string baseline_library, candidate_library;  // sha256, from the harnesses
  std::uint64_t seed = 0;
  std::int64_t wall_ms = 0;
  std::vector<CheckRow> checks;
  std::vector<CaseRow> cases;
  std::vector<PeerRow> peers;

  bool pass() const { return error.empty() && verdict == decide::Verdict::kAccepted; }
  int ExitCode() const { return !error.empty() ? 3 : pass() ? 0 : 1; }
};

nlohmann::json ToJson(const Report& report);

}  // namespace crucible::judge
