// build, check, compare: through the queue, bound to the files they saw, within the mission's
// limits.
#include "mission_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class MeasureTools : public MissionFixture {};

TEST_F(MeasureTools, BuildsTheFreeSlotOnceForTheSameFiles) {
  EXPECT_ANSWER(Call("build", json::object()), "built (files");
  EXPECT_ANSWER(Call("build", json::object()), "nothing changed");
  Edit("speed = 1", "speed = 2");
  EXPECT_ANSWER(Call("build", json::object()), "built (files");
  EXPECT_EQ(ReadFile(Folder() / "build-1/count").value(), "run\nrun\n");
}

TEST_F(MeasureTools, ABrokenBuildQuotesTheCompilerAndCanBeLoggedAsCrashed) {
  Edit("speed = 1", "broken");
  EXPECT_REFUSED(Call("compare", json::object()), "k.cc:1: error: broken");
  EXPECT_ANSWER(Call("log_experiment", {{"mechanism", "m"}, {"hypothesis", "h"}}), "crashed m");
}

TEST_F(MeasureTools, CompareAnswersTheTableAndAsksForAClaimAfterAScreen) {
  Edit("speed = 1", "speed = 2");
  const ToolAnswer screen = Call("compare", {{"rule", "screen"}});
  EXPECT_THAT(screen.text, HasSubstr("verdict: accepted"));
  EXPECT_THAT(screen.text, HasSubstr("-10.00 %"));
  EXPECT_THAT(screen.text, HasSubstr("-11.00 % .. -9.00 %"));
  EXPECT_THAT(screen.text, HasSubstr("why: the reason"));
  EXPECT_THAT(screen.text, HasSubstr("compare again with rule claim"));
  EXPECT_ANSWER(Call("compare", json::object()), "Accepted: commit it");
  EXPECT_THAT(JudgeCalls(), HasSubstr("--rule screen"));
  EXPECT_THAT(JudgeCalls(), HasSubstr("--rule confirm --no-quick-check"));
}

TEST_F(MeasureTools, WhatIsTheSameIsNotMeasured) {
  EXPECT_REFUSED(Call("compare", json::object()), "the same as what they would be compared with");
  EXPECT_EQ(JudgeCalls(), "");
}

TEST_F(MeasureTools, AChangeOfForeignFilesIsNeitherBuiltNorJudged) {
  Write(order().worktree / "harness.cc", "int cheat;\n");
  Write(order().worktree / "new.txt", "x");
  for (const char* tool : {"build", "check", "compare"}) {
    const ToolAnswer answer = Call(tool, json::object());
    EXPECT_TRUE(answer.is_error) << tool;
    EXPECT_THAT(answer.text, HasSubstr("harness.cc, new.txt")) << tool;
  }
  EXPECT_EQ(JudgeCalls(), "");
}

TEST_F(MeasureTools, ExperimentsAreCountedByFilesAndEndAtTheBudget) {
  order().experiments = 1;
  Edit("speed = 1", "speed = 2");
  EXPECT_ANSWER(Call("compare", {{"rule", "screen"}}), "1 of 1 experiment made");
  EXPECT_ANSWER(Call("compare", json::object()), "Accepted");  // the same files, confirmed
  EXPECT_ANSWER(Call("log_experiment", {{"mechanism", "m"}, {"hypothesis", "h"}}), "win");
  Edit("speed = 2", "speed = 3");
  EXPECT_REFUSED(Call("compare", json::object()), "1 experiment is used up");
}

TEST_F(MeasureTools, TheNextComparisonWaitsForTheLogOfTheLast) {
  Judge("rejected", 1.1);
  Edit("speed = 1", "speed = 2");
  EXPECT_ANSWER(Call("compare", json::object()), "verdict: rejected");
  Edit("speed = 2", "speed = 3");
  Remake();  // also after a restart
  EXPECT_REFUSED(Call("compare", json::object()), "log_experiment first");
}

TEST_F(MeasureTools, ARejectedTreeIsNotMeasuredAgainUntilChanceTakesIt) {
  Judge("rejected", 1.1);
  Edit("speed = 1", "speed = 2");
  EXPECT_ANSWER(Call("compare", {{"rule", "screen"}}), "verdict: rejected");
  EXPECT_REFUSED(Call("compare", {{"rule", "screen"}}), "log_experiment first");
  EXPECT_ANSWER(Call("compare", json::object()), "verdict: rejected");  // the stricter rule
  Judge("accepted", 0.9);
  EXPECT_REFUSED(Call("compare", json::object()), "log_experiment first");
  EXPECT_ANSWER(Call("log_experiment", {{"mechanism", "m"}, {"hypothesis", "h"}}), "loss");
  EXPECT_REFUSED(Call("compare", {{"mechanism", "another name"}}), "[e1] m: loss");
}

