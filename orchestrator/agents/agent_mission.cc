#include "orchestrator/agents/agent_mission.h"

#include <fmt/format.h>

#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "missions/templates.h"
#include "orchestrator/agents/cli/cli_tools.h"
#include "orchestrator/agents/cli/run_cli_agent.h"
#include "orchestrator/agents/llm/api_key.h"
#include "orchestrator/agents/llm/make_provider.h"
#include "orchestrator/agents/loop/agent_loop.h"
#include "orchestrator/agents/mission_tools.h"
#include "orchestrator/agents/model_settings.h"
#include "orchestrator/spend.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr auto kAskInterruptedEvery = std::chrono::milliseconds(100);

struct Mission {
  MissionOrder order;
  Target target;
  fs::path folder;
  std::string text;  // mission.md, the brief with it

  static Result<Mission> Read(const fs::path& order_file) {
    Mission mission;
    CRUCIBLE_ASSIGN(mission.order, ReadMissionOrder(order_file));
    CRUCIBLE_ASSIGN(mission.target, LoadTarget(mission.order.target_file));
    mission.folder = mission.order.workspace.Mission(mission.order.id);
    CRUCIBLE_ASSIGN(mission.text, ReadFile(mission.folder / "mission.md"));
    return mission;
  }
};

// A stop token that is asked to stop once `interrupted` says so.
class StopWhen {
 public:
  explicit StopWhen(const std::function<bool()>& interrupted)
      : asks_([this, &interrupted](const std::stop_token& over) {
          while (!over.stop_requested() && !interrupted())
            std::this_thread::sleep_for(kAskInterruptedEvery);
          stop_.request_stop();
        }) {}
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread asks_;  // last: it uses the rest
};

Result<std::string> RunModel(const Mission& mission, const std::function<bool()>& interrupted) {
  const MissionOrder& order = mission.order;
  CRUCIBLE_ASSIGN(const CampaignModel model,
                  ModelFor(order.agent.models, order.flavour, order.seed));
  CRUCIBLE_ASSIGN(const ModelSettings settings, SettingsOf(model));
  CRUCIBLE_ASSIGN(const ApiKey key, KeyFor(settings));
  CRUCIBLE_ASSIGN(const std::unique_ptr<Provider> provider, MakeProvider(settings));
  DropSecretsFromEnvironment();               // the key is read; no child is to inherit it
  ::unsetenv(KeyVariable(settings).c_str());  // whatever it is called

  CRUCIBLE_ASSIGN(const AgentPlace place, AgentPlace::Make(order, mission.target));
  CRUCIBLE_ASSIGN(
      const ToolSet tools,
      MakeTools(ToolsIn(place, order, mission.target, "agent:" + provider->model(), interrupted)));

  const AgentBudget& budget = order.agent.budget;
  LoopSpec spec;
  spec.provider = provider.get();
  spec.tools = &tools;
  spec.system = std::string(SystemTemplate());
  spec.mission = mission.text;
  spec.notes = mission.folder / "notes.md";
  spec.transcript = mission.folder / "transcript.jsonl";
  spec.spend = mission.folder / "spend.json";
  spec.context_tokens = model.context_tokens;
  spec.reply_tokens = model.max_tokens;
  spec.budgets = {.deadline_ms = order.deadline_ms,
                  .turns = budget.turns,
                  .tokens = budget.tokens,
                  .usd = budget.usd,
                  .gpu_seconds = budget.device_seconds,
                  .format_errors = budget.format_errors,
                  .idle_turns = IdleTurnsOf(budget, order.flavour)};
  spec.gpu_seconds = [&order] {
    return DeviceSeconds(order.workspace.LogFile(), order.id).value_or(0);
  };
  spec.interrupted = interrupted;
  const StopWhen stop(interrupted);
  spec.stop = stop.token();
  if (!key.empty()) spec.secrets = {key.Reveal()};
  CRUCIBLE_ASSIGN(const LoopOutcome outcome, RunAgentLoop(spec));
  CRUCIBLE_TRY(WriteLoopResult(mission.folder, outcome));
  return fmt::format("{}{}{}", ToText(outcome.end), outcome.detail.empty() ? "" : ": ",
                     outcome.detail);
}

Result<> WriteCliSpend(const fs::path& file, const std::string& model,
                       const CliAgentOutcome& outcome, std::int64_t wall_ms) {
  LoopSpend spend;
  spend.model = model;
  spend.turns = outcome.turns;
  spend.usage = outcome.usage;
  spend.usage_known = outcome.usage_known;
  spend.usd = outcome.usd;
  spend.wall_ms = wall_ms;
  return WriteFileAtomically(file, SpendText(spend) + "\n");
}

Result<CliProfile> ProfileOf(const AgentSettings& settings) {
  if (!settings.profile.empty()) return FindCliProfile(settings.profile);
  return CommandProfile(settings.command);
}

// Keys of the program that are in the key file alone, into this process's environment: from there
// the program gets its own, and from there they are kept out of its transcript.
Result<> TakeKeysFromFile(const CliProfile& profile) {
  for (const std::string& name : profile.key_variables) {
    CRUCIBLE_ASSIGN(const ApiKey key, FindKey(name));
    if (!key.empty()) ::setenv(name.c_str(), key.Reveal().c_str(), /*overwrite=*/0);
  }
  return {};
}

// What a program needs from outside to reach its provider: the keys of its own, where their
// servers are, and a proxy. Named, not copied: a value never stands on a command line.
std::vector<std::string> InheritedBy(const CliProfile& profile) {
  std::vector<std::string> names = profile.key_variables;
  for (const char* name :
       {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
        "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"})
    names.emplace_back(name);
  return names;
}

