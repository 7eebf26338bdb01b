#include "orchestrator/agents/agent_ready.h"

#include "base/subprocess.h"
#include "orchestrator/agents/cli/cli_profile.h"
#include "orchestrator/agents/llm/make_provider.h"
#include "orchestrator/agents/llm/probe.h"
#include "orchestrator/agents/model_settings.h"
#include "orchestrator/agents/sandbox.h"

namespace crucible {
namespace {

Result<> ProgramReady(const AgentSettings& settings) {
  if (settings.profile.empty()) return {};
  CRUCIBLE_ASSIGN(const CliProfile profile, FindCliProfile(settings.profile));
  if (!FindExecutable(profile.argv.front()))
    return Fail(ErrorKind::kUnavailable, "find the agent's program", profile.argv.front(),
                "it is not in PATH", "install it, or choose another profile in the campaign file");
  if (!settings.unsandboxed)
    return Fail(ErrorKind::kUsage, "start agents of profile", profile.name,
                "it reaches its provider over the network, which the sandbox does not give",
                "write unsandboxed = true in [agent] where its own permission rules are enough");
  return {};
}

}  // namespace

Result<> AgentsReady(const AgentSettings& settings) {
  if (settings.kind != "llm" && settings.kind != "cli") return {};
  for (const CampaignModel& model : settings.models) {
    CRUCIBLE_ASSIGN(const ModelSettings reached, SettingsOf(model));
    CRUCIBLE_TRY(MakeProvider(reached));  // says so where the key is missing
  }
  if (settings.kind == "cli") CRUCIBLE_TRY(ProgramReady(settings));
  return settings.unsandboxed ? Result<>{} : SandboxWorks();
}

std::vector<EndpointFinding> ProbeModels(const AgentSettings& settings) {
  std::vector<EndpointFinding> findings;
  for (const CampaignModel& model : settings.models) {
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
