#include "missions/agent_settings.h"

#include "base/json.h"

namespace crucible {

using nlohmann::json;

json ToJson(const AgentSettings& settings) {
  json models = json::array();
  for (const CampaignModel& model : settings.models)
    models.push_back({{"name", model.name},
                      {"provider", model.provider},
                      {"key_variable", model.key_variable},
                      {"weight", model.weight},
                      {"flavours", model.flavours},
                      {"usd_input", model.usd_input},
                      {"usd_output", model.usd_output},
                      {"usd_cache_read", model.usd_cache_read},
                      {"usd_cache_write", model.usd_cache_write},
                      {"stream", model.stream},
                      {"max_tokens", model.max_tokens},
                      {"context_tokens", model.context_tokens}});
  const AgentBudget& budget = settings.budget;
  return {{"kind", settings.kind},
          {"command", settings.command},
          {"profile", settings.profile},
          {"cli_model", settings.cli_model},
          {"unsandboxed", settings.unsandboxed},
          {"models", models},
          {"budget",
           {{"turns", budget.turns},
            {"tokens", budget.tokens},
            {"usd", budget.usd},
            {"device_seconds", budget.device_seconds},
            {"format_errors", budget.format_errors},
            {"idle_turns", budget.idle_turns},
            {"silence_ms", budget.silence_ms}}}};
}

Result<AgentSettings> AgentSettingsFromJson(const json& object) {
  try {
    AgentSettings settings;
    object.at("kind").get_to(settings.kind);
    object.at("command").get_to(settings.command);
    object.at("profile").get_to(settings.profile);
    object.at("cli_model").get_to(settings.cli_model);
    object.at("unsandboxed").get_to(settings.unsandboxed);
    for (const json& item : object.at("models")) {
      CampaignModel model;
      item.at("name").get_to(model.name);
      item.at("provider").get_to(model.provider);
      item.at("key_variable").get_to(model.key_variable);
      item.at("weight").get_to(model.weight);
      item.at("flavours").get_to(model.flavours);
      item.at("usd_input").get_to(model.usd_input);
      item.at("usd_output").get_to(model.usd_output);
      item.at("usd_cache_read").get_to(model.usd_cache_read);
      item.at("usd_cache_write").get_to(model.usd_cache_write);
      item.at("stream").get_to(model.stream);
      item.at("max_tokens").get_to(model.max_tokens);
      item.at("context_tokens").get_to(model.context_tokens);
      settings.models.push_back(std::move(model));
    }
    const json& budget = object.at("budget");
    budget.at("turns").get_to(settings.budget.turns);
    budget.at("tokens").get_to(settings.budget.tokens);
    budget.at("usd").get_to(settings.budget.usd);
    budget.at("device_seconds").get_to(settings.budget.device_seconds);
    budget.at("format_errors").get_to(settings.budget.format_errors);
    budget.at("idle_turns").get_to(settings.budget.idle_turns);
    budget.at("silence_ms").get_to(settings.budget.silence_ms);
    return settings;
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kUsage, "read", "agent settings", error.what(),
                "they are written by the orchestrator; run the mission through a campaign");
  }
}

}  // namespace crucible
