// mcp_socket.h: a mission's tools for a program inside its sandbox.
//
// The tools need the log, git and the judge, none of which a sandbox shows. So they are served
// outside, by a `crucible mcp` of the mission's own, on a Unix socket that is bound into the
// sandbox; inside, `crucible mcp` carries its stdin and stdout to that socket. One server at a
// time: a mission's tools have one state. A later client waits for the earlier one's end.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "base/subprocess.h"

namespace crucible {

class McpSocket {
 public:
  // `server` is started anew for each client, its stdin and stdout the connection. `socket` is in a
  // folder of the caller's own (mode 0700).
  static Result<std::unique_ptr<McpSocket>> Start(const std::filesystem::path& socket,
                                                  SubprocessSpec server);
  ~McpSocket();  // ends the server (SIGTERM, then SIGKILL) and the thread
  McpSocket(const McpSocket&) = delete;
  McpSocket& operator=(const McpSocket&) = delete;

 private:
  struct Impl;
  explicit McpSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Inside: both directions until the server's end is over. kNotFound where there is no socket.
Result<> RelayMcp(const std::filesystem::path& socket, int in, int out);

}  // namespace crucible
