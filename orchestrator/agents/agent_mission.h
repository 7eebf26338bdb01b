// agent_mission.h: one mission carried out by a language model or a command-line agent: what the
// process `crucible agent` does (the campaign starts one per mission).
//
// The process holds the key, so it stays outside; what the agent runs goes into the sandbox, whose
// only way to a device is this mission's broker. Everything is in the mission's folder as it
// happens: transcript.jsonl, spend.json, notes.md, result.json.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace crucible {

// Carries out the mission of `order_file` to a defined end and says in a line how it ended. An
// Error is a crash of the agent: no result is left. `interrupted` is asked often.
Result<std::string> RunAgentMission(const std::filesystem::path& order_file,
                                    const std::function<bool()>& interrupted);

}  // namespace crucible
