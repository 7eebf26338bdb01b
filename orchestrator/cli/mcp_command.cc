#include "orchestrator/cli/mcp_command.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <ostream>

#include "missions/templates.h"
#include "orchestrator/agents/mcp/mcp_server.h"
#include "orchestrator/cli/mission_tools.h"

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
  CRUCIBLE_ASSIGN(ToolContext context, ContextOfMission(file, author, unsandboxed));
  context.interrupted = [] { return stop_call || stopped != 0; };
  CRUCIBLE_ASSIGN(const ToolSet tools, MakeTools(context));
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
  app.add_option("--mission", file, "missions/ID/mission.json (in .crucible/)")->required();
  app.add_option("--author", author, "how the log names who works (default: agent:mcp)");
  app.add_flag("--unsandboxed", unsandboxed, "run commands and builds without bubblewrap");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto served = Serve(file, author, unsandboxed);
  return served ? 0 : Report(served.error(), err);
}

}  // namespace crucible
