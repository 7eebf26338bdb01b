// Screened, undecided, re-queued, tried again: the walk of an idea that the noise hid at first.
#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/json.h"
#include "briefs/brief.h"
#include "missions/planner.h"
#include "orchestrator/agents/proposer.h"
#include "orchestrator/baseline.h"
#include "results_log/retest.h"
#include "tests/orchestrator/merge/merge_fixture.h"

namespace crucible {
namespace {

using testing::HasSubstr;

constexpr char kNoTime[] = "screen = \"1ms\"\n";  // every screen ends undecided
constexpr char kHot[] = "mode throttled\\n";      // every round is held back

class Requeue : public MergeFixture {
 protected:
  // A whole mission of the proposer off main, as a campaign starts one.
  void RunMission(const std::string& id, const std::filesystem::path& file,
                  const std::vector<std::string>& retry) {
    MissionOrder order = Order(id, file);
    const auto target = LoadTarget(file);
    ASSERT_OK(target);
    Repository repository = Open();
    const auto baseline = BaselineArm({&workspace_, &*target, &repository, ""}, Tip());
    ASSERT_OK(baseline);
    order.baseline = *baseline;
    order.base_commit = Tip();
    order.branch = "crucible/" + id;
    order.worktree = workspace_.Worktree(id);
    ASSERT_OK(MakeDirectories(order.worktree.parent_path()));
    ASSERT_OK(repository.AddWorktree(id, order.worktree, order.branch, Tip()));
    order.flavour = "proposer";
    order.experiments = 1;
    order.deadline_ms = SystemClock().UnixMs() + 60'000;
    order.retry = retry;
    ASSERT_OK(WriteMissionOrder(order));
    const auto result = RunProposer(workspace_.Mission(id) / "mission.json");
    ASSERT_OK(result);
    MissionRow row{.id = id, .campaign = "c", .target = "fake", .flavour = "proposer"};
    row.cases = order.cases;
    row.settings = nlohmann::json{{"retry", retry}}.dump();
    row.state = result->outcome == "candidate" ? "ended" : "done";
    row.outcome = result->outcome;
    row.base_commit = order.base_commit;
    row.best_commit = Git({"rev-parse", order.branch});
    ASSERT_OK(Log().PutMission(row));
  }

  Result<Integration> Merge(const std::string& id, const std::filesystem::path& target) {
    CRUCIBLE_ASSIGN(MissionOrder order, ReadMissionOrder(workspace_.Mission(id) / "mission.json"));
    order.target_file = target;
    return Integrate(order, false);
  }

  // What the planner's policy does next with the log as it is.
  MissionPlan Next(const std::filesystem::path& file) {
    const Target target = LoadTarget(file).value();
    PlannerInput input{.target = &target, .campaign = "c"};
    input.missions = Log().Missions("c").value();
    input.entries = Entries();
    input.points = Log().Points("fake").value();
    return PlanNext(input, "proposer").value_or(MissionPlan{});
  }

