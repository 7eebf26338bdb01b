#include "orchestrator/agents/model_settings.h"

#include <algorithm>

namespace crucible {

Result<CampaignModel> ModelFor(const std::vector<CampaignModel>& models, const std::string& flavour,
                               std::uint64_t seed) {
  std::vector<const CampaignModel*> fit;
  std::vector<double> weights;
  for (const CampaignModel& model : models) {
    const auto& flavours = model.flavours;
    if (!flavours.empty() && std::find(flavours.begin(), flavours.end(), flavour) == flavours.end())
      continue;
    fit.push_back(&model);
    weights.push_back(model.weight);
  }
  if (fit.empty())
    return Fail(ErrorKind::kUsage, "choose model for", "a mission of flavour " + flavour,
                "no [[model]] of the campaign takes it", "add the flavour to a model's flavours");
  CRUCIBLE_ASSIGN(const std::size_t chosen, ChooseModel(weights, seed));
  return *fit[chosen];
}

Prices PricesOf(const UsdPrices& usd) {
  return {usd.input, usd.output, usd.cache_read, usd.cache_write};
}

Result<ModelSettings> SettingsOf(const CampaignModel& model) {
  ModelSettings settings;
  settings.name = model.name;
  CRUCIBLE_ASSIGN(settings.kind, ParseProviderKind(model.provider));
  settings.key_variable = model.key_variable;
  settings.weight = model.weight;
  settings.prices = PricesOf(model.usd);
  settings.stream = model.stream;
  settings.max_tokens = model.max_tokens;
  settings.context_tokens = model.context_tokens;
  return settings;
}

}  // namespace crucible
