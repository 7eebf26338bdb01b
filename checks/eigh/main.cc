// eigh_harness: serves the harness protocol for one CPU eigh library.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/command_line.h"
#include "base/json.h"
#include "checks/eigh/cpu_harness.h"
#include "checks/harness/machine.h"
#include "checks/harness/protocol_server.h"

int main(int argc, char** argv) {
  using crucible::eigh::CpuHarness;
  crucible::eigh::CpuHarnessOptions options;
  bool peer = false, families = false;
  CLI::App app(
      "Checks and times one CPU eigh library over the harness protocol "
      "(docs/target_protocol.md): JSON Lines on CRUCIBLE_REQUEST_FD / CRUCIBLE_REPLY_FD.",
      "eigh_harness");
  app.add_option("--library", options.worker.library, "shared library with the ABI of eigh_cpu.h");
  app.add_option("--threads", options.worker.threads,
                 "threads it may use (default: every allowed CPU)")
      ->check(CLI::Range(1, 1024))
      ->default_val(static_cast<int>(crucible::AllowedCpus().size()));
  app.add_option("--target", options.target, "the name reported by hello")->capture_default_str();
  app.add_flag("--cuda", options.worker.cuda,
               "the library is for the GPU, with the ABI of crucible/eigh.h");
  app.add_flag("--peer", peer, "a peer: exempt from the rule that a kernel does its own work");
  app.add_flag(
      "--admit-any", options.worker.admit_any,
      "for [[exploit]] kernels alone: do not refuse it for what its file imports or holds, "
      "so that what meets it at run time is seen");
  app.add_flag("--families", families, "list the kinds of input matrix and exit");
  int code = 0;
  if (!crucible::ParseWords(&app, argc, argv, &code)) return code;
  if (families) {
    for (const auto& family : crucible::eigh::Families())
      fmt::print("{:26} {}\n", family.name, family.what);
    return 0;
  }
  const auto fail = [](const crucible::Error& error) {
    fmt::print(stderr, "eigh_harness: {}\n", error.text);
    return crucible::ExitCode(error);
  };
  if (options.worker.library.empty()) {
    fmt::print(stderr,
               "eigh_harness: read arguments: --library is missing; name the shared "
               "library to check\n");
    return 2;
  }
  // A profiler works in the candidate's process, so that one cannot be secluded; and so nothing that
  // is asked of this harness may decide anything: it checks nothing.
  const bool profiled = std::getenv("CRUCIBLE_PROFILED") != nullptr;
  if (peer || profiled) options.worker.role = crucible::eigh::LibraryRole::kPeer;
  const auto descriptors = crucible::HarnessDescriptorsFromEnvironment();
  if (!descriptors.has_value()) return fail(descriptors.error());
  CpuHarness harness(options);
  using Json = nlohmann::json;
  const auto check = [&](const Json& request) -> crucible::Result<Json> {
    if (!profiled) return harness.Check(request);
    return crucible::Fail(crucible::ErrorKind::kUsage, "check", options.worker.library.string(),
                          "under a profiler its process is not secluded (CRUCIBLE_PROFILED is set)",
                          "check it in a job of its own, with that variable unset");
  };
  crucible::ProtocolServer server({
      {"hello", [&](const Json& request) { return harness.Hello(request); }},
      {"check", check},
      {"prepare", [&](const Json& request) { return harness.Prepare(request); }},
      {"slot", [&](const Json& request) { return harness.Slot(request); }},
  });
  const auto ended = server.Serve(descriptors->request, descriptors->reply);
  if (!ended.has_value()) return fail(ended.error());
  return *ended ? 0 : 1;
}
