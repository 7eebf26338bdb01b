#include "orchestrator/cli/mission_tools.h"

#include "base/files.h"

namespace crucible {
namespace {

Result<> AddSandbox(ToolContext* context) {
  CRUCIBLE_TRY(SandboxWorks());
  const MissionOrder& order = context->order;
  SandboxSpec sandbox;
  sandbox.worktree = order.worktree;
  sandbox.scratch = order.workspace.Mission(order.id) / "scratch";
  sandbox.readable = {order.workspace.programs, order.baseline.main};
  CRUCIBLE_TRY(MakeDirectories(sandbox.scratch));
  context->sandbox = std::move(sandbox);
  context->enter_sandbox = Sandboxed;
  return {};
}

}  // namespace

Result<ToolContext> ContextOfMission(const std::filesystem::path& order_file,
                                     const std::string& author, bool unsandboxed) {
  ToolContext context;
  CRUCIBLE_ASSIGN(context.order, ReadMissionOrder(order_file));
  CRUCIBLE_ASSIGN(context.target, LoadTarget(context.order.target_file));
  context.author = author;
  context.unsandboxed = unsandboxed;
  if (!unsandboxed) CRUCIBLE_TRY(AddSandbox(&context));
  return context;
}

}  // namespace crucible
