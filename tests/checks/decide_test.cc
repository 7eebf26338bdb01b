// Decisions on given rounds: exact statistics, looks, refusals, what is dropped and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checks/decide/burn_in.h"
#include "checks/decide/ratchet.h"
#include "checks/decide/rule.h"

namespace crucible::decide {
namespace {

using ::testing::HasSubstr;

// A round whose difference is d and whose arms agree with themselves up to `gap`.
Round RoundOf(double d, double gap = 0.001, int pair = 0) {
  return {.a_first_us = 100 * std::exp(-gap / 2),
          .a_second_us = 100 * std::exp(gap / 2),
          .b_first_us = 100 * std::exp(d + gap / 2),
          .b_second_us = 100 * std::exp(d - gap / 2),
          .pair = pair};
}

// Feeds rounds, one per pair of processes, until there is a verdict.
Decision Feed(Comparison& comparison, const std::vector<Round>& rounds) {
  int pair = 0;
  for (Round round : rounds) {
    round.pair = pair++;
    if (auto decision = comparison.Add(round)) return *decision;
  }
  return comparison.Finish("no more rounds");
}

// n differences around `center`, spread evenly over ± spread, in an order that is not sorted; the
// control alternates its sign.
std::vector<Round> Spread(int n, double center, double spread) {
  std::vector<Round> rounds;
  for (int i = 0; i < n; ++i) {
    const double position = 2.0 * ((i * 7) % n + 0.5) / n - 1;
    rounds.push_back(RoundOf(center + spread * position, i % 2 == 0 ? 0.001 : -0.001));
  }
  return rounds;
}

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

TEST(Claim, AcceptsAtTheFirstLookWhenEveryUnitWins) {
  Comparison comparison(ClaimRule(0.003));
  const Decision decision = Feed(comparison, Spread(41, -0.02, 0.015));
  EXPECT_EQ(decision.verdict, Verdict::kAccepted) << decision.reason;
  EXPECT_EQ(decision.evidence.units.size(), 11u);
  EXPECT_LT(decision.evidence.estimate.high, 0);
  EXPECT_LE(decision.p_overall, 0.01);
}

TEST(Claim, LooksOnlyWhereItSaidItWould) {
  Comparison comparison(ClaimRule(0.003));
  for (int i = 0; i < 10; ++i) {
    Round round = RoundOf(-0.04, i % 2 == 0 ? 0.001 : -0.001, i);
    EXPECT_FALSE(comparison.Add(round).has_value()) << "after " << i + 1 << " rounds";
  }
  EXPECT_TRUE(comparison.Add(RoundOf(-0.04, 0.001, 10)).has_value());
}

TEST(Claim, AClearGainNeedsSixPairs) {
  Comparison clear(ClaimRule(0.003));
  const Decision decision = Feed(clear, Spread(41, -0.2, 0.05));
  EXPECT_EQ(decision.verdict, Verdict::kAccepted) << decision.reason;
  EXPECT_EQ(decision.evidence.units.size(), 6u);
  // As large, but one of the six says something else: the exact looks decide.
  std::vector<Round> rounds = Spread(41, -0.2, 0.05);
  rounds[2] = RoundOf(-0.05);
  Comparison doubtful(ClaimRule(0.003));
  EXPECT_EQ(Feed(doubtful, rounds).evidence.units.size(), 11u);
}

TEST(Claim, AQuarterLessTimeNeedsFourPairs) {
  Comparison comparison(ClaimRule(0.003));
  const Decision decision = Feed(comparison, Spread(41, -0.4, 0.05));
  EXPECT_EQ(decision.verdict, Verdict::kAccepted) << decision.reason;
  EXPECT_EQ(decision.evidence.units.size(), 4u);
}

TEST(Confirm, AQuarterLessTimeNeedsFivePairsUnlessOneDoubtsIt) {
  Comparison clear(ConfirmRule(0.003));
  EXPECT_EQ(Feed(clear, Spread(41, -0.4, 0.05)).evidence.units.size(), 5u);
  std::vector<Round> rounds = Spread(41, -0.4, 0.05);
  rounds[1] = RoundOf(-0.2);
  Comparison doubtful(ConfirmRule(0.003));
  EXPECT_GE(Feed(doubtful, rounds).evidence.units.size(), 8u);
}

TEST(Claim, ACertainButTinyGainIsNotAccepted) {
  Comparison comparison(ClaimRule(0.003));
  const Decision decision = Feed(comparison, Spread(41, -0.001, 0.0005));
  EXPECT_EQ(decision.verdict, Verdict::kNoDifference) << decision.reason;
}

TEST(Claim, NoiseIsInconclusiveAndNotARejection) {
  Comparison comparison(ClaimRule(0.003));
  const Decision decision = Feed(comparison, Spread(60, -0.003, 0.05));
  EXPECT_EQ(decision.verdict, Verdict::kInconclusive) << decision.reason;
  EXPECT_THAT(decision.reason, HasSubstr("measure again"));
}

TEST(Claim, ASlowerCandidateIsRejected) {
  Comparison comparison(ClaimRule(0.003));
  const Decision decision = Feed(comparison, Spread(41, 0.02, 0.005));
  EXPECT_EQ(decision.verdict, Verdict::kRejected) << decision.reason;
}

TEST(Claim, RefusesWhenTheControlDriftsBy12_5Percent) {
  Comparison comparison(ClaimRule(0.003));
  std::vector<Round> rounds = Spread(41, -0.02, 0.005);
  for (Round& round : rounds) round.a_second_us = round.a_first_us * 1.125;
  const Decision decision = Feed(comparison, rounds);
  EXPECT_EQ(decision.verdict, Verdict::kRefused) << decision.reason;
  EXPECT_THAT(decision.reason, HasSubstr("+12.50 %"));
}

TEST(Claim, RefusesWhenTooManyRoundsAreThrottled) {
  Comparison comparison(ClaimRule(0.003));
  std::vector<Round> rounds = Spread(60, -0.02, 0.005);
  for (std::size_t i = 0; i < rounds.size(); i += 2) rounds[i].throttled = true;
  EXPECT_EQ(Feed(comparison, rounds).verdict, Verdict::kRefused);
}

TEST(Claim, AFewThrottledRoundsAreReplaced) {
  Comparison comparison(ClaimRule(0.003));
  std::vector<Round> rounds = Spread(41, -0.02, 0.005);
  rounds[2].throttled = rounds[5].throttled = true;
  const Decision decision = Feed(comparison, rounds);
  EXPECT_EQ(decision.verdict, Verdict::kAccepted);
  EXPECT_EQ(decision.evidence.units.size(), 11u);
  EXPECT_EQ(decision.evidence.rounds, 13);
}

TEST(Confirm, MeasuresAnExcursionAgainInTheSameProcesses) {
  const auto excursion = [](bool of_baseline) {
    Round round = RoundOf(-0.01, 0.001, 5);
    (of_baseline ? round.a_first_us : round.b_first_us) *= 0.9;
    return round;
  };
  for (const bool of_baseline : {false, true}) {
    Comparison comparison(ConfirmRule(0.003)), screen(ScreenRule(0.003));
    for (const Round& round : Spread(5, -0.01, 0.004)) {
      Round next = round;
      next.pair = static_cast<int>(comparison.rounds().size());
      EXPECT_FALSE(comparison.NeedsAnother(next));
      ASSERT_FALSE(comparison.Add(next));
    }
    Round round = excursion(of_baseline);
    EXPECT_FALSE(screen.NeedsAnother(round)) << "rounds are its units: the next is another";
    for (int again = 0; again < 2; ++again) {
      EXPECT_TRUE(comparison.NeedsAnother(round)) << again;
      round.closes_pair = false;
      ASSERT_FALSE(comparison.Add(round));
    }
    EXPECT_FALSE(comparison.NeedsAnother(round)) << "twice is enough: fresh processes";
    EXPECT_FALSE(comparison.NeedsAnother(RoundOf(-0.01, 0.001, 5)));
  }
}

TEST(Confirm, WhenTimeEndsTheLastLookHasTheErrorOfThoseItCannotReach) {
  // Sixteen pairs, two small losses among them: p = 2e-4 is over 1.3e-4, one look's share, and
  // under 2.6e-4, that of the two looks that time took away.
  std::vector<Round> rounds;
  for (int i = 0; i < 16; ++i) {
    const double d = i == 3 ? 0.002 : i == 8 ? 0.0065 : -0.004 - 0.001 * ((i * 5) % 16);
    rounds.push_back(RoundOf(d, i % 2 == 0 ? 0.001 : -0.001));
  }
  std::vector<double> differences;
  for (const Round& round : rounds) differences.push_back(round.Difference());
  const double p = SignedRankPValue(differences);
  const Rule rule = ConfirmRule(0.003);
  ASSERT_GT(p, rule.looks.back().alpha);
  ASSERT_LT(p, rule.looks[1].alpha + rule.looks[2].alpha);
  Comparison comparison(rule);
  const Decision decision = Feed(comparison, rounds);
  EXPECT_EQ(decision.verdict, Verdict::kAccepted) << decision.reason;
  EXPECT_LE(decision.p_overall, rule.Alpha());
}

TEST(Claim, TimeOutLooksOnceMoreAndOtherwiseIsInconclusive) {
  Comparison clear(ClaimRule(0.003));
  for (int i = 0; i < 10; ++i) clear.Add(RoundOf(-0.02 - 0.001 * i, i % 2 ? 0.001 : -0.001, i));
  EXPECT_EQ(clear.Finish("time").verdict, Verdict::kAccepted);
  Comparison early(ClaimRule(0.003));
  for (int i = 0; i < 4; ++i) early.Add(RoundOf(-0.05, i % 2 ? 0.001 : -0.001, i));
  const Decision decision = early.Finish("time ran out");
  EXPECT_EQ(decision.verdict, Verdict::kInconclusive) << "four pairs prove nothing";
  EXPECT_THAT(decision.reason, HasSubstr("time ran out"));
  Comparison none(ClaimRule(0.003));
  EXPECT_EQ(none.Finish("time").verdict, Verdict::kInconclusive);
}

TEST(Claim, SeveralCasesShareOneErrorRate) {
  const Rule one = ClaimRule(0.003), of_five = ForOneOf(one, 5);
  EXPECT_NEAR(of_five.Alpha(), one.Alpha() / 5, 1e-12);
  // Ten wins and one small loss: enough alone, not as one of fifty.
  std::vector<Round> rounds = Spread(11, -0.02, 0.005);
  rounds[3] = RoundOf(0.0001, 0.001);
  Comparison alone(one), crowd(ForOneOf(one, 50));
  EXPECT_EQ(Feed(alone, rounds).verdict, Verdict::kAccepted);
  EXPECT_EQ(Feed(crowd, rounds).verdict, Verdict::kInconclusive);
}

TEST(Screen, KeepsItsLevelForEachCase) {
  EXPECT_EQ(ForOneOf(ScreenRule(0.003), 4).Alpha(), ScreenRule(0.003).Alpha());
}

TEST(Claim, HolmAcceptsTheSecondCaseAtTheRelaxedLevel) {
  const Rule rule = ForOneOf(ClaimRule(0.003), 2);
  Decision strong{.verdict = Verdict::kAccepted, .p_overall = 0.001};
  Decision weaker{.verdict = Verdict::kInconclusive, .p_overall = 0.008};
  for (Decision* decision : {&strong, &weaker}) {
    decision->evidence.estimate = {.center = -0.01, .low = -0.015, .high = -0.005};
  }
  EXPECT_EQ(DecideTogether({strong, weaker}, rule, 0.01)[1].verdict, Verdict::kAccepted);
  strong.p_overall = 0.5;
  EXPECT_EQ(DecideTogether({strong, weaker}, rule, 0.01)[1].verdict, Verdict::kInconclusive);
}

TEST(Screen, CostsFiveRoundsAndLetsAGainThrough) {
  Comparison comparison(ScreenRule(0.003));
  const Decision decision = Feed(comparison, Spread(8, -0.01, 0.005));
  EXPECT_EQ(decision.verdict, Verdict::kAccepted) << decision.reason;
  EXPECT_EQ(decision.evidence.rounds, 5);
}

TEST(Screen, DropsASlowCandidateAfterThreeRounds) {
  Comparison comparison(ScreenRule(0.003));
  const Decision decision = Feed(comparison, Spread(8, 0.01, 0.005));
  EXPECT_NE(decision.verdict, Verdict::kAccepted);
  EXPECT_EQ(decision.evidence.rounds, 3);
}

TEST(Ratchet, PassesACaseWithinItsLimit) {
  Ratchet ratchet({.limit = 0.02});
  std::optional<Decision> decision;
  for (const Round& round : Spread(11, 0.002, 0.006))
    if ((decision = ratchet.Add(round))) break;
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Verdict::kAccepted);
  EXPECT_FALSE(ratchet.rerunning());
}

TEST(Ratchet, RejectsOnlyAfterTheRerunAgrees) {
  Ratchet ratchet({.limit = 0.02});
  std::optional<Decision> decision;
  int rounds = 0;
  for (const Round& round : Spread(60, 0.05, 0.01)) {
    ++rounds;
    if ((decision = ratchet.Add(round))) break;
    EXPECT_EQ(ratchet.TakeRestart(), rounds == 5) << "fresh processes for the rerun";
  }
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Verdict::kRejected) << decision->reason;
  EXPECT_EQ(rounds, 5 + 21);
}

