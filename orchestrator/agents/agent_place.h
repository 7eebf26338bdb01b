// agent_place.h: where the commands of a mission's agent run: its sandbox and its broker.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "checks/target.h"
#include "gpu_runner/broker.h"
#include "orchestrator/agents/mcp/mcp_socket.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/agents/sandbox.h"

namespace crucible {

class AgentPlace {
 public:
  // kUnavailable where bubblewrap does not work and the order does not say `unsandboxed`.
  static Result<AgentPlace> Make(const MissionOrder& order, const Target& target);
  AgentPlace(AgentPlace&&) = default;
  AgentPlace& operator=(AgentPlace&&) = delete;
  ~AgentPlace();  // ends the broker and what it runs

  // Serves the mission's tools (`crucible mcp`) to what runs in the sandbox, under the order's
  // limits; entries are logged as by `author`. Nothing to do without a sandbox.
  Result<> ServeTools(const MissionOrder& order, const std::string& author);

  // Nothing: the agent runs as it is.
  const std::optional<SandboxSpec>& sandbox() const { return sandbox_; }

 private:
  AgentPlace() = default;
  std::optional<SandboxSpec> sandbox_;
  std::filesystem::path folder_;  // of the socket
  std::filesystem::path mark_;    // names it, for a sweep after a kill
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<McpSocket> tools_;
};

// Removes what a killed agent process left of its broker.
void SweepBroker(const Workspace& workspace, const std::string& mission);

}  // namespace crucible
