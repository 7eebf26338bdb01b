// measure.h: builds the worktree as it stands and asks the judge about it, the way the merge will.
//
// Every answer is bound to the hash of the editable files it was made from. Whatever came of it, a
// failed build too, waits as the mission's pending entry: log_experiment adds the words, and cannot
// touch the numbers. Private to this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/agents/tools/session.h"
#include "orchestrator/judge.h"

namespace crucible {

// Builds into the free slot; skipped when it holds a build of exactly these files. kUnavailable
// quotes the compiler. A failed build is pending as a crashed experiment.
Result<Arm> BuildWorktree(Session* session, bool* built_now = nullptr);

struct Comparison {
  std::string rule;     // screen | claim
  std::string against;  // held | base
  std::vector<std::string> cases;
};

// An Error means no verdict; it is pending as a crashed experiment when the candidate was at fault.
Result<JudgeReport> Compare(Session* session, const Comparison& comparison);
Result<JudgeReport> Check(Session* session, const std::string& level);

// Verdict, table of the cases, reason, margins: what an agent is shown of a report.
std::string ReportText(const JudgeReport& report, const Session& session);

// The claimed cases that were slower by 2 % and more, with their numbers; none where there are none.
std::vector<std::string> ClearlySlower(const std::vector<CaseResult>& cases);

}  // namespace crucible
