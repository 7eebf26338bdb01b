#include "orchestrator/agents/agent_place.h"

#include "base/files.h"
#include "orchestrator/agents/llm/api_key.h"

namespace crucible {
namespace {

constexpr char kBrokerFolder[] = "crucible-broker";

// Says where the socket's folder is. One for each place: a mission may have an agent and an editor.
constexpr char kMark[] = "broker_folder.";

std::filesystem::path BrokerMark(const Workspace& workspace, const std::string& mission,
                                 const std::filesystem::path& folder) {
  return workspace.Mission(mission) / (kMark + folder.filename().string());
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
  sandbox.programs = order.workspace.programs;
  CRUCIBLE_TRY(MakeDirectories(sandbox.scratch));
  // A socket's path is short, a mission's folder may not be.
  CRUCIBLE_ASSIGN(place.folder_, MakeTemporaryDirectory(kBrokerFolder));
  place.mark_ = BrokerMark(order.workspace, order.id, place.folder_);
  CRUCIBLE_TRY(WriteFileAtomically(place.mark_, place.folder_.string()));
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

Result<> AgentPlace::ServeTools(const MissionOrder& order, const std::string& author) {
  if (!sandbox_) return {};
  SubprocessSpec server;
  server.argv = {(order.workspace.programs / "crucible").string(),
                 "mcp",
                 "--mission",
                 (order.workspace.Mission(order.id) / "mission.json").string(),
                 "--author",
                 author};
  server.environment = order.workspace.Environment(order.id, order.run_nonce);
  server.unset = KeyVariables();
  server.err = Stdio::kFile;
  server.log_path = order.workspace.Mission(order.id) / "mcp.log";
  const std::filesystem::path socket = folder_ / "tools";
  CRUCIBLE_ASSIGN(tools_, McpSocket::Start(socket, std::move(server)));
  sandbox_->tools_socket = socket;
  return {};
}

void SweepBroker(const Workspace& workspace, const std::string& mission) {
  std::vector<std::filesystem::path> marks;
  std::error_code ignored;
  for (const auto& item : std::filesystem::directory_iterator(workspace.Mission(mission), ignored))
    if (item.path().filename().string().starts_with(kMark)) marks.push_back(item.path());
  for (const std::filesystem::path& mark : marks) {
    const std::filesystem::path folder = ReadFile(mark).value_or("");
    // The mark lies where agents cannot write; the name is looked at all the same.
    if (folder.filename().string().starts_with(kBrokerFolder)) (void)RemoveTree(folder);
    (void)RemoveTree(mark);
  }
}

AgentPlace::~AgentPlace() {
  tools_.reset();
  broker_.reset();
  if (!folder_.empty()) (void)RemoveTree(folder_);
  if (!mark_.empty()) (void)RemoveTree(mark_);
}

}  // namespace crucible
