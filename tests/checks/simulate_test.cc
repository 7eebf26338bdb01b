// What goes wrong with simple rules on a noisy device, and that ours does not do it. Every run is
// seeded: the figures are the same on every machine with the same standard library.
#include "checks/decide/simulate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace crucible::decide {
namespace {

constexpr std::uint64_t kSeed = 20;
constexpr int kThreads = 2;
constexpr int kSearch = 300;  // null candidates of one search

double FalseAccepts(Method method, const NoiseModel& model, std::int64_t trials) {
  return kSearch * Simulate(method, model, 0, trials, kSeed, kThreads).Share();
}

NoiseModel Model(const std::string& start) {
  for (const NoiseModel& model : StandardModels())
    if (model.name.starts_with(start)) return model;
  ADD_FAILURE() << "no noise model starts with " << start;
  return {};
}

TEST(SimpleRules, OneBoostedRoundCarriesFastestOfThree) {
  EXPECT_TRUE(FastestOfThreeAccepts({100, 100, 100}, {80, 100, 100}));
  EXPECT_FALSE(WinEveryRoundAccepts({100, 100, 100}, {80, 100, 100}));
  // Ours, on rounds of which one holds such a boost: nothing is accepted.
  Comparison comparison(ClaimRule(0.003));
  std::optional<Decision> decision;
  for (int i = 0; i < 60 && !decision; ++i) {
    const double noise = 0.002 * std::sin(i * 2.4);
    Round round{.a_first_us = 100,
                .a_second_us = 100 * (1 + noise),
                .b_first_us = 100 * (1 - noise),
                .b_second_us = 100,
                .pair = i};
    if (i == 3) round.b_first_us = 80;
    decision = comparison.Add(round);
  }
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Verdict::kNoDifference) << decision->reason;
}

