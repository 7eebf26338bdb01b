// Which answers are worth another attempt, and how long to wait for it.
#include "orchestrator/agents/llm/retry.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

TEST(Retry, OnlyWhatPasses) {
  for (const int status : {408, 409, 424, 429, 500, 502, 503, 504, 529, 599})
    EXPECT_TRUE(IsRetryable(status)) << status;
  for (const int status : {200, 301, 400, 401, 402, 403, 404, 413, 422})
    EXPECT_FALSE(IsRetryable(status)) << status;
}

TEST(Retry, BacksOffByDoublingWithinHalfAndWhole) {
  const RetryPolicy policy;
  std::int64_t whole_ms = policy.first_wait_ms;
  for (int attempts = 1; attempts < 60; ++attempts) {
    EXPECT_EQ(BackoffMs(policy, attempts, 0), (whole_ms + 1) / 2) << attempts;
    EXPECT_LE(BackoffMs(policy, attempts, 0.999), whole_ms) << attempts;
    EXPECT_GT(BackoffMs(policy, attempts, 0.999), whole_ms * 9 / 10) << attempts;
    whole_ms = std::min(whole_ms * 2, policy.max_wait_ms);
  }
}

TEST(Retry, BelievesNonsenseNeither) {
  const RetryPolicy policy;
  const auto asked = [&](const std::string& value) {
    return AskedWaitMs(policy, {{"retry-after", value}}, 1'445'412'480'000);
  };
  EXPECT_FALSE(asked(""));
  EXPECT_FALSE(asked("soon"));
  EXPECT_FALSE(asked("-5"));
  EXPECT_FALSE(asked("nan"));
  EXPECT_FALSE(asked("inf"));
  EXPECT_EQ(asked("0"), 0);
  EXPECT_EQ(asked("1.5"), 1500);
  EXPECT_EQ(asked("99999999999999999999"), policy.max_wait_ms);
  EXPECT_EQ(asked("Wed, 21 Oct 2015 07:28:30 GMT"), 30'000);
  EXPECT_EQ(asked("Wed, 21 Oct 2015 07:00:00 GMT"), 0) << "a date that has passed";
  EXPECT_FALSE(AskedWaitMs(policy, {}, 0));
}

TEST(Retry, MillisecondsComeFirst) {
  const RetryPolicy policy;
  EXPECT_EQ(AskedWaitMs(policy, {{"retry-after", "9"}, {"retry-after-ms", "40"}}, 0), 40);
  EXPECT_EQ(AskedWaitMs(policy, {{"retry-after", "9"}, {"retry-after-ms", "x"}}, 0), 9000);
}

}  // namespace
}  // namespace crucible
