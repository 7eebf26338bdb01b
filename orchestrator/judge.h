// judge.h: asks crucible_check for a verdict, through gpu_run, and reads its answer.
//
// The judge is a separate program (docs/target_protocol.md), the same for agents, people and the
// merge. The report is written to a file before anything is decided on it: it is the evidence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/target.h"
#include "orchestrator/workspace.h"
#include "results_log/entry.h"

namespace crucible {

struct JudgeRequest {
  std::string op;  // check | compare | ratchet | gate | measure | exploits
  const Target* target = nullptr;
  std::optional<Arm> baseline;
  Arm candidate;
  std::vector<std::string> cases;  // compared or measured; the claims of a gate
  std::string rule;                // compare: claim | screen | confirm
  std::string level;               // check: quick | full
  bool peers = false;
  bool checked_already = false;     // compare: leave out the quick check
  std::string priority = "normal";  // of the job in the device's queue
  std::filesystem::path report;     // where the JSON answer is kept
  std::filesystem::path log;        // the judge's progress is appended here
  std::map<std::string, std::string> environment;
  std::function<bool()> stop;  // asked while the job runs; true ends it: kInterrupted
};

struct PeerTime {
  std::string peer, case_name;
  double median_us = 0, low_us = 0, high_us = 0;
};

struct JudgeReport {
  bool pass = false;
  std::string verdict, reason;
  std::vector<CaseResult> cases;
  std::vector<PeerTime> peers;
  std::map<std::string, std::string> conditions;
  std::map<std::string, Margin> margins;  // by gate, over all checks
  std::string first_failed_check;         // "dense n=33: eigen 1e9 > 200"
  std::string job;                        // the device job it ran as
  std::vector<Evidence> evidence;         // the report and the job
  std::int64_t wall_ms = 0;

  // The median ratio over the given cases, geometric mean; nothing when one was not measured.
  std::optional<double> Ratio(const std::vector<std::string>& names) const;
};

// The log's kind for a comparison by that rule. A screen that passes is no win: it says "worth
// confirming" and no more. What is undecided, or waits for a person, is never a rejection.
EntryKind KindOf(const JudgeReport& report, const std::string& rule,
                 const std::vector<std::string>& cases);

// An Error means that there is no verdict (the judge could not run, timed out, or was cut off);
// a failed check or a rejected change is a report.
Result<JudgeReport> RunJudge(const Workspace& workspace, const JudgeRequest& request);

// Reads a kept report again (a resumed merge).
Result<JudgeReport> ReadJudgeReport(const Workspace& workspace, const std::filesystem::path& file);

// {"…/gpu_run", "--device", D, "--limit", L, …, "--"}
std::vector<std::string> RunnerPrefix(const Workspace& workspace, const std::string& device,
                                      std::int64_t limit_ms, const std::string& priority);

}  // namespace crucible
