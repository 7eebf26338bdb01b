// A repository whose branch is not called main: every command finds it, and merges move it.
#include "tests/e2e/faults_fixture.h"

namespace crucible {
namespace {

class OnTrunk : public FaultsFixture {
 protected:
  void SetUp() override {
    FaultsFixture::SetUp();
    Git({"branch", "-m", "main", "trunk"});
  }
};

TEST_F(OnTrunk, ACampaignRunsAndItsMissionNamesTheBranch) {
  Replace("campaign.toml", "agents = 1", "branch = \"trunk\"\nagents = 1");
  Replace("campaign.toml", "kind = \"command\"\ncommand = [\"true\"]", "kind = \"proposer\"");
  Commit("Let the proposer work");
  const Captured run = Launch();
  EXPECT_TRUE(run.status.ok()) << run.err;
  const auto missions = nlohmann::json::parse(Crucible({"mission", "list", "--json"}).out);
  ASSERT_EQ(missions.size(), 1u) << run.err;
  EXPECT_NE(missions[0]["outcome"], "crashed") << missions[0]["report"];
  const std::string text =
      ReadFile(repository_ / ".crucible" / "missions" / "m1" / "mission.md").value_or("");
  EXPECT_NE(text.find("off trunk at " + std::string(missions[0]["base_commit"])), std::string::npos)
      << text;
  ExpectTidy();
}

TEST_F(OnTrunk, CommandsTakeTheBranchOfHeadOrTheOneNamed) {
  EXPECT_TRUE(Crucible({"init"}).status.ok()) << Crucible({"init"}).err;
  EXPECT_NE(Crucible({"doctor"}).out.find(", trunk at "), std::string::npos)
      << Crucible({"doctor"}).out;
  const std::string target = "examples/transpose/target.toml";
  const Captured check = Crucible({"check", ".", "--target", target, "--quick"});
  EXPECT_TRUE(check.status.ok()) << check.err << check.out;

  // A person on a branch of their own says which one merges move.
  Git({"checkout", "-q", "-b", "own"});
  EXPECT_NE(Crucible({"doctor", "--branch", "trunk"}).out.find(", trunk at "), std::string::npos);
  ExpectOneError(Crucible({"init", "--branch", "gone"}), 2, {"\"gone\" has no commit", "--branch"});
}

}  // namespace
}  // namespace crucible
