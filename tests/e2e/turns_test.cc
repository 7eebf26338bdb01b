// Several processes on one repository: who has a campaign, who merges, and what a kill leaves of a
// mission whose agent had not begun.
#include <signal.h>

#include "base/clock.h"
#include "base/file_lock.h"
#include "tests/e2e/faults_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Turns : public FaultsFixture {
 protected:
  Subprocess Start(std::vector<std::string> words, const std::string& log) {
    words.insert(words.begin(), std::string(CRUCIBLE_BIN_DIR) + "/crucible");
    SubprocessSpec spec = Spec(std::move(words));
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / log;
    auto run = Subprocess::Start(spec);
    EXPECT_TRUE(run) << (run ? "" : run.error().text);
    return std::move(*run);
  }
  std::string Said(const std::string& log) { return ReadFile(root_ / log).value_or("nothing"); }

  static bool Until(const std::function<bool()>& holds) {
    for (int i = 0; i < 2400; ++i) {
      if (holds()) return true;
      SystemClock().SleepFor(std::chrono::milliseconds(50));
    }
    return false;
  }

  json Mission(const std::string& id) {
    const Captured run = Crucible({"mission", "show", id, "--json"});
    return run.status.ok() ? json::parse(run.out, nullptr, false) : json::object();
  }
  std::string StateOf(const std::string& id) { return Mission(id).value("state", "none"); }

  // The agents of the campaign run this.
  void AgentDoes(const std::string& script) {
    ASSERT_TRUE(WriteFileAtomically(root_ / "agent.sh", script));
    Replace("campaign.toml", "[\"true\"]", "[\"sh\", \"" + (root_ / "agent.sh").string() + "\"]");
    Replace("campaign.toml", "wall = \"8s\"", "wall = \"2m\"");
  }

  // A campaign of two missions: m1's agent waits for Go(), then m2 is planned and held back while
  // its baseline is prepared, and the orchestrator is killed right there.
  void KillWhileTheSecondIsPrepared(const std::function<void()>& while_the_first_runs) {
    AgentDoes("while [ ! -e '" + (root_ / "go").string() + "' ]; do sleep 0.1; done\n");
    Replace("campaign.toml", "missions = 1", "missions = 2");
    Commit("Two missions");
    Subprocess run = Start({"campaign", "launch", "campaign.toml"}, "campaign.log");
    ASSERT_TRUE(Until([&] { return StateOf("m1") == "running"; })) << Said("campaign.log");
    while_the_first_runs();
    {
      const auto held = FileLock::Take(repository_ / ".crucible/baseline.lock");
      ASSERT_TRUE(held);
      ASSERT_TRUE(WriteFileAtomically(root_ / "go", ""));
      ASSERT_TRUE(Until([&] { return StateOf("m2") == "preparing"; })) << Said("campaign.log");
      ::kill(run.pid(), SIGKILL);
      ASSERT_TRUE(run.Wait());
    }
    EXPECT_EQ(StateOf("m2"), "preparing");
    const Captured status = Crucible({"campaign", "status"});
    EXPECT_NE(status.out.find("killed"), std::string::npos) << status.out;
    const Captured resumed = Crucible({"campaign", "resume"});
    EXPECT_TRUE(resumed.status.ok()) << resumed.err;
    ExpectTidy();
  }
};

TEST_F(Turns, APersonsMissionThatWasBeingPreparedWhenKilledIsCarriedOutAfterAResume) {
  KillWhileTheSecondIsPrepared([&] {
    const Captured added = Crucible({"mission", "add", "--case", "n300", "--goal", "try harder"});
    ASSERT_TRUE(added.status.ok()) << added.err;
    EXPECT_EQ(Mission("m2")["goal"], "try harder");
  });
  const json mission = Mission("m2");
  EXPECT_EQ(mission["state"], "done");
  EXPECT_EQ(mission["outcome"], "no_change") << mission;
  EXPECT_EQ(mission["goal"], "try harder");
  EXPECT_TRUE(mission["settings"].contains("added_by")) << mission;
  EXPECT_EQ(StateOf("m3"), "none");
}

TEST_F(Turns, APlannedMissionThatWasBeingPreparedWhenKilledSaysSo) {
  KillWhileTheSecondIsPrepared([] {});
  const json mission = Mission("m2");
  EXPECT_EQ(mission["state"], "done");
  EXPECT_EQ(mission["outcome"], "interrupted") << mission;
  EXPECT_EQ(mission["merge_outcome"], "nothing_to_merge");
  EXPECT_EQ(mission["report"], "the campaign was interrupted before its agent began");
}

