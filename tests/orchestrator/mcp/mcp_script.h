// mcp_script.h: an MCP client in bash, for tests: a coprocess, asked line by line. Pure text.
#pragma once

#include <string>

#include "base/json.h"

namespace crucible {

// Starts `server` (shell words); then Asks(…) in order. Each answer is a line of stdout.
inline std::string StartsMcp(const std::string& server) {
  return "set -u\ncoproc MCP { " + server +
         "; }\nmcp=$MCP_PID\n"
         "ask() { printf '%s\\n' \"$1\" >&\"${MCP[1]}\"; read -r answer <&\"${MCP[0]}\" || exit 9; "
         "printf '%s\\n' \"$answer\"; }\n"
         R"(ask '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}')"
         "\n";
}

inline std::string AsksMcp(const std::string& tool, const nlohmann::json& arguments) {
  const nlohmann::json call = {{"jsonrpc", "2.0"},
                               {"id", 1},
                               {"method", "tools/call"},
                               {"params", {{"name", tool}, {"arguments", arguments}}}};
  std::string quoted;
  for (const char c : call.dump()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "ask '" + quoted + "'\n";
}

// Closes the input and waits for the server's end.
inline std::string EndsMcp() { return "eval \"exec ${MCP[1]}>&-\"; wait \"$mcp\"\n"; }

}  // namespace crucible