  static void ExpectSameChange(const Entry& one, const Entry& other) {
    const auto knobs = [](const Entry& entry) {
      return nlohmann::json::parse(entry.change)["knobs"];
    };
    EXPECT_EQ(knobs(one), knobs(other));
    EXPECT_EQ(knobs(one)["time"], nlohmann::json({100, 90}));
  }
};

TEST_F(Requeue, AnUndecidedScreenIsNoRejectionComesBackAndIsDecidedThen) {
  RunMission("m1", WriteTarget(kNoTime), {});
  ASSERT_EQ(Entries().size(), 1u);
  const Entry undecided = Entries()[0];
  EXPECT_EQ(undecided.kind, EntryKind::kInconclusive);
  EXPECT_FALSE(IsRejection(undecided.kind));
  EXPECT_EQ(undecided.cases[0].verdict, "inconclusive");
  EXPECT_THAT(undecided.reason, HasSubstr("the time for this case ran out"));

  // The log says so to whoever reads it next.
  BriefInput brief{.target = "fake", .cases = {"small"}};
  brief.entries = Entries();
  brief.now = undecided.conditions;
  const std::string text = CompileBrief(brief);
  const std::size_t leads = text.find("Open leads");
  ASSERT_NE(leads, std::string::npos) << text;
  EXPECT_THAT(text.substr(leads), HasSubstr("Measure it again."));
  const std::size_t rejected = text.find("do not retry");
  ASSERT_NE(rejected, std::string::npos) << text;
  EXPECT_THAT(text.substr(rejected, 60), HasSubstr("None.")) << text;

  // The planner queues it again, says why, and the next mission measures it first.
  const auto quiet = WriteTarget("");
  const MissionPlan plan = Next(quiet);
  EXPECT_EQ(plan.retry, std::vector<std::string>{undecided.key});
  EXPECT_EQ(plan.why, "1 inconclusive experiment of small re-queued");
  RunMission("m2", quiet, plan.retry);
  ASSERT_EQ(Entries().size(), 2u);
  EXPECT_EQ(Entries()[1].kind, EntryKind::kWin) << Entries()[1].reason;
  ExpectSameChange(undecided, Entries()[1]);
  EXPECT_TRUE(Next(quiet).retry.empty()) << "decided: not queued a third time";
}

TEST_F(Requeue, ADeviceThatWasHeldBackIsNoAnswerEither) {
  RunMission("m1", WriteTarget("", kHot), {});
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_EQ(Entries()[0].kind, EntryKind::kInconclusive);
  EXPECT_EQ(Entries()[0].cases[0].verdict, "refused");
  EXPECT_EQ(Next(WriteTarget("")).retry, std::vector<std::string>{Entries()[0].key});
}

TEST_F(Requeue, WhatWasRejectedDoesNotComeBack) {
  CommitTime("90");  // from here the only other value is slower
  RunMission("m1", WriteTarget(""), {});
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_TRUE(IsRejection(Entries()[0].kind)) << Entries()[0].reason;
  EXPECT_TRUE(Next(WriteTarget("")).retry.empty());
}

TEST_F(Requeue, AMergeThatStayedUndecidedBringsBackWhatItsMissionHadKept) {
  RunMission("m1", WriteTarget("claim = \"1ms\"\n"), {});
  // The confirmation has the claim's time: let it find the gain, and the merge alone run out.
  ASSERT_EQ(Entries().back().kind, EntryKind::kInconclusive);
  const auto quiet = WriteTarget("");
  RunMission("m2", quiet, {});
  ASSERT_EQ(Entries().back().kind, EntryKind::kWin) << Entries().back().reason;
  const Entry kept = Entries().back();
  const auto merged = Merge("m2", WriteTarget("claim = \"1ms\"\n"));
  ASSERT_OK(merged);
  ASSERT_EQ(merged->outcome, "inconclusive");
  const Entry merge = Entries().back();
  const MissionPlan plan = Next(quiet);
  EXPECT_THAT(plan.retry, testing::Contains(merge.key));
  RunMission("m3", WriteTarget(""), {merge.key});
  EXPECT_EQ(Entries().back().mission, "m3");
  EXPECT_EQ(Entries().back().kind, EntryKind::kWin) << Entries().back().reason;
  ExpectSameChange(kept, Entries().back());
}

TEST_F(Requeue, AGainBeyondBeliefIsKeptForAPersonAndNotRejected) {
  Write("knobs.toml",
        "[[knob]]\nname = \"time\"\nfile = \"tuning.h\"\nconstant = \"kTimeUs\"\n"
        "values = [5, 100]\nmechanism = \"how long it takes\"\n");
  GitCommit("a knob that does wonders");
  RunMission("m1", WriteTarget(""), {});
  EXPECT_EQ(Entries().back().kind, EntryKind::kInconclusive);
  EXPECT_THAT(Entries().back().reason, HasSubstr("a person looks first"));
  const auto merged = Merge("m1", WriteTarget(""));
  ASSERT_OK(merged);
  EXPECT_EQ(merged->outcome, "flagged");
}

}  // namespace
}  // namespace crucible
