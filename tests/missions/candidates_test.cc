// The list a planner model chooses from: the policy's own choice first, one mission a case.
#include "missions/candidates.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

using Names = std::vector<std::string>;

class Candidates : public testing::Test {
 protected:
  Candidates() {
    target.name = "toy";
    target.cases = {{.name = "a"}, {.name = "b"}, {.name = "c", .floor_us = 10.0}};
    input.target = &target;
    input.campaign = "demo";
    Point point;
    point.target = "toy";
    point.case_name = "c";
    point.kind = "main";
    point.median_us = 100;
    input.points = {point};
  }
  MissionRow& Mission(const std::string& state, Names cases) {
    MissionRow row;
    row.id = "m" + std::to_string(input.missions.size() + 1);
    row.campaign = "demo";
    row.target = "toy";
    row.state = state;
    row.cases = std::move(cases);
    row.flavour = "kernel";
    input.missions.push_back(row);
    return input.missions.back();
  }
  Names CasesOf(const std::vector<MissionPlan>& plans) {
    Names names;
    for (const MissionPlan& plan : plans) names.push_back(plan.cases.front());
    return names;
  }
  Target target;
  PlannerInput input;
};

TEST_F(Candidates, TheFirstIsThePolicysOwnChoiceAndEachCaseComesOnce) {
  const auto plans = PlanCandidates(input, "kernel", 10);
  EXPECT_EQ(CasesOf(plans), (Names{"c", "a", "b"}));
  const auto own = PlanNext(input, "kernel");
  ASSERT_TRUE(own);
  EXPECT_EQ(plans.front().why, own->why);
  EXPECT_EQ(plans.front().flavour, own->flavour);
  EXPECT_NE(plans.back().why.find("b has the largest score"), std::string::npos)
      << plans.back().why;
}

TEST_F(Candidates, ACaseThatIsWorkedOnIsNone) {
  Mission("running", {"a"});
  EXPECT_EQ(CasesOf(PlanCandidates(input, "kernel", 10)), (Names{"c", "b"}));
}

TEST_F(Candidates, AreAtMostSoMany) {
  EXPECT_EQ(PlanCandidates(input, "kernel", 2).size(), 2u);
  EXPECT_EQ(PlanCandidates(input, "kernel", 1).size(), 1u);
}

TEST_F(Candidates, APersonsMissionIsTheOnlyOne) {
  Mission("planned", {"b"});
  const auto plans = PlanCandidates(input, "kernel", 10);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans.front().added_mission, "m1");
}

TEST_F(Candidates, ThereAreNoneWhereEveryCaseIsTaken) {
  Mission("running", {"a", "b", "c"});
  std::string why_not;
  EXPECT_TRUE(PlanCandidates(input, "kernel", 10, &why_not).empty());
  EXPECT_NE(why_not.find("being worked on"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace crucible
