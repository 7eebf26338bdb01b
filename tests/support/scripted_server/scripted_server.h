// scripted_server.h: an HTTP server on loopback that answers as a language model would, by a
// script.
//
// Speaks Messages (/v1/messages) and Chat Completions (/v1/chat/completions), streaming or not,
// lists models (/v1/models) and shows what it was asked (/requests). Every fault that a provider
// must survive is made here for real: dropped connections, silence, broken JSON. Runs its own
// threads; its methods may be called from any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/support/scripted_server/scenario.h"

namespace crucible {

struct RecordedRequest {
  std::string method, path, body;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string step;                            // what it was answered with: "c0m0t1", or an error
};

class ScriptedServer {
 public:
  // Listens on 127.0.0.1 when it returns. Port 0: one that is free.
  static Result<std::unique_ptr<ScriptedServer>> Start(Scenario scenario, int port = 0);
  // The same from the scenario's text.
  static Result<std::unique_ptr<ScriptedServer>> Start(const std::string& scenario_json,
                                                       int port = 0);
  ~ScriptedServer();  // ends every open reply, also one that hangs

  int port() const;
  std::string base_url() const;  // "http://127.0.0.1:PORT"
  std::vector<RecordedRequest> requests() const;

 private:
  struct Impl;
  explicit ScriptedServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace crucible
