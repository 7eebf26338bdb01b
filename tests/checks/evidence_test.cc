// The statistics, exactly, and which rounds are evidence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checks/decide/rule.h"
#include "checks/decide/statistics.h"
#include "tests/checks/rounds.h"

namespace crucible::decide {
namespace {

TEST(Statistics, SignedRankTableMatchesCountingAllSigns) {
  for (int n = 1; n <= 12; ++n) {
    std::vector<int> count(static_cast<std::size_t>(n * (n + 1) / 2) + 1, 0);
    for (int signs = 0; signs < (1 << n); ++signs) {
      int sum = 0;
      for (int rank = 1; rank <= n; ++rank) sum += (signs >> (rank - 1) & 1) ? rank : 0;
      ++count[static_cast<std::size_t>(sum)];
    }
    int below = 0;
    for (std::size_t w = 0; w < count.size(); ++w) {
      below += count[w];
      EXPECT_NEAR(SignedRankCdf(n, static_cast<int>(w)), below / std::pow(2.0, n), 1e-12);
    }
  }
  EXPECT_EQ(SignedRankCdf(5, -1), 0);
  EXPECT_NEAR(SignedRankCdf(64, 64 * 65 / 2), 1, 1e-9);
}

TEST(Statistics, SignedRankKnowsDirectionTiesAndZeros) {
  EXPECT_NEAR(SignedRankPValue({-1, -2, -3, -4, -5}), 1 / 32.0, 1e-12);
  EXPECT_NEAR(SignedRankPValue({1, 2, 3, 4, 5}), 1, 1e-12);
  EXPECT_NEAR(SignedRankPValue({-1, -1, -1}), 1 / 8.0, 1e-12);
  EXPECT_NEAR(SignedRankPValue({-1, -1, 1}), 4 / 8.0, 1e-12);  // mid-ranks 2, 2, 2: W = 2 or less
  EXPECT_NEAR(SignedRankPValue({0, 0, -3}), 1 / 2.0, 1e-12);
  EXPECT_EQ(SignedRankPValue({}), 1);
  EXPECT_EQ(SignedRankPValue({0, 0}), 1);
}

TEST(Statistics, EstimateIsTheMedianOfPairwiseMeansWithItsExactInterval) {
  const Estimate estimate = PairedEstimate({1, 2, 3, 4, 100}, 0.95);
  EXPECT_DOUBLE_EQ(estimate.center, 3);
  EXPECT_DOUBLE_EQ(estimate.low, 1);
  EXPECT_DOUBLE_EQ(estimate.high, 100);
  EXPECT_DOUBLE_EQ(estimate.coverage, 1 - 2 / 32.0) << "five values cannot cover 95 %";
  std::vector<double> many;
  for (int i = -20; i <= 20; ++i) many.push_back(i);
  const Estimate wide = PairedEstimate(many, 0.95);
  EXPECT_GE(wide.coverage, 0.95);
  EXPECT_LT(wide.coverage, 0.96);
  EXPECT_DOUBLE_EQ(wide.center, 0);
  EXPECT_DOUBLE_EQ(wide.low, -wide.high);
}

TEST(Statistics, TheIntervalExcludesZeroExactlyWhenTheTwoSidedTestDoes) {
  const std::vector<double> differences = {-3, -2.5, -4, 1, -2, -1.5, 0.5, -5, -6, -0.7};
  const double p = SignedRankPValue(differences);
  const Estimate at_p = PairedEstimate(differences, 1 - 2 * p - 1e-9);
  const Estimate stricter = PairedEstimate(differences, 1 - 2 * p + 1e-9);
  EXPECT_LT(at_p.high, 0);
  EXPECT_GT(stricter.high, 0);
}

TEST(Statistics, HolmStepsDown) {
  EXPECT_THAT(Holm({0.001, 0.02, 0.04}, 0.05), ::testing::ElementsAre(true, true, true));
  EXPECT_THAT(Holm({0.001, 0.03, 0.04}, 0.05), ::testing::ElementsAre(true, false, false));
  EXPECT_THAT(Holm({0.02, 0.5}, 0.05), ::testing::ElementsAre(true, false));
  EXPECT_TRUE(Holm({}, 0.05).empty());
}

TEST(Statistics, SignTest) {
  EXPECT_NEAR(SignTestPValue({1, 1, 1, 1, 1, 1}), 2 / 64.0, 1e-9);
  EXPECT_NEAR(SignTestPValue({1, -1, 1, -1}), 1, 1e-9);
  EXPECT_EQ(SignTestPValue({0}), 1);
}

TEST(Evidence, ALinearDriftCancelsWithinARound) {
  // A B B A on a device that slows by 1 % a slot.
  const Round round{.a_first_us = 100,
                    .a_second_us = 100 * std::exp(0.03),
                    .b_first_us = 100 * std::exp(0.01),
                    .b_second_us = 100 * std::exp(0.02)};
  EXPECT_NEAR(round.Difference(), 0, 1e-12);
  EXPECT_NEAR(round.Control(), 0.03, 1e-12);
}

TEST(Evidence, DropsAnExcursionButNotWhenExcursionsAreTheRule) {
  std::vector<Round> rounds = Spread(11, 0, 0.003);
  rounds[4].b_first_us *= 0.9;
  const Evidence one = Weigh(rounds, {.unit = Unit::kRound});
  EXPECT_EQ(one.outliers, 1);
  EXPECT_EQ(one.units.size(), 10u);
  for (int i : {0, 1, 2, 5, 7, 8, 9, 10}) rounds[static_cast<std::size_t>(i)].b_first_us *= 0.9;
  EXPECT_EQ(Weigh(rounds, {.unit = Unit::kRound}).outliers, 0);
}

TEST(Evidence, DroppingDoesNotKnowTheArms) {
  std::vector<Round> rounds = Spread(12, -0.01, 0.004);
  rounds[3].a_second_us *= 0.9;
  rounds[8].b_second_us *= 1.15;
  std::vector<Round> swapped = rounds;
  for (Round& round : swapped) {
    std::swap(round.a_first_us, round.b_first_us);
    std::swap(round.a_second_us, round.b_second_us);
  }
  const Evidence here = Weigh(rounds, {}), there = Weigh(swapped, {});
  EXPECT_EQ(here.outliers, 2);
  EXPECT_EQ(there.outliers, 2);
  EXPECT_NEAR(here.estimate.center, -there.estimate.center, 1e-12);
}

TEST(Evidence, DropsAnExcursionOverBothSlotsOfAnArmButNotAKernelsSlowMode) {
  std::vector<Round> rounds = Spread(20, -0.01, 0.004);
  rounds[7].a_first_us *= 0.9;  // both baseline slots boosted: no gap shows it
  rounds[7].a_second_us *= 0.9;
  const Evidence boosted = Weigh(rounds, {.unit = Unit::kRound});
  EXPECT_EQ(boosted.outliers, 1);
  EXPECT_LT(boosted.estimate.high, 0);
  EXPECT_EQ(Weigh(rounds, {.unit = Unit::kRound, .far_share_max = 0}).outliers, 0);
  for (int i : {2, 11, 16}) {  // a candidate that is 10 % slower every sixth time: its own doing
    rounds[static_cast<std::size_t>(i)].b_first_us *= 1.1;
    rounds[static_cast<std::size_t>(i)].b_second_us *= 1.1;
  }
  EXPECT_EQ(Weigh(rounds, {.unit = Unit::kRound}).outliers, 0);
}

TEST(Evidence, RoundsOfTheSameProcessesAreOneObservation) {
  std::vector<Round> rounds;
  for (int i = 0; i < 12; ++i) rounds.push_back(RoundOf(-0.01, 0.001, i / 4));
  EXPECT_EQ(Weigh(rounds, {.unit = Unit::kPair}).units.size(), 3u);
  EXPECT_EQ(Weigh(rounds, {.unit = Unit::kRound}).units.size(), 12u);
}

}  // namespace
}  // namespace crucible::decide
