// mission_tools.h: the ToolContext of a mission's order, for every command that works on one.
#pragma once

#include <filesystem>
#include <string>

#include "orchestrator/agents/tools/tool_context.h"

namespace crucible {

// Commands and builds go into a sandbox; kUnavailable where it does not work, unless `unsandboxed`
// says that it is to go without one. The caller sets `interrupted`, limits and, for gpu_run inside
// the sandbox, the broker's socket.
Result<ToolContext> ContextOfMission(const std::filesystem::path& order_file,
                                     const std::string& author, bool unsandboxed);

}  // namespace crucible
