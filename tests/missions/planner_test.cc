// The planner's policy, rule by rule, over rows filled in by hand.
#include "missions/planner.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

class Planner : public ::testing::Test {
 protected:
  Planner() {
    target_.name = "toy";
    target_.cases = {{.name = "a"}, {.name = "b"}, {.name = "c", .floor_us = 10.0}};
    input_.target = &target_;
    input_.campaign = "demo";
    input_.now = {{"compiler", "gcc 13"}};
  }
  MissionRow& Mission(const std::string& state, std::vector<std::string> cases) {
    MissionRow row;
    row.id = "m" + std::to_string(input_.missions.size() + 1);
    row.campaign = "demo";
    row.target = "toy";
    row.state = state;
    row.cases = std::move(cases);
    if (state == "done") row.ended_ms = 1000 + static_cast<std::int64_t>(input_.missions.size());
    input_.missions.push_back(row);
    return input_.missions.back();
  }
  Entry& Experiment(EntryKind kind, const std::string& name, const std::string& change,
                    const std::string& compiler) {
    Entry entry;
    entry.key = "key" + std::to_string(input_.entries.size() + 1);
    entry.kind = kind;
    entry.target = "toy";
    entry.change = change;
    entry.cases = {{.name = name}};
    entry.conditions = {{"compiler", compiler}};
    input_.entries.push_back(entry);
    return input_.entries.back();
  }
  void Measured(const std::string& name, double us, const std::string& kind = "main",
                const std::string& who = "") {
    Point point;
    point.target = "toy";
    point.case_name = name;
    point.kind = kind;
    point.name = who;
    point.median_us = us;
    input_.points.push_back(point);
  }
  MissionPlan Plan() {
    const auto plan = PlanNext(input_, "kernel");
    EXPECT_TRUE(plan);
    return plan.value_or(MissionPlan{});
  }
  using Names = std::vector<std::string>;
  Target target_;
  PlannerInput input_;
};

TEST_F(Planner, TiesGoToTheTargetFilesOrder) {
  EXPECT_EQ(Plan().cases, Names{"a"});
  EXPECT_EQ(Plan().flavour, "kernel");
}

TEST_F(Planner, OnlyTheCampaignsCasesAreWorkedOnUnlessAPersonAddsOne) {
  input_.only = {"c", "b"};
  EXPECT_EQ(Plan().cases, Names{"b"});
  Mission("running", {"b"});
  EXPECT_EQ(Plan().cases, Names{"c"});
  Mission("running", {"c"});
  EXPECT_FALSE(PlanNext(input_, "kernel"));
  Mission("planned", {"a"});
  EXPECT_EQ(Plan().cases, Names{"a"});
}

TEST_F(Planner, APersonsMissionComesFirstAndWaitsForItsCases) {
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,2]}", "gcc 12");
  MissionRow& added = Mission("planned", {"b"});
  added.campaign = "";
  added.flavour = "scout";
  added.goal = "Read b";
  EXPECT_EQ(Plan().added_mission, "m1");
  EXPECT_EQ(Plan().goal, "Read b");
  EXPECT_EQ(Plan().flavour, "scout");
  Mission("running", {"b"});
  EXPECT_EQ(Plan().added_mission, "");
  EXPECT_EQ(Plan().cases, Names{"a"});
}

TEST_F(Planner, ARejectionUnderOtherConditionsIsRetestedOnce) {
  Measured("c", 1000);
  Experiment(EntryKind::kNull, "b", "{\"k\":[1,2]}", "gcc 12");
  Experiment(EntryKind::kLoss, "b", "{\"k\":[1,4]}", "gcc 13");  // today's conditions: it holds
  Experiment(EntryKind::kRefused, "b", "{\"k\":[1,8]}", "gcc 12");
  const MissionPlan plan = Plan();
  EXPECT_EQ(plan.cases, Names{"b"});
  EXPECT_EQ(plan.retry, Names{"key1"});
  EXPECT_NE(plan.why.find("compiler: gcc 12 -> gcc 13"), std::string::npos) << plan.why;
  Mission("done", {"b"}).settings = R"({"retry":["key1"]})";
  EXPECT_TRUE(Plan().retry.empty());
}

