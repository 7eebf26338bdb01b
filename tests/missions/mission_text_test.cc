// The mission as the agent reads it: narrow, complete, and with nothing left to fill in.
#include "missions/mission_text.h"

#include <gtest/gtest.h>

#include "missions/templates.h"

namespace crucible {
namespace {

Target Toy() {
  Target target;
  target.name = "toy";
  target.file = "/r/toy.toml";
  target.description = "a toy {{kernel}}";
  target.editable = {"kernels/toy/"};
  target.protected_ = {"kernels/toy/api.h"};
  target.cases = {{.name = "n32", .params = R"({"n":32})", .floor_us = 12.0, .floor_why = "flops"},
                  {.name = "n176", .params = R"({"n":176})"}};
  return target;
}

TEST(MissionText, SaysGoalLimitsPathsBudgetAndCommands) {
  MissionPlan plan;
  plan.flavour = "explorer";
  plan.cases = {"n32"};
  plan.goal = "Make n32 faster";
  plan.why = "its bar has not moved";
  plan.retry = {"abc123"};
  const std::string base = "0123456789abcdef0123456789abcdef01234567";
  const std::string text = MissionText("m7", plan, Toy(), {90'000, 6}, "trunk", base, "/tmp/w/m7");
  for (const char* part :
       {"# Mission m7 (explorer): Make n32 faster", "off trunk at 0123456789ab",
        "its bar has not moved", "floor 12.0 us (flops)", "No other case may get slower: `n176`",
        "  - kernels/toy/\n", "- kernels/toy/api.h", "6 experiments",
        "Measure these again first: [abc123]", "a toy {{kernel}}",
        "crucible check /tmp/w/m7 --target /r/toy.toml",
        "crucible compare 0123456789ab /tmp/w/m7 --case n32 --target /r/toy.toml", "`pivot`",
        "different architecture"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(MissionText, EveryFlavourHasItsOwnTemplate) {
  for (const char* flavour :
       {"kernel", "explorer", "precision", "simplifier", "scout", "proposer"}) {
    EXPECT_GT(FlavourTemplate(flavour).size(), 100u) << flavour;
    MissionPlan plan;
    plan.flavour = flavour;
    plan.cases = {"n32", "n176"};
    Target target = Toy();
    target.description = "plain";
    const std::string text = MissionText("m1", plan, target, {1000, 1}, "main", "c0ffee", "/w");
    EXPECT_EQ(text.find("{{"), std::string::npos) << text;
    EXPECT_NE(text.find(FlavourTemplate(flavour)), std::string::npos);
    EXPECT_NE(text.find("No other case may get slower: none"), std::string::npos);
  }
  EXPECT_EQ(FlavourTemplate("unknown"), "");
}

}  // namespace
}  // namespace crucible
