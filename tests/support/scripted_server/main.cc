// scripted_server SCENARIO.json [--port N] [--port-file FILE]: plays a language model by a script.
//
// Prints the port and serves until it is told to end (SIGTERM, SIGINT). The port file is written
// whole once the server listens, so that a script can wait for it.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/files.h"
#include "tests/support/scripted_server/scripted_server.h"

namespace {

constexpr const char* kUsage =
    "usage: scripted_server SCENARIO.json [--port N] [--port-file FILE]\n"
    "Answers /v1/messages and /v1/chat/completions on 127.0.0.1 by a script; GET /requests shows\n"
    "what it was asked. The scenario's form is in docs/llm.md.\n";

int Complain(const crucible::Error& error) {
  std::fprintf(stderr, "scripted_server: %s\n", error.text.c_str());
  return crucible::ExitCode(error);
}

}  // namespace

int main(int argc, char** argv) {
  std::string scenario_path, port_file;
  int port = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--port-file" && i + 1 < argc) {
      port_file = argv[++i];
    } else if (word == "--port" && i + 1 < argc) {
      port = std::atoi(argv[++i]);
    } else if (scenario_path.empty() && !word.starts_with("-")) {
      scenario_path = word;
    } else {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  if (scenario_path.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  // Blocked before any thread starts, so that only sigwait below gets them.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  const auto text = crucible::ReadFile(scenario_path);
  if (!text) return Complain(text.error());
  const auto server = crucible::ScriptedServer::Start(*text, port);
  if (!server) return Complain(server.error());
  const std::string number = std::to_string((*server)->port());
  if (!port_file.empty())
    if (const auto written = crucible::WriteFileAtomically(port_file, number + "\n"); !written)
      return Complain(written.error());
  std::printf("%s\n", number.c_str());
  std::fflush(stdout);
  int signal_number = 0;
  ::sigwait(&ends, &signal_number);
  return 0;
}
