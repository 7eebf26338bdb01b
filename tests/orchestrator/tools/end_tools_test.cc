// note, commit, report: what of a mission lasts, and what may.
#include "mission_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class EndTools : public MissionFixture {
 protected:
  ToolAnswer Commit() { return Call("commit", {{"message", "Raise the speed"}}); }
  void LogIt() {
    EXPECT_ANSWER(
        Call("log_experiment",
             {{"mechanism", "speed"}, {"hypothesis", "h"}, {"params", {{"n", ++logged_}}}}),
        "logged");
  }
  int logged_ = 0;
};

TEST_F(EndTools, NotesSurviveARestart) {
  EXPECT_ANSWER(Call("note", json::object()), "no notes yet");
  EXPECT_ANSWER(Call("note", {{"text", "try columns"}}), "noted");
  Remake();
  EXPECT_ANSWER(Call("note", {{"text", "then rows"}}), "noted");
  EXPECT_EQ(Call("note", json::object()).text, "try columns\nthen rows\n");
  EXPECT_ANSWER(Call("note", {{"text", "only rows"}, {"replace", true}}), "noted");
  EXPECT_EQ(ReadFile(Folder() / "notes.md").value(), "only rows\n");
}

TEST_F(EndTools, OnlyWhatWasAcceptedAsItIsIsCommitted) {
  EXPECT_REFUSED(Commit(), "the same as in the last commit");
  Edit("speed = 1", "speed = 2");
  EXPECT_REFUSED(Commit(), "nothing was compared yet");
  Call("compare", {{"rule", "screen"}});
  EXPECT_REFUSED(Commit(), "compare with rule claim");
  Call("compare", json::object());
  Edit("more = 2", "more = 3");
  EXPECT_REFUSED(Commit(), "not those that were compared last");
  Edit("more = 3", "more = 2");
  EXPECT_ANSWER(Commit(), "committed");
  EXPECT_EQ(Log(), "Raise the speed\nfirst\n");
  EXPECT_REFUSED(Commit(), "the same as in the last commit");
}

TEST_F(EndTools, ARejectedTreeIsNotCommitted) {
  Judge("rejected", 1.2);
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_REFUSED(Commit(), "the last comparison said rejected");
}

TEST_F(EndTools, ForeignChangesAreNotCommitted) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  Write(order().worktree / "harness.cc", "int cheat;\n");
  EXPECT_REFUSED(Commit(), "harness.cc");
}

TEST_F(EndTools, LaterComparisonsAreAgainstWhatWasCommitted) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_ANSWER(Commit(), "committed");
  LogIt();
  Remake();
  Edit("more = 2", "more = 3");
  EXPECT_ANSWER(Call("compare", json::object()), "against what is held");
  LogIt();
  const auto arm = json::parse(ReadFile(Folder() / "reports/002-claim.baseline.arm.json").value());
  EXPECT_EQ(arm["build"], (Folder() / "build-1").string());
  EXPECT_EQ(ReadFile(Folder() / "build-1/k").value(), "int speed = 2;\nint more = 2;\n");
  EXPECT_EQ(ReadFile(Folder() / "build-0/k").value(), "int speed = 2;\nint more = 3;\n");
  EXPECT_THAT(ReadFile(Folder() / "reports/002-claim.diff").value(),
              ::testing::Not(HasSubstr("+int speed")));
  EXPECT_THAT(ReadFile(Folder() / "reports/002-claim.diff").value(), HasSubstr("+int more = 3"));
}

TEST_F(EndTools, RestoreGoesBackToTheLastCommit) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_ANSWER(Commit(), "committed");
  Edit("speed = 2", "speed = 3");
  Write(order().worktree / "kernel/new.cc", "x");
  Write(order().worktree / "harness.cc", "int cheat;\n");
  EXPECT_ANSWER(Call("restore", json::object()), "harness.cc, kernel/k.cc, kernel/new.cc");
  EXPECT_EQ(Git(order().worktree, {"status", "--porcelain"}), "");
  EXPECT_EQ(ReadFile(order().worktree / "kernel/k.cc").value(), "int speed = 2;\nint more = 2;\n");
}

TEST_F(EndTools, ASimplifierNeedsAFullCheckAndNoLossInstead) {
  order().flavour = "simplifier";
  Judge("no_difference", 1.0);
  Edit("int more = 2;\n", "");
  Call("compare", json::object());
  EXPECT_REFUSED(Commit(), "full check");
  Judge("passed");
  EXPECT_ANSWER(Call("check", {{"level", "full"}}), "passed");
  EXPECT_ANSWER(Commit(), "committed");
}

TEST_F(EndTools, ASimplifierMayNotMakeItSlowerUnderAnothersName) {
  order().flavour = "simplifier";
  Judge("no_difference", 1.81);
  Edit("int more = 2;\n", "");
  Call("compare", json::object());
  Judge("passed");
  EXPECT_ANSWER(Call("check", {{"level", "full"}}), "passed");
  EXPECT_REFUSED(Commit(), "it was slower");
}

TEST_F(EndTools, AReportEndsTheMissionAndIsWritten) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  Commit();
  EXPECT_REFUSED(Call("report", {{"outcome", "candidate"}, {"report", "# Faster"}}),
                 "the last measurement is not logged");
  LogIt();
  const ToolAnswer answer = Call("report", {{"outcome", "candidate"}, {"report", "# Faster"}});
  EXPECT_TRUE(answer.ends_mission) << answer.text;
  const auto result = ReadMissionResult(Folder());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, "candidate");
  EXPECT_EQ(result->report, "# Faster");
}

TEST_F(EndTools, ACandidateNeedsACommitAndAReportWords) {
  EXPECT_REFUSED(Call("report", {{"outcome", "candidate"}, {"report", "x"}}), "has no commit");
  EXPECT_REFUSED(Call("report", {{"outcome", "pivot"}, {"report", " "}}), "report is empty");
  EXPECT_TRUE(Call("report", {{"outcome", "done"}, {"report", "x"}}).bad_arguments);
  EXPECT_FALSE(ReadMissionResult(Folder()));
}

}  // namespace
}  // namespace crucible
