// model_settings.h: which of a campaign's models takes a mission, and how it is reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "missions/agent_settings.h"
#include "orchestrator/agents/llm/settings.h"

namespace crucible {

// Weighted choice among the models that take this flavour, the same for the same seed. kUsage when
// none does.
Result<CampaignModel> ModelFor(const std::vector<CampaignModel>& models, const std::string& flavour,
                               std::uint64_t seed);

Prices PricesOf(const UsdPrices& usd);

// Without an address: that comes from the environment.
Result<ModelSettings> SettingsOf(const CampaignModel& model);

}  // namespace crucible
