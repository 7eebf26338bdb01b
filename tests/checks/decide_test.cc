// Decisions on given rounds: looks, refusals, what is inconclusive and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checks/decide/burn_in.h"
#include "checks/decide/rule.h"
#include "tests/checks/rounds.h"

namespace crucible::decide {
namespace {

using ::testing::HasSubstr;

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

TEST(Confirm, AHugeGainOverTooFewUnitsIsToldWhatWasMissing) {
  Comparison comparison(ConfirmRule(0.005));
  const Decision decision = Feed(comparison, Spread(3, -1.9, 0.02));
  EXPECT_EQ(decision.verdict, Verdict::kInconclusive);
  EXPECT_NE(decision.reason.find("over 3 units of the 5 at least that a gain is shown by"),
            std::string::npos)
      << decision.reason;
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
