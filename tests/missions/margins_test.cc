// When the planner sends a precision mission: after merges that used up accuracy.
#include "missions/margins.h"

#include <gtest/gtest.h>

#include "missions/planner.h"

namespace crucible {
namespace {

class Margins : public testing::Test {
 protected:
  Margins() {
    target.name = "toy";
    target.cases = {{.name = "a"}, {.name = "b"}};
    Take("a");
    Take("b");
  }
  void Take(const std::string& name) {  // each case had its first turn
    MissionRow row;
    row.target = "toy";
    row.campaign = "demo";
    row.state = "done";
    row.cases = {name};
    row.planned_ms = 1;
    row.flavour = "kernel";
    missions.push_back(row);
  }
  void Merged(std::int64_t time_ms, const std::string& name, double eigen, bool landed = true) {
    Entry entry;
    entry.key = "e" + std::to_string(time_ms);
    entry.kind = EntryKind::kWin;
    entry.target = "toy";
    entry.time_ms = time_ms;
    entry.landed = landed;
    entry.margins = {{"eigen", eigen}, {"orthogonal", 1.0}};
    entry.cases = {{.name = name}};
    entry.cases.front().role = "claim";
    entries.push_back(entry);
  }
  std::optional<ThinnedMargin> Found() { return ThinnedMarginOf(entries, missions, "toy", "demo"); }
  MissionPlan Plan(const std::string& usual = "kernel") {
    PlannerInput input;
    input.target = &target;
    input.campaign = "demo";
    input.missions = missions;
    input.entries = entries;
    return PlanNext(input, usual).value_or(MissionPlan{});
  }
  Target target;
  std::vector<Entry> entries;
  std::vector<MissionRow> missions;
};

TEST_F(Margins, AreThinnedWhereAResidualHasDoubled) {
  EXPECT_FALSE(Found()) << "nothing has landed";
  Merged(10, "a", 4.0);
  EXPECT_FALSE(Found()) << "there is nothing to compare it with";
  Merged(20, "b", 7.9);
  EXPECT_FALSE(Found());
  Merged(30, "b", 8.0);
  const auto found = Found();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gate, "eigen");
  EXPECT_EQ(found->least_key, "e10");
  EXPECT_EQ(found->newest_key, "e30");
  EXPECT_EQ(found->claimed, std::vector<std::string>{"b"});
}

TEST_F(Margins, CountOnlyWhatLanded) {
  Merged(10, "a", 4.0);
  Merged(20, "b", 40.0, /*landed=*/false);
  EXPECT_FALSE(Found());
}

TEST_F(Margins, AMergeThatWidensThemSettlesIt) {
  Merged(10, "a", 4.0);
  Merged(20, "b", 9.0);
  Merged(30, "b", 5.0);
  EXPECT_FALSE(Found());
}

TEST_F(Margins, ThePlannerSendsAPrecisionMissionOnceForEachSuchMerge) {
  Merged(10, "a", 4.0);
  Merged(20, "b", 9.0);
  const MissionPlan plan = Plan();
  EXPECT_EQ(plan.flavour, "precision");
  EXPECT_EQ(plan.cases, std::vector<std::string>{"b"});
  EXPECT_NE(plan.why.find("eigen: 4 -> 9"), std::string::npos) << plan.why;
  EXPECT_NE(Plan("proposer").flavour, "precision") << "the proposer turns knobs and nothing else";
  Take("b");
  missions.back().flavour = "precision";
  missions.back().planned_ms = 25;
  EXPECT_NE(Plan().flavour, "precision");
}

}  // namespace
}  // namespace crucible