TEST_F(Planner, AnotherKernelGenerationAloneIsNoReasonForARetest) {
  input_.now["kernel_generation"] = "new";
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,2]}", "gcc 13").conditions["kernel_generation"] =
      "old";
  EXPECT_TRUE(Plan().retry.empty());
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,4]}", "gcc 12").conditions["kernel_generation"] =
      "old";
  const MissionPlan plan = Plan();
  EXPECT_EQ(plan.retry, Names{"key2"});
  EXPECT_EQ(plan.why.find("kernel_generation"), std::string::npos) << plan.why;
}

TEST_F(Planner, ASupersededConflatedOrRemeasuredRejectionIsNotRetested) {
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,2]}", "gcc 12");
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,2]}", "gcc 13");
  EXPECT_TRUE(Plan().retry.empty());
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,4]}", "gcc 12").conflated = true;
  EXPECT_TRUE(Plan().retry.empty());
  Experiment(EntryKind::kLoss, "a", "{\"k\":[1,8]}", "gcc 12");
  EXPECT_EQ(Plan().retry, Names{"key4"});
  Experiment(EntryKind::kNote, "a", "{}", "gcc 13").supersedes = "key4";
  EXPECT_TRUE(Plan().retry.empty());
}

TEST_F(Planner, AnInconclusiveExperimentIsMeasuredAgainOnceEveryCaseHadItsTurn) {
  Experiment(EntryKind::kInconclusive, "b", "{\"k\":[1,2]}", "gcc 13");
  Mission("done", {"b"});
  Mission("done", {"a"});
  EXPECT_EQ(Plan().cases, Names{"c"});
  EXPECT_TRUE(Plan().retry.empty());
  Mission("done", {"c"});
  EXPECT_EQ(Plan().retry, Names{"key1"});
  Mission("running", {"b"});
  EXPECT_TRUE(Plan().retry.empty());
  EXPECT_EQ(Plan().cases, Names{"a"});
}

TEST_F(Planner, TheLargestDistanceToTheFloorWins) {
  Measured("a", 200);
  Measured("a", 100, "peer", "slow");
  Measured("a", 50, "peer", "fast");  // ln 4
  Measured("b", 100);
  Measured("b", 200, "peer", "fast");  // slower than ours: 0.1
  Measured("c", 50);                   // ln 5
  EXPECT_EQ(Plan().cases, Names{"c"});
  EXPECT_NE(Plan().why.find("floor 10.0 us"), std::string::npos) << Plan().why;
  EXPECT_NE(Plan().goal.find("than 50.0 us (floor 10.0 us)"), std::string::npos) << Plan().goal;
  Mission("done", {"c"});  // landed nothing: ln 5 halved, ln 4 not
  EXPECT_EQ(Plan().cases, Names{"a"});
}

TEST_F(Planner, ABarThatMovedIsLessStale) {
  Measured("a", 100);
  Measured("b", 100);
  Mission("done", {"c"}).merge_outcome = "landed";
  input_.points.front().record = true;
  input_.points.front().time_ms = 5000;  // a moved after that mission
  EXPECT_EQ(Plan().cases, Names{"b"});
}

