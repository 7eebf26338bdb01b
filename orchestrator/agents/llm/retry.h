// retry.h: whether to ask again, and how long to wait first. Pure: the caller brings clock and
// dice.
//
// The one owner of retries is the provider that uses this; nested owners multiply their waits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace crucible {

struct RetryPolicy {
  int max_attempts = 10;              // of one request, the first included
  int max_unusable = 3;               // replies that were paid for but broke off or made no sense
  std::int64_t first_wait_ms = 500;   // doubled after each attempt
  std::int64_t max_wait_ms = 60'000;  // of one wait, also of one that a server asks for
};

// 408 409 424 429 and all from 500.
bool IsRetryable(int status);

// The wait a server asked for: `retry-after-ms`, else `retry-after` in seconds or as a date; at
// most max_wait_ms. None when it asked for none, or for nonsense.
std::optional<std::int64_t> AskedWaitMs(const RetryPolicy& policy,
                                        const std::map<std::string, std::string>& headers,
                                        std::int64_t now_unix_ms);

// After `attempts` failed ones: between half and all of the doubled wait. `dice` is in [0, 1).
std::int64_t BackoffMs(const RetryPolicy& policy, int attempts, double dice);

}  // namespace crucible
