// main.cc: `crucible COMMAND …`: finds the command and hands it its words.
#include <csignal>
#include <cstring>
#include <iostream>

#include "base/output.h"
#include "gpu_runner/gpu_command.h"
#include "orchestrator/cli/brief_command.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/dashboard_command.h"
#include "orchestrator/cli/doctor_command.h"
#include "orchestrator/cli/log_command.h"
#include "orchestrator/cli/mcp_command.h"
#include "orchestrator/cli/profile_command.h"

namespace crucible {
namespace {

struct Command {
  const char* name;
  int (*run)(const Words& words, std::ostream& out, std::ostream& err);
  const char* help;  // empty: the campaign's own, not listed
};

int Gpu(const Words& words, std::ostream&, std::ostream&) { return GpuCommand(words); }

constexpr Command kCommands[] = {
    {"init", InitCommand, "prepare a repository: state folder and results log"},
    {"doctor", DoctorCommand,
     "say what of the machine and the repository is ready, and what is not"},
    {"campaign", CampaignCommand, "launch, status, pause, resume, stop, note"},
    {"mission", MissionCommand, "list, show, add, attach, approve"},
    {"brief", BriefCommand, "compile what the log knows about cases"},
    {"log", LogCommand, "add, show, query, export, import, retest, split, records"},
    {"check", CheckCommand, "build a checkout and run the shared check on it"},
    {"compare", CompareCommand, "build two checkouts and compare them, paired"},
    {"profile", ProfileCommand,
     "build a checkout and measure a case's kernels with Nsight Compute"},
    {"dashboard", DashboardCommand, "write the progress page"},
    {"gpu", Gpu, "run, status, history, cancel, logs: the device's queue"},
    {"mcp", McpCommand, "serve a mission's tools to an MCP client"},
    {"agent", AgentCommand, ""},
    {"plan", PlanCommand, ""},
    {"propose", ProposeCommand, ""},
    {"integrate", IntegrateCommand, ""},
};

int Usage(std::ostream& out, int code) {
  out << "crucible: autonomous kernel-optimisation campaigns\n\nusage: crucible COMMAND …\n\n";
  for (const Command& command : kCommands) {
    if (*command.help == '\0') continue;
    std::string name(command.name);
    name.resize(11, ' ');
    out << "  " << name << command.help << "\n";
  }
  out << "\n`crucible COMMAND --help` says more. Results go to stdout, progress to stderr;\n"
         "exit codes: 0 done, 1 failed, 2 usage, 130 interrupted. State: .crucible/ beside the\n"
         "repository's git directory, or $CRUCIBLE_HOME.\n";
  return code;
}

int Main(int argc, char** argv) {
  // A reader that goes away (`crucible log query | head`) is no reason to die with a signal.
  std::signal(SIGPIPE, SIG_IGN);
  if (argc < 2) return Usage(std::cerr, 2);
  const std::string name = argv[1];
  if (name == "--help" || name == "-h" || name == "help") return Usage(std::cout, 0);
  if (name == "--version") {
    std::cout << "crucible " CRUCIBLE_VERSION "\n";
    return 0;
  }
  for (const Command& command : kCommands)
    if (name == command.name)
      return command.run(Words(argv + 2, argv + argc), std::cout, std::cerr);
  std::cerr << "crucible: run " << name << ": there is no such command; `crucible --help` lists "
            << "them\n";
  return 2;
}

}  // namespace
}  // namespace crucible

int main(int argc, char** argv) { return crucible::FinishOutput(crucible::Main(argc, argv)); }