TEST_F(Planner, TheFlavourFollowsFromWhatCameOfEarlierMissions) {
  input_.missions.clear();
  EXPECT_EQ(Plan().flavour, "kernel");
  for (const char* name : {"a", "b", "c", "a", "b", "c"}) Mission("done", {name});  // all in vain
  EXPECT_EQ(Plan().flavour, "explorer");
  for (const char* name : {"a", "b", "c", "a", "b", "c"}) Mission("done", {name});
  EXPECT_EQ(Plan().flavour, "scout");
  EXPECT_EQ(PlanNext(input_, "proposer")->flavour, "proposer");
  for (int i = 0; i < 4; ++i) Mission("done", {"a"}).merge_outcome = "landed";
  EXPECT_EQ(Plan().flavour, "simplifier");
  Mission("done", {"a"}).flavour = "simplifier";
  EXPECT_NE(Plan().flavour, "simplifier");
}

TEST_F(Planner, NothingIsGivenOutTwice) {
  Mission("running", {"a"});
  Mission("ended", {"b"});
  Mission("merging", {"c"});
  std::string why_not;
  EXPECT_FALSE(PlanNext(input_, "kernel", &why_not));
  EXPECT_NE(why_not.find("every case of toy"), std::string::npos);
  input_.missions[1].merge_outcome = "flagged";  // waits for a person: holds nothing back
  EXPECT_EQ(Plan().cases, Names{"b"});
}

TEST_F(Planner, TheSameLogGivesTheSamePlan) {
  Measured("a", 200);
  Experiment(EntryKind::kInconclusive, "b", "{}", "gcc 13");
  EXPECT_EQ(Plan().why, Plan().why);
  EXPECT_EQ(Plan().retry, Plan().retry);
}

TEST_F(Planner, ACaseThatSharesAFileWithARunningMissionWaitsWhileAnotherIsFree) {
  // b has the larger score, but its knobs are in the file that the mission on a edits.
  input_.files_of_case = {{"a", {"small.h"}}, {"b", {"small.h"}}, {"c", {"large.h"}}};
  Measured("a", 100);
  Measured("b", 100);
  Measured("b", 10, "peer", "lib");
  Measured("c", 10.5);
  EXPECT_EQ(Plan().cases, Names{"b"});
  Mission("running", {"a"});
  const MissionPlan plan = Plan();
  EXPECT_EQ(plan.cases, Names{"c"});
  EXPECT_NE(plan.why.find("b waits: it edits small.h, as m1 does"), std::string::npos) << plan.why;
}

TEST_F(Planner, NoTwoMissionsShareAFileHoweverTheyWereChosen) {
  input_.files_of_case = {{"a", {"small.h"}}, {"b", {"small.h"}}, {"c", {"large.h"}}};
  for (const char* state : {"preparing", "running", "ended", "merging"}) {
    SCOPED_TRACE(state);
    input_.missions.clear();
    input_.entries.clear();
    Mission("done", {"c"});  // had its turn, so b would come before it
    Mission(state, {"a"});
    EXPECT_EQ(Plan().cases, Names{"c"});
    Experiment(EntryKind::kLoss, "b", R"({"k":1})", "gcc 12");  // up for a retest
    EXPECT_EQ(Plan().cases, Names{"c"});
  }
  input_.missions.back().state = "done";
  EXPECT_EQ(Plan().cases, Names{"b"});
}

TEST_F(Planner, WhereEveryFreeCaseSharesAFileOneIsGivenOutAnyway) {
  input_.files_of_case = {{"a", {"all.h"}}, {"b", {"all.h"}}, {"c", {"all.h", "large.h"}}};
  Mission("running", {"a"});
  const MissionPlan plan = Plan();
  EXPECT_EQ(plan.cases.size(), 1u);
  EXPECT_NE(plan.cases, Names{"a"});
  EXPECT_EQ(plan.why.find("waits"), std::string::npos) << plan.why;
}

TEST_F(Planner, AMissionThatAPersonAddedWaitsForItsCasesOnly) {
  input_.files_of_case = {{"a", {"small.h"}}, {"b", {"small.h"}}, {"c", {"large.h"}}};
  Mission("running", {"a"});
  Mission("planned", {"b"});
  EXPECT_EQ(Plan().added_mission, "m2");
}

}  // namespace
}  // namespace crucible
