// mcp_server.h: the tools of a mission for any client of the Model Context Protocol, over two
// pipes.
//
// JSON-RPC 2.0, one message a line. Calls run one after the other, in the order they came, on a
// thread of their own; meanwhile pings are answered, a cancelled call is stopped, and a call that
// asked for progress is told every few seconds that it still runs (so that a client's time-out does
// not end a long comparison). The end of the input ends the running call and then the server.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "orchestrator/agents/tools/tool.h"

namespace crucible {

struct McpSpec {
  const ToolSet* tools = nullptr;
  std::string version;       // of crucible
  std::string instructions;  // how to work, for the client's model
  int in = 0, out = 1;       // descriptors; not closed
  // Set while the running call is to end: ToolContext::interrupted reads it.
  std::atomic<bool>* stop_call = nullptr;
  std::function<bool()> interrupted;  // asked once a second; true ends the server
  std::chrono::milliseconds progress_every{5000};
};

// Returns at the end of the input or when interrupted. kIo when the output is gone.
Result<> ServeMcp(const McpSpec& spec);

}  // namespace crucible