TEST(Ratchet, OneUnluckyPlacementDoesNotFailAMerge) {
  Ratchet ratchet({.limit = 0.02});
  std::optional<Decision> decision;
  for (const Round& round : Spread(5, 0.03, 0.005)) decision = ratchet.Add(round);
  ASSERT_FALSE(decision);
  ASSERT_TRUE(ratchet.TakeRestart());
  for (const Round& round : Spread(21, 0.0, 0.01))
    if ((decision = ratchet.Add(round))) break;
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Verdict::kAccepted) << decision->reason;
}

TEST(Ratchet, UndecidedAfterTheRerunIsInconclusiveOrTheBetterGuess) {
  const auto run = [](double center) {
    Ratchet ratchet({.limit = 0.02});
    std::optional<Decision> decision;
    for (const Round& round : Spread(11, center, 0.15)) decision = ratchet.Add(round);
    EXPECT_TRUE(ratchet.TakeRestart());
    for (const Round& round : Spread(41, center, 0.15))
      if ((decision = ratchet.Add(round))) break;
    return decision.value_or(Decision{});
  };
  EXPECT_EQ(run(0.04).verdict, Verdict::kInconclusive);
  EXPECT_EQ(run(0.005).verdict, Verdict::kAccepted);
}

TEST(Ratchet, WhenTimeEndsTheRerunAllRoundsCount) {
  Ratchet ratchet({.limit = 0.02});
  for (const Round& round : Spread(11, 0.001, 0.1)) EXPECT_FALSE(ratchet.Add(round));
  ASSERT_TRUE(ratchet.TakeRestart());
  for (const Round& round : Spread(3, 0.001, 0.1)) EXPECT_FALSE(ratchet.Add(round));
  const Decision decision = ratchet.Finish("time ran out");
  EXPECT_EQ(decision.evidence.rounds, 14);
  EXPECT_EQ(decision.verdict, Verdict::kAccepted) << decision.reason;
}

