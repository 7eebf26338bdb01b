#include "missions/campaign_reader.h"

namespace crucible {
namespace {

// What [[model]] and [planner] have in common.
void ReadModel(CampaignReader& reader, const toml::table& table, CampaignModel& model) {
  for (const char* key : {"base_url", "key", "api_key"})
    if (table.get(key) != nullptr)
      reader.Complain(*table.get(key), fmt::format("'{}' in a campaign file", key),
                      "keys and addresses come from the environment or $CRUCIBLE_KEY_FILE "
                      "(docs/llm.md)");
  if (!reader.Text(table, "name", model.name))
    reader.Complain(table, "a model without a 'name'", "add name = \"…\"");
  reader.Text(table, "provider", model.provider);
  if (model.provider != "anthropic" && model.provider != "openai")
    reader.Complain(*table.get("provider"), fmt::format("unknown provider '{}'", model.provider),
                    Suggestion(model.provider, {"anthropic", "openai"}));
  reader.Text(table, "key_variable", model.key_variable);
  reader.Bool(table, "stream", model.stream);
  reader.Whole(table, "max_tokens", 16, 1'000'000, model.max_tokens);
  ReadPrices(reader, table, model.usd);
}

}  // namespace

// A cache's prices that are not given are the most that a provider takes, not nothing: a budget in
// dollars must not be outrun by what nobody priced.
void ReadPrices(CampaignReader& reader, const toml::table& table, UsdPrices& prices) {
  constexpr double kDearestWrite = 1.25;
  const toml::table* usd =
      reader.Table(table, "usd", {"input", "output", "cache_read", "cache_write"});
  if (usd == nullptr) return;
  reader.Amount(*usd, "input", prices.input);
  reader.Amount(*usd, "output", prices.output);
  prices.cache_read = prices.input;
  prices.cache_write = kDearestWrite * prices.input;
  reader.Amount(*usd, "cache_read", prices.cache_read);
  reader.Amount(*usd, "cache_write", prices.cache_write);
}

void ReadModels(CampaignReader& reader, const toml::table& root, CampaignFile& file) {
  const toml::node* node = root.get("model");
  if (node == nullptr) {
    if (file.agent.kind == "llm")
      reader.Complain(root, "kind = \"llm\" without a model", "add [[model]] and name = \"…\"");
    return;
  }
  if (file.agent.kind != "llm")
    reader.Complain(*node, fmt::format("[[model]] with kind = \"{}\"", file.agent.kind),
                    "write kind = \"llm\" in [agent], or remove it");
  const toml::array* tables = node->as_array();
  if (tables == nullptr) {
    reader.Complain(*node, "'model' is not a list of tables", "write [[model]]");
    return;
  }
  for (const toml::node& item : *tables) {
    const toml::table* table = item.as_table();
    if (table == nullptr) {
      reader.Complain(item, "'model' is not a list of tables", "write [[model]]");
      return;
    }
    CampaignModel model;
    ReadModel(reader, *table, model);
    reader.AllowKeys(*table, "[[model]]",
                     {"name", "provider", "key_variable", "weight", "flavours", "usd", "stream",
                      "max_tokens", "context_tokens"});
    reader.Amount(*table, "weight", model.weight);
    reader.Texts(*table, "flavours", model.flavours);
    reader.Whole(*table, "context_tokens", 1000, 100'000'000, model.context_tokens);
    file.agent.models.push_back(std::move(model));
  }
}

void ReadPlanner(CampaignReader& reader, const toml::table& root, CampaignFile& file) {
  const toml::node* node = root.get("planner");
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr) {
    reader.Complain(*node, "'planner' is not a table", "write [planner] and its keys below");
    return;
  }
  PlannerSettings& planner = file.planner;
  ReadModel(reader, *table, planner.model);
  reader.AllowKeys(*table, "[planner]",
                   {"name", "provider", "key_variable", "usd", "stream", "max_tokens", "wall",
                    "candidates", "budget"});
  reader.Duration(*table, "wall", planner.wall_ms);
  reader.Whole(*table, "candidates", 2, 20, planner.candidates);
  if (const auto* budget = reader.Table(*table, "budget", {"usd", "tokens"})) {
    reader.Amount(*budget, "usd", planner.usd);
    reader.Whole(*budget, "tokens", 0, INT64_MAX, planner.tokens);
  }
}

}  // namespace crucible