TEST_F(Turns, OfSeveralLaunchesOfOneCampaignAtOnceExactlyOneGoesOn) {
  std::vector<Subprocess> runs;
  for (int i = 0; i < 4; ++i)
    runs.push_back(Start({"campaign", "launch", "campaign.toml"}, fmt::format("launch{}.log", i)));
  int went_on = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string log = fmt::format("launch{}.log", i);
    const auto ended = runs[i].Wait(std::chrono::minutes(4));
    ASSERT_TRUE(ended) << Said(log);
    if (ended->ok()) {
      ++went_on;
      continue;
    }
    EXPECT_EQ(ended->code, 1) << Said(log);
    EXPECT_NE(Said(log).find("crucible: launch short: "), std::string::npos) << Said(log);
    EXPECT_NE(Said(log).find("`crucible campaign "), std::string::npos) << Said(log);
  }
  EXPECT_EQ(went_on, 1);
  EXPECT_EQ(json::parse(Crucible({"mission", "list", "--json"}).out).size(), 1u);
  EXPECT_EQ(Query({"--author", "orchestrator"}).size(), 1u) << "main was measured once";
  ExpectTidy();
}

TEST_F(Turns, ARunningCampaignIsNotTakenUpByAnotherProcess) {
  const auto held = FileLock::Take(repository_ / ".crucible/campaign-short.lock");
  ASSERT_TRUE(held);
  ExpectOneError(Launch(), 1, {"launch short", "another process", "campaign status short"});
  EXPECT_NE(Crucible({"campaign", "status"}).status.code, 0) << "nothing of it is in the log";
}

TEST_F(Turns, TwoCampaignsOfOneRepositoryRunBesideEachOther) {
  std::string other = kCampaign;
  other.replace(other.find("short"), 5, "other");
  Write("other.toml", other);
  Commit("Another campaign");
  Subprocess first = Start({"campaign", "launch", "campaign.toml"}, "first.log");
  Subprocess second = Start({"campaign", "launch", "other.toml"}, "second.log");
  const auto first_ended = first.Wait(std::chrono::minutes(4));
  const auto second_ended = second.Wait(std::chrono::minutes(4));
  EXPECT_TRUE(first_ended && first_ended->ok()) << Said("first.log");
  EXPECT_TRUE(second_ended && second_ended->ok()) << Said("second.log");
  for (const char* name : {"short", "other"}) {
    const Captured list = Crucible({"mission", "list", "--campaign", name, "--json"});
    const json missions = json::parse(list.out);
    ASSERT_EQ(missions.size(), 1u) << name;
    EXPECT_EQ(missions[0]["state"], "done");
    EXPECT_EQ(missions[0]["outcome"], "no_change") << missions;
  }
  ExpectTidy();
}

TEST_F(Turns, AnApprovalWaitsForTheMergeThatIsUnderWay) {
  AgentDoes(
      "echo '// kept' >> examples/transpose/transpose.cc\n"
      "git -c user.name=a -c user.email=a@b commit -qam kept\nexec sleep 1000\n");
  Commit("An agent that keeps something and goes on");
  Subprocess run = Start({"campaign", "launch", "campaign.toml"}, "campaign.log");
  const std::string start = Git({"rev-parse", "main"});
  ASSERT_TRUE(Until([&] {
    const std::string tip =
        Git({"for-each-ref", "--format=%(objectname)", "refs/heads/crucible/m1"});
    return !tip.empty() && tip != start;
  })) << Said("campaign.log");
  ASSERT_TRUE(Crucible({"campaign", "stop"}).status.ok());
  ASSERT_TRUE(run.Wait(std::chrono::minutes(1))) << Said("campaign.log");
  EXPECT_EQ(Mission("m1")["outcome"], "stopped");
  ASSERT_EQ(StateOf("m1"), "ended");

  const fs::path lock = repository_ / ".crucible/merge.lock";
  auto held = std::make_optional(FileLock::Take(lock).value());
  Subprocess approval = Start({"mission", "approve", "m1"}, "approve.log");
  const auto waits = [&] {  // it has the lock's file open, and nobody else lets it go on
    std::error_code ignored;
    const fs::path files = fmt::format("/proc/{}/fd", approval.pid());
    for (const auto& file : fs::directory_iterator(files, ignored))
      if (fs::read_symlink(file.path(), ignored) == fs::canonical(lock)) return true;
    return false;
  };
  ASSERT_TRUE(Until(waits)) << Said("approve.log");
  EXPECT_EQ(StateOf("m1"), "ended") << "it began before its turn";
  EXPECT_TRUE(approval.running());
  held.reset();
  ASSERT_TRUE(approval.Wait(std::chrono::minutes(4))) << Said("approve.log");
  EXPECT_EQ(StateOf("m1"), "done") << Said("approve.log");
  EXPECT_EQ(Git({"rev-parse", "main"}), start) << "a remark is no gain";
}

}  // namespace
}  // namespace crucible
