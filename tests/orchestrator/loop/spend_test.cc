// Budgets: which is used up first, and what an agent is told before.
#include "orchestrator/agents/loop/spend.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

TEST(Spend, ReadsOfACacheAreNoTokensOfTheBudget) {
  EXPECT_EQ(Tokens({.input = 1, .output = 2, .cache_read = 1000, .cache_write = 4}), 7);
}

TEST(Spend, ZeroIsNoLimit) {
  LoopSpend spend;
  spend.turns = 1'000'000;
  spend.usd = 1e6;
  spend.usage.input = 1'000'000'000;
  spend.format_errors_in_a_row = spend.idle_turns_in_a_row = 1000;
  const LoopBudgets none = {.turns = 0, .format_errors = 0, .idle_turns = 0};
  EXPECT_FALSE(UsedUp(none, spend, 1'000'000));
  EXPECT_EQ(NearlyUsedUp(none, spend, 0, 1'000'000), "");
}

TEST(Spend, TheDeadlineComesFirst) {
  LoopSpend spend;
  spend.turns = 10;
  const LoopBudgets budgets = {.deadline_ms = 100, .turns = 10};
  EXPECT_EQ(UsedUp(budgets, spend, 99), LoopEnd::kTurns);
  EXPECT_EQ(UsedUp(budgets, spend, 100), LoopEnd::kWall);
}

TEST(Spend, NearlyIsFourFifths) {
  LoopSpend spend;
  spend.usd = 7.99;
  const LoopBudgets budgets = {.deadline_ms = 10'000, .turns = 0, .usd = 10};
  EXPECT_EQ(NearlyUsedUp(budgets, spend, 0, 7'999), "");
  spend.usd = 8;
  EXPECT_EQ(NearlyUsedUp(budgets, spend, 0, 8'000), "2.0 s left; 8.00 of 10.00 USD");
}

}  // namespace
}  // namespace crucible