TEST_F(MeasureTools, AKnownRejectionIsRefusedBeforeItIsMeasured) {
  {
    Store store = OpenLog();
    Entry entry;
    entry.key = "c0.m0.1";
    entry.kind = EntryKind::kLoss;
    entry.target = "toy";
    entry.mechanism = "speed";
    entry.change = R"({"params":{"speed":[1,2]}})";
    entry.cases = {{.name = "n32"}};
    entry.conditions = order().now;
    ASSERT_TRUE(store.AddEntry(entry));
  }
  Edit("speed = 1", "speed = 2");
  EXPECT_REFUSED(Call("compare", {{"mechanism", "Speed"}, {"params", {{"speed", 2}}}}), "[e1]");
  EXPECT_EQ(JudgeCalls(), "");
  EXPECT_ANSWER(Call("compare", {{"mechanism", "speed"}, {"params", {{"speed", 3}}}}), "accepted");
}

TEST_F(MeasureTools, AFailedCheckIsAnErrorWithItsReason) {
  Edit("speed = 1", "speed = 2");
  answer_ = {{"op", "check"},
             {"pass", false},
             {"verdict", "check_failed"},
             {"reason", "wrong"},
             {"checks",
              {{{"case", "dense n=3"},
                {"pass", false},
                {"margins", {{"eigen", 900.0}}},
                {"reason", "eigen 900 > 200"}}}}};
  WriteAnswer(1);
  const ToolAnswer answer = Call("check", {{"level", "full"}});
  EXPECT_TRUE(answer.is_error);
  EXPECT_THAT(answer.text, HasSubstr("first failed check: dense n=3: eigen 900 > 200"));
  EXPECT_THAT(JudgeCalls(), HasSubstr("--level full"));
  EXPECT_ANSWER(Call("log_experiment", {{"mechanism", "m"}, {"hypothesis", "h"}}), "refused m");
}

TEST_F(MeasureTools, AFailureOfTheMachineIsNoVerdict) {
  Edit("speed = 1", "speed = 2");
  answer_ = {{"op", "compare"}, {"error", "the baseline crashed"}};
  WriteAnswer(3);
  EXPECT_REFUSED(Call("compare", json::object()), "the baseline crashed");
  EXPECT_REFUSED(Call("log_experiment", {{"mechanism", "m"}, {"hypothesis", "h"}}),
                 "nothing was measured yet");
}

TEST_F(MeasureTools, AStopEndsTheJudgementThatIsWaitedFor) {
  Write(root_ / "before", "touch '" + (root_ / "judging").string() + "'; exec sleep 1000\n");
  context_.interrupted = [this] { return fs::exists(root_ / "judging"); };
  Edit("speed = 1", "speed = 2");
  EXPECT_REFUSED(Call("compare", json::object()), "ended with the mission");
}

TEST_F(MeasureTools, AfterTheDeadlineNothingIsStarted) {
  order().deadline_ms = SystemClock().UnixMs() - 1;
  for (const char* tool : {"build", "check", "compare"})
    EXPECT_THAT(Call(tool, json::object()).text, HasSubstr("time is over")) << tool;
}

TEST_F(MeasureTools, AfterItsTimeOnTheDeviceNothingIsStarted) {
  order().agent.budget.device_seconds = 5;
  (void)OpenLog();
  Edit("speed = 1", "speed = 2");
  EXPECT_FALSE(Call("build", json::object()).is_error);
  const auto run = RunCaptured(
      {.argv = {
           "python3", "-c",
           "import sqlite3, sys\n"
           "log = sqlite3.connect(sys.argv[1])\n"
           "log.execute('CREATE TABLE jobs (id, device, argv, mission, outcome, queued_ms, '\n"
           "            'started_ms, ended_ms, runner)')\n"
           "log.execute(\"INSERT INTO jobs VALUES (1, 'cpu', '[]', 'm1', 'ok', 0, 1, 6001, '')\")\n"
           "log.commit()\n",
           order().workspace.LogFile().string()}});
  ASSERT_TRUE(run && run->status.ok()) << run->err;
  for (const char* tool : {"build", "check", "compare"})
    EXPECT_THAT(Call(tool, json::object()).text, HasSubstr("6 of 5 s of device time")) << tool;
}

}  // namespace
}  // namespace crucible
