#include "missions/agent_settings.h"

#include "missions/json_fields.h"

namespace crucible {
namespace {

using nlohmann::json;

template <class Prices, class Field>
void EachPrice(Prices& usd, Field field) {
  field("usd_input", usd.input);
  field("usd_output", usd.output);
  field("usd_cache_read", usd.cache_read);
  field("usd_cache_write", usd.cache_write);
}

template <class Model, class Field>
void EachField(Model& model, Field field) {
  field("name", model.name);
  field("provider", model.provider);
  field("key_variable", model.key_variable);
  field("weight", model.weight);
  field("flavours", model.flavours);
  EachPrice(model.usd, field);
  field("stream", model.stream);
  field("max_tokens", model.max_tokens);
  field("context_tokens", model.context_tokens);
}

template <class Budget, class Field>
void EachLimit(Budget& budget, Field field) {
  field("turns", budget.turns);
  field("tokens", budget.tokens);
  field("usd", budget.usd);
  field("device_seconds", budget.device_seconds);
  field("format_errors", budget.format_errors);
  field("idle_turns", budget.idle_turns);
  field("silence_ms", budget.silence_ms);
}

template <class Settings, class Field>
void EachSetting(Settings& settings, Field field) {
  field("kind", settings.kind);
  field("command", settings.command);
  field("profile", settings.profile);
  field("cli_model", settings.cli_model);
  EachPrice(settings.cli_usd, field);
  field("unsandboxed", settings.unsandboxed);
  field("network", settings.network);
  field("readable", settings.readable);
}

template <class Planner, class Field>
void EachPlannerSetting(Planner& planner, Field field) {
  field("wall_ms", planner.wall_ms);
  field("candidates", planner.candidates);
  field("tokens", planner.tokens);
  field("usd", planner.usd);
}

json ModelJson(const CampaignModel& model) {
  json object;
  EachField(model, PutInto(object));
  return object;
}

CampaignModel ModelFrom(const json& object) {
  CampaignModel model;
  EachField(model, GetFrom(object));
  return model;
}

constexpr char kNext[] = "they are written by the orchestrator; run the mission through a campaign";

}  // namespace

int IdleTurnsOf(const AgentBudget& budget, const std::string& flavour) {
  if (budget.idle_turns != kIdleByFlavour) return budget.idle_turns;
  if (flavour == "scout") return 120;  // reads the kernel, the log and the brief, and edits nothing
  if (flavour == "explorer") return 60;   // thinks an architecture through before its first line
  if (flavour == "precision") return 40;  // finds where an error comes from before it edits
  return 25;
}

json ToJson(const AgentSettings& settings) {
  json object;
  EachSetting(settings, PutInto(object));
  object["models"] = json::array();
  for (const CampaignModel& model : settings.models) object["models"].push_back(ModelJson(model));
  EachLimit(settings.budget, PutInto(object["budget"]));
  return object;
}

Result<AgentSettings> AgentSettingsFromJson(const json& object) {
  return ReadFields("agent settings", kNext, [&]() -> Result<AgentSettings> {
    AgentSettings settings;
    EachSetting(settings, GetFrom(object));
    for (const json& item : object.at("models")) settings.models.push_back(ModelFrom(item));
    EachLimit(settings.budget, GetFrom(object.at("budget")));
    return settings;
  });
}

json ToJson(const PlannerSettings& planner) {
  json object;
  EachPlannerSetting(planner, PutInto(object));
  object["model"] = ModelJson(planner.model);
  return object;
}

Result<PlannerSettings> PlannerSettingsFromJson(const json& object) {
  return ReadFields("planner settings", kNext, [&]() -> Result<PlannerSettings> {
    PlannerSettings planner;
    EachPlannerSetting(planner, GetFrom(object));
    planner.model = ModelFrom(object.at("model"));
    return planner;
  });
}

}  // namespace crucible
