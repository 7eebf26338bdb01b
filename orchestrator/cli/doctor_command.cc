#include "orchestrator/cli/doctor_command.h"

#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/json.h"
#include "base/paths.h"
#include "missions/campaign_file.h"
#include "orchestrator/agents/agent_ready.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/doctor.h"
#include "orchestrator/prove_harness.h"
#include "orchestrator/repository.h"

namespace crucible {
namespace {

const char* ToText(Health health) {
  return health == Health::kOk ? "ok" : health == Health::kWarn ? "warn" : "FAIL";
}

// Builds main and runs every cheating kernel of the target; the table, or its JSON.
Result<int> ShowExploits(const std::string& target_name, const std::string& branch, bool as_json,
                         std::ostream& out) {
  CRUCIBLE_ASSIGN(const Workspace workspace, FindWorkspace());
  CRUCIBLE_ASSIGN(const std::filesystem::path file, FindTargetFile(target_name));
  CRUCIBLE_ASSIGN(const Target target, LoadTarget(file));
  CRUCIBLE_ASSIGN(const std::filesystem::path here, CurrentFolder());
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(here, branch));
  CRUCIBLE_TRY(PrepareHome(workspace));
  CRUCIBLE_ASSIGN(const std::string tip, repository.MainTip());
  if (target.exploits.empty())
    return Fail(ErrorKind::kUsage, "run the cheating kernels of", target.name, "it names none",
                "add [[exploit]] tables (docs/target_protocol.md)");
  CRUCIBLE_ASSIGN(const HarnessProof proof,
                  RunExploitSuite({&workspace, &target, &repository, ""}, tip));
  if (as_json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const ExploitRow& row : proof.rows)
      rows.push_back({{"cheat", row.name},
                      {"expects", row.expects},
                      {"seen", row.seen},
                      {"caught", row.caught}});
    out << JsonText({{"target", target.name},
                     {"holds", proof.holds},
                     {"reason", proof.reason},
                     {"cheats", std::move(rows)}},
                    2)
        << "\n";
    return proof.holds ? 0 : 1;
  }
  fmt::print(out, "{:<22} {:<8} {:<44} {}\n", "cheat", "verdict", "expected reason", "seen reason");
  for (const ExploitRow& row : proof.rows)
    fmt::print(out, "{:<22} {:<8} {:<44} {}\n", row.name, row.caught ? "caught" : "MISSED",
               row.expects, row.seen);
  fmt::print(out, "{}: {}\n", proof.holds ? "ok" : "FAIL", proof.reason);
  return proof.holds ? 0 : 1;
}

Result<std::vector<Finding>> ExamineAgents(const std::string& file) {
  CRUCIBLE_ASSIGN(const CampaignFile campaign, LoadCampaignFile(file));
  std::vector<Finding> findings;
  if (const auto ready = AgentsReady(campaign.agent, campaign.planner); !ready)
    findings.push_back({Health::kFail, "agents", ready.error().text, ""});
  for (const EndpointFinding& model : ProbeModels(campaign.agent, campaign.planner))
    findings.push_back({!model.usable ? Health::kFail
                        : model.sure  ? Health::kOk
                                      : Health::kWarn,
                        "model " + model.model, model.found, model.next});
  if (findings.empty())
    findings.push_back({Health::kOk, "agents", "kind " + campaign.agent.kind + ": ready", ""});
  return findings;
}

}  // namespace

int DoctorCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Say what of the machine and the repository is ready", "crucible doctor");
  bool as_json = false;
  app.add_flag("--json", as_json, "Print JSON");
  bool exploits = false;
  std::string target = "eigh_cpu";
  app.add_flag("--exploits", exploits,
               "Run the target's cheating kernels instead: is each caught for its own reason?");
  app.add_option("--target", target, "… of this target (default: eigh_cpu)");
  std::string branch;
  AddBranchOption(&app, &branch);
  std::string campaign;
  app.add_option("--campaign", campaign, "Ask also whether this campaign file's models answer");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  if (exploits) {
    const auto shown = ShowExploits(target, branch, as_json, out);
    return shown ? *shown : Report(shown.error(), err);
  }
  const auto here = CurrentFolder();
  if (!here) return Report(here.error(), err);
  std::vector<Finding> findings = Examine(*here, branch, ProgramDirectory());
  if (!campaign.empty()) {
    const auto asked = ExamineAgents(campaign);
    if (!asked) return Report(asked.error(), err);
    findings.insert(findings.end(), asked->begin(), asked->end());
  }
  if (as_json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings)
      list.push_back({{"health", ToText(finding.health)},
                      {"what", finding.what},
                      {"found", finding.found},
                      {"next", finding.next}});
    out << JsonText(list, 2) << "\n";
  } else {
    for (const Finding& finding : findings)
      fmt::print(out, "{:<5} {:<18} {}{}{}\n", ToText(finding.health), finding.what, finding.found,
                 finding.next.empty() ? "" : " -> ", finding.next);
  }
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.health == Health::kFail; })
             ? 1
             : 0;
}

}  // namespace crucible
