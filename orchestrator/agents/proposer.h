// proposer.h: the built-in subagent: a mission carried out without any language model.
//
// Proposes a turn of the target's knobs, refuses what is invalid before any build, edits the
// configuration in its worktree, builds, checks, measures paired against what it holds (screen,
// then confirm on fresh data), decides, commits or not, and writes down why: one log entry an
// experiment, with the judge's own numbers. It runs in its own process and ends in a defined state
// whatever happens; killed at any point it loses at most the experiment under way.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "orchestrator/agents/mission_folder.h"

namespace crucible {

// Runs the mission of `order_file` (missions/ID/mission.json) to its end and leaves result.json.
Result<MissionResult> RunProposer(const std::filesystem::path& order_file);

}  // namespace crucible
