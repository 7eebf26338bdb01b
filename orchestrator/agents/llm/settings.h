// settings.h: which model, where, at what price, and how often it is chosen. Plain data: read once,
// frozen into the campaign, never holding a key, only the name of the variable that does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/agents/llm/message.h"

namespace crucible {

enum class ProviderKind {
  kAnthropic,  // the Messages format
  kOpenAi,     // the Chat Completions format, which local servers speak too
};

// "anthropic" or "openai"; kUsage for anything else.
Result<ProviderKind> ParseProviderKind(const std::string& word);
std::string ToString(ProviderKind kind);

// US dollars for a million tokens. All zero: no price is known, so nothing is counted.
struct Prices {
  double input = 0, output = 0, cache_read = 0, cache_write = 0;
};

struct ModelSettings {
  std::string name;  // as the server knows it
  ProviderKind kind = ProviderKind::kAnthropic;
  std::string base_url;      // empty: from the environment, else the provider's own
  std::string key_variable;  // empty: ANTHROPIC_API_KEY or OPENAI_API_KEY by the kind
  double weight = 1;         // how often it is chosen, against its fellows
  Prices prices;
  bool stream = true;
  int max_tokens = 8192;                      // of one reply
  std::int64_t context_tokens = 200'000;      // a conversation near this is compacted
  std::int64_t idle_timeout_ms = 300'000;     // a stream silent this long is dropped
  std::int64_t attempt_timeout_ms = 900'000;  // of one attempt
};

double PriceUsd(const Prices& prices, const Usage& usage);

// Which of `weights` a seed chooses: index i with probability weights[i] / sum, the same for the
// same seed on every machine. kUsage for no weights, a negative one or a sum of zero.
Result<std::size_t> ChooseModel(const std::vector<double>& weights, std::uint64_t seed);

}  // namespace crucible
