#include "orchestrator/agents/llm/settings.h"

#include <cmath>

namespace crucible {

Result<ProviderKind> ParseProviderKind(const std::string& word) {
  if (word == "anthropic") return ProviderKind::kAnthropic;
  if (word == "openai") return ProviderKind::kOpenAi;
  return Fail(ErrorKind::kUsage, "read provider", "\"" + word + "\"", "no such provider",
              "use anthropic, or openai for every server that speaks Chat Completions");
}

std::string ToString(ProviderKind kind) {
  return kind == ProviderKind::kAnthropic ? "anthropic" : "openai";
}

double PriceUsd(const Prices& prices, const Usage& usage) {
  const double sum = prices.input * static_cast<double>(usage.input) +
                     prices.output * static_cast<double>(usage.output) +
                     prices.cache_read * static_cast<double>(usage.cache_read) +
                     prices.cache_write * static_cast<double>(usage.cache_write);
  return sum / 1e6;
}

namespace {

// splitmix64: neighbouring seeds give unrelated numbers, unlike a bare modulus.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

Result<std::size_t> ChooseModel(const std::vector<double>& weights, std::uint64_t seed) {
  double sum = 0;
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0)
      return Fail(ErrorKind::kUsage, "choose", "a model", "a weight is negative or not a number",
                  "give each model a weight of zero or more");
    sum += weight;
  }
  if (!(sum > 0) || !std::isfinite(sum))
    return Fail(ErrorKind::kUsage, "choose", "a model", "no model has a weight above zero",
                "name at least one model with a positive weight");
  // 53 bits, so that the double is exact and below one.
  double left = std::ldexp(static_cast<double>(Mix(seed) >> 11), -53) * sum;
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    if (left < weights[i]) return i;
    left -= weights[i];
    last = i;
  }
  return last;  // rounding only
}

}  // namespace crucible
