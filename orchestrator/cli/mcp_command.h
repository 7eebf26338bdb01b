// mcp_command.h: `crucible mcp --mission FILE`: a mission's tools over stdio, for any MCP client.
#pragma once

#include <iosfwd>

#include "orchestrator/cli/command.h"

namespace crucible {

int McpCommand(const Words& words, std::ostream& out, std::ostream& err);

}  // namespace crucible
