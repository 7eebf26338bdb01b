// cli_tools.h: tells a command-line agent of the mission's MCP server, each program in its own way.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/agents/cli/run_cli_agent.h"

namespace crucible {

// Adds to `spec` what makes its program start `server` (an argv) as an MCP server named "crucible":
// arguments for claude and codex, a variable for opencode, a settings file in `home` for gemini
// (where that is a scratch folder; empty: a person's own settings are not touched). Nothing for any
// other command, which may start the server itself.
Result<> OfferTools(const std::vector<std::string>& server, const std::filesystem::path& home,
                    CliAgentSpec* spec);

}  // namespace crucible