TEST(Ratchet, NoTimeIsInconclusive) {
  Ratchet ratchet({.limit = 0.02});
  ratchet.Add(RoundOf(0));
  EXPECT_EQ(ratchet.Finish("time ran out").verdict, Verdict::kInconclusive);
}

TEST(Ratchet, ShortCasesHaveTheWiderLimit) {
  EXPECT_EQ(RatchetLimit(130, 0.02, 0.04, 1000), 0.04);
  EXPECT_EQ(RatchetLimit(1300, 0.02, 0.04, 1000), 0.02);
}

TEST(Ratchet, CatchesTheCaseTheGeometricMeanHides) {
  // 13 cases; one went from 131 to 152 us, the others vary by less than their noise.
  std::vector<double> before(13, 4000), after(13, 3990);
  before[0] = 131;
  after[0] = 152;
  double log_ratio = 0;
  for (std::size_t i = 0; i < before.size(); ++i) log_ratio += std::log(after[i] / before[i]) / 13;
  EXPECT_LT(std::expm1(log_ratio), 0.0125) << "the mean moves by less than the jitter of 2 to 6 %";
  Ratchet ratchet({.limit = RatchetLimit(before[0], 0.02, 0.04, 1000)});
  std::optional<Decision> decision;
  for (const Round& round : Spread(80, std::log(after[0] / before[0]), 0.03))
    if ((decision = ratchet.Add(round))) break;
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Verdict::kRejected) << decision->reason;
}

TEST(BurnIn, WaitsUntilThreeWindowsAgree) {
  BurnIn burn_in(0.005);
  EXPECT_FALSE(burn_in.Add(-0.06));
  EXPECT_FALSE(burn_in.Add(-0.03));
  EXPECT_FALSE(burn_in.Add(-0.002));
  EXPECT_FALSE(burn_in.Add(-0.001));
  EXPECT_TRUE(burn_in.Add(0.0));
}

TEST(Verdict, TextsAreTheProtocols) {
  for (const char* text : {"accepted", "rejected", "no_difference", "inconclusive", "refused",
                           "crashed", "check_failed", "flagged"}) {
    ASSERT_TRUE(VerdictFromText(text)) << text;
    EXPECT_EQ(ToText(*VerdictFromText(text)), text);
  }
  EXPECT_FALSE(VerdictFromText("good"));
}

}  // namespace
}  // namespace crucible::decide
