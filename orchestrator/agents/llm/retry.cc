#include "orchestrator/agents/llm/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

namespace crucible {
namespace {

// A number that is the whole text, zero or more.
std::optional<double> Number(const std::string& text) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

std::int64_t Believed(const RetryPolicy& policy, double wait_ms) {
  return static_cast<std::int64_t>(
      std::ceil(std::clamp(wait_ms, 0.0, static_cast<double>(policy.max_wait_ms))));
}

}  // namespace

bool IsRetryable(int status) {
  return status == 408 || status == 409 || status == 424 || status == 429 || status >= 500;
}

std::optional<std::int64_t> AskedWaitMs(const RetryPolicy& policy,
                                        const std::map<std::string, std::string>& headers,
                                        std::int64_t now_unix_ms) {
  if (const auto it = headers.find("retry-after-ms"); it != headers.end())
    if (const auto wait_ms = Number(it->second)) return Believed(policy, *wait_ms);
  const auto it = headers.find("retry-after");
  if (it == headers.end()) return std::nullopt;
  if (const auto wait_s = Number(it->second)) return Believed(policy, *wait_s * 1000);
  const std::time_t date = ::curl_getdate(it->second.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return Believed(policy, static_cast<double>(date) * 1000 - static_cast<double>(now_unix_ms));
}

std::int64_t BackoffMs(const RetryPolicy& policy, int attempts, double dice) {
  const double doubled =
      static_cast<double>(policy.first_wait_ms) * std::exp2(std::min(attempts - 1, 40));
  return Believed(policy,
                  std::min(doubled, static_cast<double>(policy.max_wait_ms)) * (0.5 + 0.5 * dice));
}

}  // namespace crucible
