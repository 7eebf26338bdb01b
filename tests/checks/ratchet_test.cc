// The ratchet on given rounds: what passes, what fails, what nobody knows yet.
#include "checks/decide/ratchet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/checks/rounds.h"

namespace crucible::decide {
namespace {

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

// A noisy first run to its end and a rerun that stays across the limit: more than a hundred units.
TEST(Ratchet, JudgesAsManyRoundsAsBothRunsCanHave) {
  Ratchet ratchet({.limit = 0.02, .first = {22}, .rerun = {83}});
  for (const Round& round : Spread(22, 0.02, 0.15)) EXPECT_FALSE(ratchet.Add(round));
  ASSERT_TRUE(ratchet.TakeRestart());
  for (const Round& round : Spread(82, 0.02, 0.15)) EXPECT_FALSE(ratchet.Add(round));
  const Decision decision = ratchet.Finish("time ran out");
  EXPECT_GE(decision.evidence.units.size(), 100u);
  EXPECT_NE(decision.verdict, Verdict::kRejected) << decision.reason;
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

}  // namespace
}  // namespace crucible::decide
