// mission_text.h: the mission as the agent reads it (missions/<id>/mission.md).
//
// Narrow by construction: named cases to improve, zero regression elsewhere, editable paths,
// budget, protocol, how to report. The brief is appended by the caller. Pure.
//
// `branch` is the one it starts from and its merge goes to.
#pragma once

#include <cstdint>
#include <string>

#include "checks/target.h"
#include "missions/planner.h"

namespace crucible {

struct MissionBudget {
  std::int64_t wall_ms = 0;
  int experiments = 0;
};

std::string MissionText(const std::string& id, const MissionPlan& plan, const Target& target,
                        const MissionBudget& budget, const std::string& branch,
                        const std::string& base_commit, const std::string& worktree);

}  // namespace crucible
