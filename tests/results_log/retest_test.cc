// A rejection holds under its conditions, and is asked again when one of them changed.
#include "results_log/retest.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace crucible {
namespace {

Entry Rejected(const std::string& key, const std::string& compiler, std::int64_t time_ms) {
  Entry entry;
  entry.key = key;
  entry.kind = EntryKind::kLoss;
  entry.time_ms = time_ms;
  entry.target = "eigh";
  entry.mechanism = "panel width";
  entry.change = R"({"panel":[1,8]})";
  entry.cases = {{"n32"}};
  entry.conditions = {{"compiler", compiler}};
  return entry;
}

TEST(Retest, NamesTheFieldThatChanged) {
  const auto retests = FindRetests({Rejected("a", "gcc 12", 1)}, {}, {{"compiler", "gcc 13"}});
  ASSERT_EQ(retests.size(), 1u);
  EXPECT_EQ(Describe(retests[0].changed), "compiler: gcc 12 -> gcc 13");
  EXPECT_TRUE(FindRetests({Rejected("a", "gcc 12", 1)}, {}, {{"compiler", "gcc 12"}}).empty());
  EXPECT_TRUE(FindRetests({Rejected("a", "gcc 12", 1)}, {"n64"}, {{"compiler", "gcc 13"}}).empty());
}

TEST(Retest, IsAnsweredByANewerMeasurementUnderTodaysConditions) {
  const Conditions now = {{"compiler", "gcc 13"}};
  const Entry old = Rejected("a", "gcc 12", 1);
  Entry again = Rejected("b", "gcc 13", 2);
  EXPECT_TRUE(FindRetests({old, again}, {}, now).empty());
  again.kind = EntryKind::kInconclusive;  // said nothing, so it answers nothing
  EXPECT_EQ(FindRetests({old, again}, {}, now).size(), 1u);
  again.kind = EntryKind::kLoss;
  again.change = R"({"panel":[1,16]})";
  EXPECT_EQ(FindRetests({old, again}, {}, now).size(), 1u);
}

TEST(Retest, LeavesOutWinsAndReplacedEntries) {
  const Conditions now = {{"compiler", "gcc 13"}};
  Entry win = Rejected("a", "gcc 12", 1);
  win.kind = EntryKind::kWin;
  Entry corrected = Rejected("c", "gcc 12", 3);
  corrected.supersedes = "b";
  const auto retests = FindRetests({win, Rejected("b", "gcc 12", 2), corrected}, {}, now);
  ASSERT_EQ(retests.size(), 1u);
  EXPECT_EQ(retests[0].entry.key, "c");
}

TEST(Retest, TodaysKernelIsTheNewestEntrysOrWhatLandedSince) {
  Entry measured = Rejected("a", "gcc 12", 1);
  measured.conditions["kernel_generation"] = "g1";
  EXPECT_EQ(ConditionsFromLog({measured}, {"n32"}, {}).at("kernel_generation"), "g1");
  Entry landed = measured;
  landed.key = "m";
  landed.time_ms = 2;
  landed.kind = EntryKind::kWin;
  landed.landed = true;
  const Conditions now = ConditionsFromLog({measured, landed}, {"n32"}, {{"compiler", "gcc 13"}});
  EXPECT_EQ(now.at("kernel_generation"), "after m");
  EXPECT_EQ(now.at("compiler"), "gcc 13");
  EXPECT_FALSE(ConditionsFromLog({landed}, {"n64"}, {}).contains("kernel_generation"));
}

TEST(Retest, AnEntryThatNamesOneConditionLeavesTheOthersAsTheyWere) {
  Entry whole = Rejected("a", "gcc 12", 1);
  whole.conditions["driver"] = "1";
  Entry later = Rejected("b", "gcc 13", 2);
  later.conditions = {{"compiler", "gcc 13"}};
  const Conditions now = ConditionsFromLog({later, whole}, {}, {});
  EXPECT_EQ(now.at("compiler"), "gcc 13");
  EXPECT_EQ(now.at("driver"), "1");
}

TEST(Retest, APersonsRemarkIsNotTodayButTheirMeasurementIs) {
  Entry remark = Rejected("a", "gcc 12", 1);
  remark.author = "user:ada";
  for (CaseResult& result : remark.cases) result.after_us.reset();
  EXPECT_TRUE(ConditionsFromLog({remark}, {}, {}).empty());
  remark.cases[0].after_us = 12;
  EXPECT_EQ(ConditionsFromLog({remark}, {}, {}).at("compiler"), "gcc 12");
}

TEST(Retest, TheSurveyCountsWhatBecameOfEveryRejection) {
  Entry kept = Rejected("kept", "gcc 12", 1), bare = Rejected("bare", "gcc 12", 2);
  kept.landed = true;
  kept.mechanism = "kept";
  bare.mechanism = "bare";
  bare.conditions.clear();
  Entry holds = Rejected("holds", "gcc 13", 3), better = Rejected("better", "gcc 13", 4);
  holds.mechanism = "holds";
  better.mechanism = "better";
  better.supersedes = "old";
  Entry old = Rejected("old", "gcc 12", 2), lost = Rejected("lost", "gcc 13", 5);
  lost.mechanism = "won";
  Entry won = Rejected("won", "gcc 13", 6);
  won.mechanism = "won";
  won.kind = EntryKind::kWin;
  const RetestSurvey survey =
      SurveyRetests({kept, bare, old, holds, better, lost, won, Rejected("up", "gcc 12", 7)}, {},
                    {{"compiler", "gcc 13"}});
  EXPECT_EQ(survey.without_conditions, 1);
  EXPECT_EQ(survey.holding, 2) << "holds and better";
  EXPECT_EQ(survey.replaced, 1) << "old";
  EXPECT_EQ(survey.settled, 1) << "lost, won since";
  ASSERT_EQ(survey.retests.size(), 1u);
  EXPECT_EQ(survey.retests[0].entry.key, "up");
}

TEST(Retest, AChangeOfTheDecisionRulesOpensWhatTheOldOnesRejected) {
  Entry old = Rejected("a", "gcc 12", 1);
  old.conditions["judge_protocol"] = "1";
  const auto retests = FindRetests({old}, {}, {{"compiler", "gcc 12"}, {"judge_protocol", "2"}});
  ASSERT_EQ(retests.size(), 1u);
  EXPECT_EQ(Describe(retests[0].changed), "judge_protocol: 1 -> 2");
}

TEST(Floor, IsAssertedUnlessItNamesWhatItWasComputedFrom) {
  Entry floor;
  floor.kind = EntryKind::kFloor;
  EXPECT_TRUE(IsAssertedFloor(floor));
  floor.reason = "it is well known";
  EXPECT_TRUE(IsAssertedFloor(floor));
  for (const char* without :
       {"somebody measured 12 us in 2019", "10/3 n^3 flops", "2.18 Mflop",
        "n = 32 takes 9 launches", "5 % below the record", "12us", "3 steps"}) {
    floor.reason = without;
    EXPECT_TRUE(IsAssertedFloor(floor)) << without;
  }
  for (const char* with :
       {"2 GB at 3.3 TB/s", "2.18 Mflop at 66.9 TFLOPS (stated peak)", "20 x 100 flop at 2 Gflop/s",
        "2 cores x 32 flops/cycle x 3.5 GHz", "9 launches, latency 2.1 us each",
        "40 MB at 4.8e12 bytes per second", "32 lanes at 1,980 MHz"}) {
    floor.reason = with;
    EXPECT_FALSE(IsAssertedFloor(floor)) << with;
  }
  floor.reason = "measured";
  floor.evidence = {{"profile", "p.txt", ""}};
  EXPECT_FALSE(IsAssertedFloor(floor));
}

TEST(Split, MakesPartsOnceAndMarksTheWhole) {
  const auto root = MakeTemporaryDirectory("split_test").value();
  Store store = Store::Open(root / "log.sqlite").value();
  ASSERT_TRUE(store.AddEntry(Rejected("whole1", "gcc 12", 1)));
  Entry one, two;
  one.mechanism = "panel width";
  one.kind = EntryKind::kWin;
  two.mechanism = "unroll";
  two.kind = EntryKind::kLoss;
  EXPECT_EQ(SplitEntry(&store, "whole1", {one}).error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(store.FindEntry("whole1")->conflated);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto parts = SplitEntry(&store, "whole1", {one, two});
    ASSERT_TRUE(parts) << parts.error().text;
    EXPECT_EQ((*parts)[1].key, "whole1.s2");
    EXPECT_EQ((*parts)[1].conditions.at("compiler"), "gcc 12");
  }
  EXPECT_EQ(store.QueryEntries({})->size(), 3u);
  EXPECT_TRUE(store.FindEntry("whole1")->conflated);
  EntryFilter live;
  live.superseded = false;
  EXPECT_EQ(store.QueryEntries(live)->size(), 2u);
  EXPECT_TRUE(RemoveTree(root));
}

}  // namespace
}  // namespace crucible
