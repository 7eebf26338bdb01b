// planner.h: which mission next. A written policy, pure over the log, so every choice replays.
//
// The policy, in order (docs/walkthrough.md shows one choice made by it):
//   1. missions a person added and that wait;
//   2. rejections up for a retest because a condition changed;
//   3. a case that no mission of this campaign has taken up, the one with the largest score;
//   4. a precision mission where merges have used up accuracy (margins.h);
//   5. inconclusive experiments that were re-queued, on a case nobody works on now;
//   6. the case with the largest score: room x staleness. room = log(newest / floor) where a floor
//   is
//      known, else log(newest / best peer) where positive, else 0.1; staleness = 1 + missions
//      that ended since its bar last moved; halved for each recent mission on it that landed
//      nothing.
// The flavour follows from what came of earlier missions (a campaign of the proposer has that one
// alone): kernel; explorer, a different architecture, after two on the case in vain since its bar
// moved; scout, which reads and ranks ideas, after four; simplifier after every four that landed.
// A case that a running mission claims is not given out twice. Ties go to the target file's order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/target.h"
#include "results_log/conditions.h"
#include "results_log/store.h"

namespace crucible {

struct PlannerInput {
  const Target* target = nullptr;
  std::string campaign;
  std::vector<MissionRow> missions;  // of the log, oldest first
  std::vector<Entry> entries;        // of the target, oldest first
  std::vector<Point> points;
  Conditions now;
};

struct MissionPlan {
  std::string flavour;             // "proposer", "kernel", …
  std::vector<std::string> cases;  // to improve; every other case: zero regression
  std::string goal;                // one sentence
  std::string why;                 // the policy's reason with the numbers it used
  std::vector<std::string> retry;  // keys of entries to be measured again first
  std::string added_mission;       // id of the planned mission a person added, if that is it
};

// Nothing: every case is taken or there is nothing left to do (say why in `why_not` if given).
std::optional<MissionPlan> PlanNext(const PlannerInput& input, const std::string& default_flavour,
                                    std::string* why_not = nullptr);

}  // namespace crucible
