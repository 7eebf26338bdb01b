#include "orchestrator/agents/mission_tools.h"

namespace crucible {

ToolContext ToolsIn(const AgentPlace& place, const MissionOrder& order, const Target& target,
                    const std::string& author, std::function<bool()> interrupted) {
  ToolContext context;
  context.order = order;
  context.target = target;
  context.author = author;
  context.sandbox = place.sandbox();
  context.enter_sandbox = Sandboxed;
  context.unsandboxed = order.agent.unsandboxed;
  context.interrupted = std::move(interrupted);
  return context;
}

}  // namespace crucible
