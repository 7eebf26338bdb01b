// integrate.h: takes an ended mission's commit to main, or says why not.
//
// Merge onto the tip of main in memory; check the merged tree out in the integration worktree;
// build that; the shared full check, the paired comparison of the claims and the ratchet of every
// case (crucible_check gate); the ratchet again against the record binary of cases whose record is
// older than the tip; then main moves by compare-and-swap. The gate's report is on disk and the
// merge commit in the mission's row before main moves, so a killed integration is finished or
// repeated, never doubled. One at a time: the campaign runs it as its own process.
#pragma once

#include <string>

#include "base/result.h"
#include "orchestrator/agents/mission_folder.h"

namespace crucible {

struct Integration {
  std::string outcome;  // landed, conflict, protected_path, build_failed, check_failed, …
  std::string text;     // with the numbers
};

// `approved`: a person has said yes to what the gate flagged or the campaign holds back.
Result<Integration> Integrate(const MissionOrder& order, bool approved);

// After a kill: true when main already holds the mission's merge; its entry and records are then
// written from the kept report, if they were not.
Result<bool> FinishInterruptedLanding(const MissionOrder& order);

}  // namespace crucible