// The program's own sandbox: the mission's, with the network where the campaign gives it one.
Result<SandboxSpec> ProgramSandbox(const AgentPlace& place, const AgentSettings& settings,
                                   CliProfile* profile) {
  SandboxSpec sandbox = *place.sandbox();
  sandbox.network = settings.network;
  if (settings.network) sandbox.inherited = InheritedBy(*profile);
  for (const std::string& folder : settings.readable) sandbox.readable.emplace_back(folder);
  // Its PATH inside is not the person's: the program is named as it is found here.
  CRUCIBLE_ASSIGN(const fs::path program, FindExecutable(profile->argv.front()));
  profile->argv.front() = program.string();
  sandbox.environment["PATH"] =
      SandboxPath(sandbox.programs) + ":" + program.parent_path().string();
  return sandbox;
}

// The mission's tools for the program, each in its own way.
Result<> GiveTools(const MissionOrder& order, AgentPlace* place, CliAgentSpec* spec) {
  std::vector<std::string> server = {(order.workspace.programs / "crucible").string(), "mcp"};
  fs::path home;
  if (place->sandbox()) {
    CRUCIBLE_TRY(place->ServeTools(order, "agent:" + spec->profile.name));
    home = place->sandbox()->scratch;
    spec->mission += CliTemplate();
  } else {
    const std::string file = (order.workspace.Mission(order.id) / "mission.json").string();
    server.insert(server.end(),
                  {"--mission", file, "--unsandboxed", "--author", "agent:" + spec->profile.name});
  }
  return OfferTools(server, home, spec);
}

Result<std::string> RunProgram(const Mission& mission, const std::function<bool()>& interrupted) {
  const MissionOrder& order = mission.order;
  const AgentBudget& budget = order.agent.budget;
  CliAgentSpec spec;
  CRUCIBLE_ASSIGN(spec.profile, ProfileOf(order.agent));
  CRUCIBLE_TRY(TakeKeysFromFile(spec.profile));
  CRUCIBLE_ASSIGN(AgentPlace place, AgentPlace::Make(order, mission.target));
  spec.model = order.agent.cli_model;
  spec.mission = mission.text;
  spec.directory = order.worktree;
  spec.environment = order.workspace.Environment(order.id, order.run_nonce);
  const std::int64_t start_ms = SystemClock().UnixMs();
  spec.limits.turns = budget.turns;
  spec.limits.tokens = budget.tokens;
  spec.limits.usd = budget.usd;
  spec.limits.silence_ms = budget.silence_ms;
  spec.limits.wall_ms = std::max<std::int64_t>(1, order.deadline_ms - start_ms);
  spec.prices = PricesOf(order.agent.cli_usd);
  spec.transcript = mission.folder / "transcript.jsonl";
  // As it happens: for people who look, for the campaign's budget, and for a kill's survivors.
  const auto write_spend = [&](const CliAgentOutcome& used) {
    return WriteCliSpend(mission.folder / "spend.json", spec.profile.name, used,
                         SystemClock().UnixMs() - start_ms);
  };
  spec.on_spend = [&](const CliAgentOutcome& used) {
    (void)write_spend(used);  // the last one says so where it cannot be written
  };
  if (budget.device_seconds > 0)
    spec.used_up = [&order, &budget] {
      return DeviceTimeUsedUp(order.workspace, order.id, budget.device_seconds);
    };
  CRUCIBLE_TRY(GiveTools(order, &place, &spec));
  spec.sandboxed = place.sandbox().has_value();
  if (spec.sandboxed) {
    CRUCIBLE_ASSIGN(const SandboxSpec sandbox, ProgramSandbox(place, order.agent, &spec.profile));
    spec.wrap = [sandbox](SubprocessSpec command) {
      return Sandboxed(sandbox, std::move(command));
    };
  }
  const StopWhen stop(interrupted);
  spec.stop = stop.token();
  CRUCIBLE_ASSIGN(const CliAgentOutcome outcome, RunCliAgent(spec));
  CRUCIBLE_TRY(write_spend(outcome));
  const std::string how =
      ToString(outcome.kind) + (outcome.detail.empty() ? "" : ": ") + outcome.detail;
  using Kind = CliAgentOutcome::Kind;
  if (outcome.kind == Kind::kHung || outcome.kind == Kind::kCrashed)
    return Fail(ErrorKind::kUnavailable, "run agent", spec.profile.name, how,
                "see " + spec.transcript.string());
  // The branch has what it committed. A result it left itself (the MCP tools' report) stands.
  if (ReadMissionResult(mission.folder)) return how;
  if (outcome.kind == Kind::kBudget || outcome.kind == Kind::kStopped)
    CRUCIBLE_TRY(WriteMissionResult(mission.folder, {"budget", how}));
  return how;
}

}  // namespace

Result<std::string> RunAgentMission(const fs::path& order_file,
                                    const std::function<bool()>& interrupted) {
  CRUCIBLE_ASSIGN(const Mission mission, Mission::Read(order_file));
  if (mission.order.agent.kind == "llm") return RunModel(mission, interrupted);
  if (mission.order.agent.kind == "cli") return RunProgram(mission, interrupted);
  return Fail(ErrorKind::kUsage, "run agent of", mission.order.id,
              "its kind is " + mission.order.agent.kind, "this command is for kinds llm and cli");
}

}  // namespace crucible