TEST(SimpleRules, WinningThreeRoundsLetsEveryEighthNullCandidateThrough) {
  EXPECT_NEAR(FalseAccepts(Method::kWinEveryRound, Model("noise"), 40'000), 37.5, 3);
}

TEST(SimpleRules, FastestOfThreeAcceptsHalfOfAllNullCandidates) {
  EXPECT_NEAR(FalseAccepts(Method::kFastestOfThree, Model("noise"), 40'000), 150, 6);
}

TEST(SimpleRules, AColdStartIsAGainToFastestOfThree) {
  EXPECT_GT(FalseAccepts(Method::kFastestOfThree, Model("cold start"), 10'000), 250);
  EXPECT_LE(FalseAccepts(Method::kSearch, Model("cold start"), 10'000), 0.2);
}

TEST(SimpleRules, TheBestOf300NullCandidatesShowsAGain) {
  // Five rounds each, keeping whichever measured fastest.
  double best_mean = 0;
  constexpr int kSearches = 20;
  for (int search = 0; search < kSearches; ++search) {
    double best = 0;
    for (int candidate = 0; candidate < kSearch; ++candidate) {
      SimulatedDevice device(Model("noise"), 0, kSeed + 1000 * search + candidate);
      double sum = 0;
      for (int round = 0; round < 5; ++round) sum += SimulateRound(device, 0).Difference();
      best = std::min(best, sum / 5);
    }
    best_mean += -best / kSearches;
  }
  EXPECT_NEAR(best_mean, 0.0078, 0.002) << "a null search seems to find this gain";
}

TEST(OurRule, ReportsTheConfirmationsEstimateWithoutWinnersCurse) {
  double sum = 0;
  int accepted = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    SimulatedDevice device(Model("noise"), 0.01, kSeed + i);
    const Trial trial = Try(Method::kSearch, device);
    if (!trial.accepted) continue;
    ++accepted;
    sum += trial.estimate;
  }
  ASSERT_GT(accepted, 200);
  EXPECT_NEAR(-sum / accepted, 0.01005, 0.0008);
}

// The targets of power: the lower end of the 95 % interval must reach them, with all the rounds
// the rules ask for and with the time that a target gives them.
double LowerPower(Method method, const std::string& model) {
  constexpr std::int64_t kGains = 2'000;
  const double share = Simulate(method, Model(model), 0.01, kGains, kSeed, kThreads).Share();
  return share - 1.645 * std::sqrt(share * (1 - share) / kGains);
}

TEST(OurRule, FindsOnePercentInSixTenthsOfNoise) {
  EXPECT_GE(LowerPower(Method::kSearch, "noise"), 0.9);
  EXPECT_GE(LowerPower(Method::kSearchInTime, "noise"), 0.9);
}

TEST(OurRule, FindsOnePercentAmongBoosts) {
  EXPECT_GE(LowerPower(Method::kSearch, "boosts"), 0.8);
  EXPECT_GE(LowerPower(Method::kSearchInTime, "boosts"), 0.8);
}

TEST(OurRule, StaysUnderItsErrorUnderEveryModelAndUnder30SlotsPerNull) {
  // 0.05 in 300 is one accept in 6,000; docs/results/decisions.md counts each model over many more.
  constexpr std::int64_t kNulls = 20'000;
  for (const Method method : {Method::kSearch, Method::kSearchInTime}) {
    std::int64_t accepted = 0, nulls = 0;
    for (const NoiseModel& model : StandardModels()) {
      const Tally tally = Simulate(method, model, 0, kNulls, kSeed, kThreads);
      // At the target 3.3 are expected: eight or more have a chance of 2 %.
      EXPECT_LE(tally.accepted, 7) << Describe(method) << ", " << model.name;
      EXPECT_LE(tally.slots / static_cast<double>(tally.trials), 30) << model.name;
      accepted += tally.accepted;
      nulls += tally.trials;
    }
    // Over all models 30 are expected at the target. With at most 20 seen the upper end of the
    // 95 % interval (29.1) is below it.
    ASSERT_EQ(nulls, 180'000);
    EXPECT_LE(accepted, 20) << Describe(method);
  }
}

// Where slots vary by half of their time, what is accepted is what looks like a clear gain.
TEST(OurRule, StaysUnderItsErrorOnADeviceThatIsHardlyOne) {
  NoiseModel model{.name = "wide"};
  model.slot_sigma = 0.5;
  const Tally tally = Simulate(Method::kSearch, model, 0, 60'000, kSeed, kThreads);
  // At the target of 0.05 in 300 ten are expected: more than that in all of them are too many.
  EXPECT_LE(tally.accepted, 10);
}

TEST(OurRule, ADriftOf12_5PercentInTheControlIsRefused) {
  NoiseModel model = Model("noise");
  model.trend = 0.06;  // the baseline's second slot is two slots later on average
  const Tally tally = Simulate(Method::kClaim, model, 0.02, 400, kSeed, kThreads);
  EXPECT_EQ(tally.accepted, 0);
  EXPECT_GT(tally.refused, 380);
}

TEST(Simulate, DoesNotDependOnTheNumberOfThreads) {
  const Tally one = Simulate(Method::kSearch, Model("placement"), 0.01, 300, kSeed, 1);
  const Tally three = Simulate(Method::kSearch, Model("placement"), 0.01, 300, kSeed, 3);
  EXPECT_EQ(one.accepted, three.accepted);
  EXPECT_EQ(one.slots, three.slots);
}

TEST(TimeLimit, EndsAComparisonWithALastLookAndNoRoundBeyondIt) {
  const Times times;
  for (const double limit_s : {0.5, 3.0, 12.0, 25.0}) {
    SimulatedDevice device(Model("noise"), 0.004, kSeed);
    const double start_s = times.start_s * device.pairs();
    const Decision decision = SimulateComparison(device, ClaimRule(0.003), 1, limit_s, times);
    const double spent_s = times.slot_s * device.slots() + times.warm_slot_s * device.warm_slots() +
                           times.start_s * device.pairs() - start_s;
    // The first burn-in is longer than a later one, and is not foreseen.
    EXPECT_LE(spent_s, limit_s + 40 * times.warm_slot_s) << limit_s;
    if (limit_s < 1) {
      EXPECT_EQ(device.slots(), 0);
    }
  }
}

TEST(TimeLimit, CostsPowerButNeverMakesFalseAccepts) {
  Times short_times;
  short_times.claim_s = short_times.confirm_s = 12;  // ends between two looks
  const NoiseModel model = Model("noise");
  const auto share = [&](Method method, double gain, const Times& times) {
    return Simulate(method, model, gain, 2'000, kSeed, kThreads, times).Share();
  };
  const double whole = share(Method::kClaim, 0.005, {});
  EXPECT_LT(share(Method::kClaimInTime, 0.005, short_times), whole);
  EXPECT_GT(share(Method::kClaimInTime, 0.02, short_times), 0.9);
  // One claim's error is 0.01 whatever ends it; 2000 trials scatter by 0.0022.
  EXPECT_LE(Simulate(Method::kClaimInTime, model, 0, 20'000, kSeed, kThreads, short_times).Share(),
            0.013);
  EXPECT_LE(
      300 * Simulate(Method::kSearchInTime, model, 0, 20'000, kSeed, kThreads, short_times).Share(),
      0.2);
}

TEST(TimeLimit, ShowsAsInconclusiveAndNotAsRejected) {
  Times short_times;
  short_times.claim_s = 4;  // three pairs: fewer than any look asks for
  const Tally tally =
      Simulate(Method::kClaimInTime, Model("noise"), 0.004, 500, kSeed, kThreads, short_times);
  EXPECT_GT(tally.inconclusive, 450);
}

}  // namespace
}  // namespace crucible::decide
