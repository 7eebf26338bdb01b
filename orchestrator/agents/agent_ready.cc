#include "orchestrator/agents/agent_ready.h"

#include <algorithm>
#include <filesystem>

#include "base/subprocess.h"
#include "orchestrator/agents/cli/cli_profile.h"
#include "orchestrator/agents/llm/api_key.h"
#include "orchestrator/agents/llm/make_provider.h"
#include "orchestrator/agents/llm/probe.h"
#include "orchestrator/agents/model_settings.h"
#include "orchestrator/agents/sandbox.h"

namespace crucible {
namespace {

bool LiesIn(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto ends = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return ends.first == folder.end();
}

// The sandbox shows the system's folders and those that the campaign names.
Result<> ShownInside(const std::filesystem::path& program,
                     const std::vector<std::string>& readable) {
  std::error_code ignored;
  for (const auto& file : {program, std::filesystem::canonical(program, ignored)}) {
    bool shown = LiesIn(file, "/usr") || LiesIn(file, "/bin") || LiesIn(file, "/sbin");
    for (const std::string& folder : readable) shown = shown || LiesIn(file, folder);
    if (!shown)
      return Fail(ErrorKind::kUsage, "show agents their program", file.string(),
                  "the sandbox hides the folder it is in",
                  "add the folder it is installed in to readable = [\"…\"] in [agent]");
  }
  return {};
}

Result<> ProgramReady(const AgentSettings& settings) {
  if (settings.profile.empty()) return {};
  CRUCIBLE_ASSIGN(const CliProfile profile, FindCliProfile(settings.profile));
  const auto program = FindExecutable(profile.argv.front());
  if (!program)
    return Fail(ErrorKind::kUnavailable, "find the agent's program", profile.argv.front(),
                "it is not in PATH", "install it, or choose another profile in the campaign file");
  for (const std::string& name : profile.key_variables) CRUCIBLE_TRY(FindKey(name));
  if (settings.unsandboxed) return {};
  if (!settings.network)
    return Fail(ErrorKind::kUsage, "start agents of profile", profile.name,
                "network = false, and it reaches its provider over the network",
                "remove that line: the sandbox then has the network and nothing else more");
  return ShownInside(*program, settings.readable);
}

}  // namespace

Result<> AgentsReady(const AgentSettings& settings, const PlannerSettings& planner) {
  if (planner.on()) {
    CRUCIBLE_ASSIGN(const ModelSettings reached, SettingsOf(planner.model));
    CRUCIBLE_TRY(MakeProvider(reached));
  }
  if (settings.kind != "llm" && settings.kind != "cli") return {};
  for (const CampaignModel& model : settings.models) {
    CRUCIBLE_ASSIGN(const ModelSettings reached, SettingsOf(model));
    CRUCIBLE_TRY(MakeProvider(reached));  // says so where the key is missing
  }
  if (settings.kind == "cli") CRUCIBLE_TRY(ProgramReady(settings));
  return settings.unsandboxed ? Result<>{} : SandboxWorks();
}

std::vector<EndpointFinding> ProbeModels(const AgentSettings& settings,
                                         const PlannerSettings& planner) {
  std::vector<EndpointFinding> findings;
  std::vector<CampaignModel> models = settings.models;
  if (planner.on()) models.push_back(planner.model);
  for (const CampaignModel& model : models) {
    EndpointFinding finding{.model = model.name};
    if (const auto reached = SettingsOf(model)) {
      const EndpointReport report = ProbeEndpoint(*reached);
      finding.usable = report.state != EndpointReport::State::kUnusable;
      finding.sure = report.state == EndpointReport::State::kReady;
      finding.found = report.found;
      finding.next = report.next;
    } else {
      finding.found = reached.error().text;
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace crucible
