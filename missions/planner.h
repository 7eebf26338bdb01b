// planner.h: which mission next. A written policy, pure over the log, so every choice replays.
//
// The policy, in order (docs/walkthrough.md shows one choice made by it):
//   1. missions a person added and that wait;
//   2. rejections up for a retest because a condition changed;
//   3. a case that no mission of this campaign has taken up, the one with the largest score;
//   4. a precision mission where merges have used up accuracy (margins.h);
//   5. inconclusive experiments that were re-queued, on a case nobody works on now;
//   6. the case with the largest score: room x staleness. room = log(newest / floor) where a floor
//      is known, else log(newest / best peer) where positive, else 0.1; staleness = 1 + missions
//      that ended since its bar last moved; halved for each recent mission on it that landed
//      nothing.
// The flavour follows from what came of earlier missions (a campaign of the proposer has that one
// alone): kernel; explorer, a different architecture, after two on the case in vain since its bar
// moved; scout, which reads and ranks ideas, after four; simplifier after every four that landed.
// A case that a running mission claims is not given out twice. Ties go to the target file's order.
//
// Two missions that edit the same files conflict when both come to be merged. So rules 2 to 6 look
// among the cases whose files no running mission edits (the target's knobs say which files move
// which case); only where every free case shares a file with a running mission, among all of them:
// an agent that works may still find something, one that waits cannot. A mission that a person
// added (rule 1) waits for its cases alone: the person's word counts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checks/target.h"
#include "results_log/conditions.h"
#include "results_log/store.h"

namespace crucible {

struct PlannerInput {
  const Target* target = nullptr;
  std::string campaign;
  std::vector<std::string> only;     // cases that this campaign works on; empty: all
  std::vector<MissionRow> missions;  // of the log, oldest first
  std::vector<Entry> entries;        // of the target, oldest first
  std::vector<Point> points;
  Conditions now;
  // The files that a mission on a case edits; a case without an entry shares no file.
  std::map<std::string, std::set<std::string>> files_of_case;
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
