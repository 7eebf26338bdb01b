#include "orchestrator/agents/agent_place.h"

#include "base/files.h"

namespace crucible {
namespace {

constexpr char kBrokerFolder[] = "crucible-broker";

std::filesystem::path BrokerMark(const Workspace& workspace, const std::string& mission) {
  return workspace.Mission(mission) / "broker_folder";
}

}  // namespace

Result<AgentPlace> AgentPlace::Make(const MissionOrder& order, const Target& target) {
  AgentPlace place;
  if (order.agent.unsandboxed) return place;
  CRUCIBLE_TRY(SandboxWorks());
  SandboxSpec sandbox;
  sandbox.worktree = order.worktree;
  sandbox.scratch = order.workspace.Mission(order.id) / "scratch";
  sandbox.readable = {order.workspace.programs, order.baseline.main};
  CRUCIBLE_TRY(MakeDirectories(sandbox.scratch));
  // A socket's path is short, a mission's folder may not be.
  CRUCIBLE_ASSIGN(place.folder_, MakeTemporaryDirectory(kBrokerFolder));
  CRUCIBLE_TRY(WriteFileAtomically(BrokerMark(order.workspace, order.id), place.folder_.string()));
  sandbox.broker_socket = place.folder_ / "broker";
  BrokerSpec spec;
  spec.socket = sandbox.broker_socket;
  spec.roots = {order.worktree};
  spec.gpu_run = order.workspace.programs / "gpu_run";
  spec.environment = order.workspace.Environment(order.id, order.run_nonce);
  spec.forced_options = {"--device", target.device};
  spec.sandbox = [sandbox](SubprocessSpec job) { return SandboxedJob(sandbox, std::move(job)); };
  CRUCIBLE_ASSIGN(place.broker_, Broker::Start(std::move(spec)));
  place.sandbox_ = std::move(sandbox);
  return place;
}

void SweepBroker(const Workspace& workspace, const std::string& mission) {
  const auto folder = ReadFile(BrokerMark(workspace, mission));
  if (!folder) return;
  const std::filesystem::path path = *folder;
  // The mark lies where agents cannot write; the name is looked at all the same.
  if (path.filename().string().starts_with(kBrokerFolder)) (void)RemoveTree(path);
  (void)RemoveTree(BrokerMark(workspace, mission));
}

AgentPlace::~AgentPlace() {
  broker_.reset();
  if (!folder_.empty()) (void)RemoveTree(folder_);
}

}  // namespace crucible
