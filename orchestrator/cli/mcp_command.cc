#include "orchestrator/cli/mcp_command.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <ostream>

#include "missions/templates.h"
#include "orchestrator/agents/mcp/mcp_server.h"
#include "orchestrator/agents/mcp/mcp_socket.h"
#include "orchestrator/agents/mission_tools.h"

namespace crucible {
namespace {

std::atomic<bool> stop_call = false;
volatile sig_atomic_t stopped = 0;

void StopOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stopped = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
}

Result<> Serve(const std::string& file, const std::string& author, bool unsandboxed) {
  DropSecretsFromEnvironment();
  CRUCIBLE_ASSIGN(MissionOrder order, ReadMissionOrder(file));
  CRUCIBLE_ASSIGN(const Target target, LoadTarget(order.target_file));
  order.agent.unsandboxed = unsandboxed;
  CRUCIBLE_ASSIGN(const AgentPlace place, AgentPlace::Make(order, target));
  CRUCIBLE_ASSIGN(
      const ToolSet tools,
      MakeTools(ToolsIn(place, order, target, author, [] { return stop_call || stopped != 0; })));
  StopOnSignals();
  McpSpec spec;
  spec.tools = &tools;
  spec.version = CRUCIBLE_VERSION;
  spec.instructions = std::string(SystemTemplate());
  spec.stop_call = &stop_call;
  spec.interrupted = [] { return stopped != 0; };
  return ServeMcp(spec);
}

}  // namespace

int McpCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Serve a mission's tools on stdin and stdout by the Model Context Protocol, with the same\n"
      "limits as an agent's: its files, its budget, numbers from the judge alone.",
      "crucible mcp");
  std::string file, author = "agent:mcp";
  bool unsandboxed = false;
  app.add_option("--mission", file,
                 "missions/ID/mission.json (in .crucible/); default, in a mission's sandbox: that "
                 "mission's own");
  app.add_option("--author", author, "how the log names who works (default: agent:mcp)");
  app.add_flag("--unsandboxed", unsandboxed, "run commands and builds without bubblewrap");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto served = file.empty() ? RelayMcp(kSandboxTools, STDIN_FILENO, STDOUT_FILENO)
                                   : Serve(file, author, unsandboxed);
  return served ? 0 : Report(served.error(), err);
}

}  // namespace crucible
