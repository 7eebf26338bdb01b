// mission_tools.h: a mission's tools in the place where its agent works: one way in for the loop of
// a model and for `crucible mcp`, so that both have the same sandbox, broker and limits.
#pragma once

#include <functional>
#include <string>

#include "orchestrator/agents/agent_place.h"
#include "orchestrator/agents/tools/tool_context.h"

namespace crucible {

// `place` is the order's (AgentPlace::Make) and outlives the tools: its broker is their only way to
// a device.
ToolContext ToolsIn(const AgentPlace& place, const MissionOrder& order, const Target& target,
                    const std::string& author, std::function<bool()> interrupted);

}  // namespace crucible
