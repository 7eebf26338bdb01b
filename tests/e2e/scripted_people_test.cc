// What people do with a campaign of models: follow a transcript, approve each merge, leave a note.
#include "tests/e2e/scripted_fixture.h"

namespace crucible {
namespace {

// A clear gain, kept and reported.
json DropsTheLaterPasses() {
  const json params = {{"passes", {3, 1}}};
  return Conversation(
      "Make n128 faster",
      {Edit(kKernelFile, "n > 180 ? kLargePasses : kPasses;", "n > 180 ? kLargePasses : 1;"),
       Compare("one pass", params),
       Log("one pass", "a third of the time: the passes all write the same", params),
       Commit("Go over the matrix once"),
       Report("candidate", "The later passes wrote what was there.")});
}

class ScriptedPeopleTest : public ScriptedFixture {
 protected:
  void SetUp() override {
    ScriptedFixture::SetUp();
    // The harness notes its whole environment, in which no key may be: it loads an agent's code.
    Replace("examples/transpose/harness.py", "FLUSH_BYTES =",
            "with open('" + (root_ / "harness_environment").string() +
                "', 'a') as file:\n    file.write(repr(dict(os.environ)) + '\\n')\nFLUSH_BYTES =");
    Commit("Note the harness's environment");
  }
};

TEST_F(ScriptedPeopleTest, AMergeWaitsForAPersonWhoFollowsNotesAndApproves) {
  AddCampaign(1, 1, true, "150s", "[merge]\napprove = true\n");
  StartServer({DropsTheLaterPasses(), NothingToDo()});
  const std::string start = Git({"rev-parse", "main"});
  const auto ended = StartCampaign({"launch", "models.toml"}).Wait(std::chrono::minutes(4));
  ASSERT_TRUE(ended && ended->ok()) << CampaignLog();

  const json waits = MissionOf("Make n128 faster");
  EXPECT_EQ(waits["outcome"], "candidate") << CampaignLog();
  EXPECT_EQ(waits["merge_outcome"], "awaiting_approval") << CampaignLog();
  EXPECT_EQ(Git({"rev-parse", "main"}), start) << "nothing lands without a person";
  const std::string id = waits["id"];

  const Captured followed = Crucible({"mission", "attach", id, "--no-follow"});
  EXPECT_TRUE(followed.status.ok()) << followed.err;
  for (const char* shown : {"edit_file", "verdict: accepted", "report"})
    EXPECT_NE(followed.out.find(shown), std::string::npos) << shown << "\n" << followed.out;

  EXPECT_TRUE(
      Crucible({"campaign", "note", "Look at the row order next", "--case", "n128"}).status.ok());
  const Captured brief = Crucible({"brief", "n128", "--target", "transpose"});
  EXPECT_NE(brief.out.find("Look at the row order next"), std::string::npos) << brief.out;

  const Captured approved = Crucible({"mission", "approve", id});
  EXPECT_TRUE(approved.status.ok()) << approved.out << approved.err;
  EXPECT_EQ(MissionOf("Make n128 faster")["merge_outcome"], "landed");
  EXPECT_EQ(Git({"rev-list", "--first-parent", "--count", start + "..main"}), "1");
  EXPECT_NE(ReadFile(root_ / "harness_environment").value_or("").find("PATH"), std::string::npos);
  ExpectNoFileHasTheKey();
}

}  // namespace
}  // namespace crucible
