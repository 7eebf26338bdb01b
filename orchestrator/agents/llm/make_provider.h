// make_provider.h: a Provider for one model of the settings, over HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "orchestrator/agents/llm/api_key.h"
#include "orchestrator/agents/llm/http.h"
#include "orchestrator/agents/llm/provider.h"
#include "orchestrator/agents/llm/retry.h"
#include "orchestrator/agents/llm/settings.h"

namespace crucible {

// What a test replaces. Null: the real one.
struct ProviderSeams {
  std::unique_ptr<HttpClient> http;
  Clock* clock = nullptr;  // stamps deadlines and waits between attempts; outlives the provider
  RetryPolicy retry;
  std::uint64_t seed = 0;  // of the jitter; 0: another one each time
};

// kUsage: no model name, or no key for a provider that needs one. Asks nothing of the network.
Result<std::unique_ptr<Provider>> MakeProvider(const ModelSettings& settings,
                                               ProviderSeams seams = {});

// Where the settings lead with today's environment: base_url, else ANTHROPIC_BASE_URL or
// OPENAI_BASE_URL, else the provider's own address.
std::string BaseUrl(const ModelSettings& settings);

// The variable that holds the address: "ANTHROPIC_BASE_URL" or "OPENAI_BASE_URL".
std::string AddressVariable(const ModelSettings& settings);

// The variable that holds the key.
std::string KeyVariable(const ModelSettings& settings);

// The key for those settings; empty where the server is not the provider's own and none is set.
Result<ApiKey> KeyFor(const ModelSettings& settings);

}  // namespace crucible
