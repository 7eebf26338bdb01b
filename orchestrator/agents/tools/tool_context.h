// tool_context.h: the tools of one agent on one mission, and what they need to know.
//
// MakeTools is the only way in: the loop, the MCP server and the tests all get the same set. What
// the tools remember (experiments made, what is held, the last measurement) is kept in the
// mission's folder as it happens, so a set made again for the same mission goes on where the last
// one ended. One thread at a time uses a set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "checks/target.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/agents/sandbox.h"
#include "orchestrator/agents/tools/tool.h"

namespace crucible {

struct ToolLimits {
  std::size_t answer_bytes = 16'000;                 // of one answer to the model
  std::size_t file_bytes = std::size_t{1} << 20;     // of one file written or edited
  std::size_t command_bytes = std::size_t{8} << 20;  // of one command's output, then it is ended
  std::int64_t command_ms = 600'000;                 // the most a command may ask for
  std::int64_t search_ms = 20'000;
};

struct ToolContext {
  MissionOrder order;
  Target target;
  std::string author = "agent";  // of the log's entries: "agent:MODEL"
  ToolLimits limits;
  // Commands and builds run in it; with none, `unsandboxed` must say that this is meant, or
  // run_command is not offered. Its scratch is where HOME and TMPDIR are; builds get their own.
  std::optional<SandboxSpec> sandbox;
  Result<SubprocessSpec> (*enter_sandbox)(const SandboxSpec&,
                                          SubprocessSpec) = nullptr;  // Sandboxed
  bool unsandboxed = false;
  // Asked often, from another thread too, while something runs: true ends it.
  std::function<bool()> interrupted;
};

// kIo when the mission's folder or the log cannot be used; kUsage when its state makes no sense.
Result<ToolSet> MakeTools(const ToolContext& context);

// Removes from this process's environment what looks like a secret (names with KEY, TOKEN, SECRET,
// PASSWORD, CREDENTIAL), so that no build, harness or command inherits it. Call it after the key
// was read and before the first tool; not while other threads run.
void DropSecretsFromEnvironment();

}  // namespace crucible
