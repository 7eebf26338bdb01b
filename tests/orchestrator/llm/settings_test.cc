// Prices and the choice of a model.
#include "orchestrator/agents/llm/settings.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace crucible {
namespace {

TEST(Settings, PricesEachKindOfTokenByItsOwnPrice) {
  const Prices prices{.input = 3, .output = 15, .cache_read = 0.3, .cache_write = 3.75};
  EXPECT_NEAR(PriceUsd(prices, {.input = 1'000'000}), 3, 1e-12);
  EXPECT_NEAR(PriceUsd(prices, {.output = 2'000}), 0.03, 1e-12);
  EXPECT_NEAR(PriceUsd(prices, {.cache_read = 10'000, .cache_write = 10'000}), 0.0405, 1e-12);
  EXPECT_EQ(PriceUsd({}, {.input = 5, .output = 5}), 0);
}

TEST(Settings, ChoosesByWeight) {
  std::array<int, 4> counts{};
  const int kDraws = 20'000;
  for (int seed = 0; seed < kDraws; ++seed) {
    const auto chosen = ChooseModel({1, 0, 3, 6}, static_cast<std::uint64_t>(seed));
    ASSERT_TRUE(chosen);
    ++counts.at(*chosen);
  }
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0] / static_cast<double>(kDraws), 0.1, 0.015);
  EXPECT_NEAR(counts[2] / static_cast<double>(kDraws), 0.3, 0.015);
  EXPECT_NEAR(counts[3] / static_cast<double>(kDraws), 0.6, 0.015);
}

TEST(Settings, TheSameSeedChoosesTheSame) {
  for (std::uint64_t seed : {0ull, 1ull, 77ull, ~0ull})
    EXPECT_EQ(*ChooseModel({1, 1, 1}, seed), *ChooseModel({1, 1, 1}, seed));
}

TEST(Settings, RefusesWeightsThatChooseNothing) {
  EXPECT_EQ(ChooseModel({}, 1).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(ChooseModel({0, 0}, 1).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(ChooseModel({1, -1}, 1).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(ChooseModel({std::numeric_limits<double>::quiet_NaN()}, 1).error().kind,
            ErrorKind::kUsage);
}

TEST(Settings, ProviderWordsRoundTrip) {
  for (const auto kind : {ProviderKind::kAnthropic, ProviderKind::kOpenAi})
    EXPECT_EQ(*ParseProviderKind(ToString(kind)), kind);
  EXPECT_FALSE(ParseProviderKind("Anthropic "));
}

}  // namespace
}  // namespace crucible
