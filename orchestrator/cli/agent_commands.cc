// agent_commands.cc: crucible propose, agent, plan and integrate, the campaign's own child processes.
//
// They can be run by hand on a mission's folder, which is how a person looks into one.
#include <fmt/ostream.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "orchestrator/agents/agent_mission.h"
#include "orchestrator/agents/planner/choose_plan.h"
#include "orchestrator/agents/proposer.h"
#include "orchestrator/agents/tools/tool_context.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/integrate.h"

namespace crucible {
namespace {

volatile sig_atomic_t stopped = 0;

}  // namespace

int AgentCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Carry out a mission with a model or a command-line agent (started by a campaign)",
               "crucible agent");
  std::string file;
  app.add_option("MISSION_JSON", file, "missions/ID/mission.json")->required();
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  struct sigaction action {};
  action.sa_handler = [](int) { stopped = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  const auto ended = RunAgentMission(file, [] { return stopped != 0; });
  if (!ended) return Report(ended.error(), err);
  fmt::print(out, "{}\n", *ended);
  return 0;
}

int PlanCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Let a model choose among the planner's candidates (started by a campaign)",
               "crucible plan");
  std::string folder;
  app.add_option("FOLDER", folder, "campaigns/NAME/planner/N, with question.json")->required();
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto choice = RunPlanner(folder, {});  // a signal ends it: the policy's first is taken
  if (!choice) return Report(choice.error(), err);
  fmt::print(out, "candidate {}: {}\n", choice->index + 1,
             choice->by_model() ? choice->why : choice->fallback);
  return 0;
}

int ProposeCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Carry out a mission with the built-in proposer (started by a campaign)",
               "crucible propose");
  std::string file;
  app.add_option("MISSION_JSON", file, "missions/ID/mission.json")->required();
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto result = RunProposer(file);
  if (!result) return Report(result.error(), err);
  fmt::print(out, "{}: {}", result->outcome, result->report);
  return 0;
}

int IntegrateCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Take an ended mission's commit to main, or say why not (started by a campaign)",
               "crucible integrate");
  std::string file;
  app.add_option("MISSION_JSON", file, "missions/ID/mission.json")->required();
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto order = ReadMissionOrder(file);
  if (!order) return Report(order.error(), err);
  DropSecretsFromEnvironment();  // what is built and judged is an agent's
  const auto result = Integrate(*order, false);
  if (!result) return Report(result.error(), err);
  fmt::print(out, "{}: {}\n", result->outcome, result->text);
  return 0;
}

}  // namespace crucible
