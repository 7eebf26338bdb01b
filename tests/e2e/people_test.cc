// What people and agents do to a campaign: stops, additions, strange bytes, a folder that goes away.
#include <signal.h>

#include "base/clock.h"
#include "tests/e2e/faults_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PeopleTest : public FaultsFixture {
 protected:
  void UseAgent(const std::string& script) {
    ASSERT_TRUE(WriteFileAtomically(root_ / "agent.sh", script));
    Replace("campaign.toml", "[\"true\"]", "[\"sh\", \"" + (root_ / "agent.sh").string() + "\"]");
    Commit("Another agent");
  }
  // Far longer than any test waits: what ends before was ended.
  void MeasureForMinutes() {
    const std::string target = "examples/transpose/target.toml";
    for (const char* key : {"claim", "ratchet_time"})
      Replace(target, std::string(key) + " = \"1s\"", std::string(key) + " = \"5m\"");
    Replace(target, "job_limit = \"1m\"", "job_limit = \"20m\"");
    Commit("Measure for long");
  }
  Subprocess Begin(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(CRUCIBLE_BIN_DIR) + "/crucible");
    SubprocessSpec spec = Spec(std::move(words));
    spec.environment["TMPDIR"] = (root_ / "tmp").string();
    fs::create_directories(root_ / "tmp");
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / "run.log";
    auto run = Subprocess::Start(spec);
    EXPECT_TRUE(run) << run.error().text;
    return std::move(*run);
  }
  std::string Said() { return ReadFile(root_ / "run.log").value_or(""); }
  // Waits for what `seen` sees, as long as the process runs.
  template <class Seen>
  void Await(Subprocess* run, Seen seen) {
    while (!seen()) {
      ASSERT_TRUE(run->running()) << Said();
      SystemClock().SleepFor(std::chrono::milliseconds(50));
    }
  }
  bool JobRuns(const std::string& words) {
    return Output({std::string(CRUCIBLE_BIN_DIR) + "/gpu_run", "status"}).find(words) !=
           std::string::npos;
  }
  json Missions() { return json::parse(Crucible({"mission", "list", "--json"}).out); }
  json Status() { return json::parse(Crucible({"campaign", "status", "--json"}).out); }
};

TEST_F(PeopleTest, ABadByteOfAnAgentOrAPersonIsShownAsUnknown) {
  UseAgent("printf 'caf\\351' >&2\nexit 3\n");
  const Captured run = Launch();
  EXPECT_EQ(run.status.code, 1) << run.err;
  EXPECT_EQ(run.status.signal, 0) << run.err;
  ASSERT_TRUE(Crucible({"mission", "list", "--json"}).status.ok());
  EXPECT_NE(Missions()[0]["report"].get<std::string>().find("caf\xef\xbf\xbd"), std::string::npos)
      << Missions()[0]["report"];
  EXPECT_TRUE(Crucible({"mission", "show", "m1", "--json"}).status.ok());
  const Captured added =
      Crucible({"mission", "add", "--json", "--case", "n300", "--goal", "\xff first"});
  EXPECT_TRUE(added.status.ok()) << added.err;
  EXPECT_EQ(json::parse(added.out)["goal"], "\xef\xbf\xbd first");
  EXPECT_TRUE(Crucible({"campaign", "note", "see caf\xe9"}).status.ok());
  EXPECT_TRUE(Crucible({"campaign", "status", "--json"}).status.ok());
}

TEST_F(PeopleTest, AFolderThatWasRemovedIsToldAsSuch) {
  const auto in_a_removed_folder = [&](const std::vector<std::string>& words) {
    std::vector<std::string> argv = {"sh", "-c",
                                     "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"",
                                     std::string(CRUCIBLE_BIN_DIR) + "/" + words.front()};
    argv.insert(argv.end(), words.begin() + 1, words.end());
    return RunCaptured(Spec(argv), std::chrono::minutes(1)).value();
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"crucible", "campaign", "status"},
        {"crucible", "campaign", "launch", (repository_ / "campaign.toml").string()},
        {"crucible", "mission", "list"},
        {"crucible", "log", "query"},
        {"crucible", "init"},
        {"crucible", "doctor"},
        {"crucible", "check", ".", "--target", "x"}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    ExpectOneError(in_a_removed_folder(words), 1, {"find the current folder", "cd"});
  }
  const Captured job = in_a_removed_folder({"gpu_run", "--device", "cpu", "--", "echo", "ran"});
  EXPECT_EQ(job.status.signal, 0) << job.err;
  EXPECT_EQ(job.out, "ran\n") << job.err;
}

TEST_F(PeopleTest, WhatAPersonAddsIsBegunBeyondTheNumberOfMissions) {
  ExpectLaunchWorks();
  const std::vector<std::string> add = {"mission", "add", "--case", "n300", "--goal"};
  const auto with = [&](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ExpectOneError(Crucible(with(add, {" "})), 2, {"--goal is empty"});
  ExpectOneError(Crucible(with(add, {"x", "--case", "n300"})), 2, {"n300", "twice"});
  ExpectOneError(Crucible({"campaign", "note", ""}), 2, {"empty"});
  ASSERT_TRUE(Crucible(with(add, {"Look at this one"})).status.ok());
  const Captured run = Crucible({"campaign", "resume", "short"});
  EXPECT_TRUE(run.status.ok()) << run.err;
  ASSERT_EQ(Missions().size(), 2u) << run.err;
  EXPECT_EQ(Missions()[1]["goal"], "Look at this one");
  EXPECT_EQ(Missions()[1]["outcome"], "no_change") << run.err;
}

TEST_F(PeopleTest, AStopIsTheReasonThatIsToldAndMayBeSaidTwice) {
  UseAgent("exec sleep 1000\n");
  Subprocess run = Begin({"campaign", "launch", "campaign.toml"});
  Await(&run, [&] { return Said().find("all its missions were started") != std::string::npos; });
  // A second launch is refused here, and says nothing in the log of the one that runs.
  ExpectOneError(Crucible({"campaign", "launch", "--detach", "campaign.toml"}), 1,
                 {"short", "running in process " + std::to_string(run.pid())});
  EXPECT_FALSE(fs::exists(repository_ / ".crucible" / "campaign-short.log"));
  // It cannot answer the first before the second is said.
  ::kill(run.pid(), SIGSTOP);
  EXPECT_TRUE(Crucible({"campaign", "stop"}).status.ok());
  const Captured again = Crucible({"campaign", "stop"});
  EXPECT_EQ(again.out, "campaign short is stopping already\n") << again.err;
  ::kill(run.pid(), SIGCONT);
  ASSERT_TRUE(run.Wait(std::chrono::minutes(1))) << Said();
  EXPECT_NE(Said().find("campaign short stopped: 1 mission, "), std::string::npos) << Said();
  EXPECT_NE(Said().find("(stopped by a person)"), std::string::npos) << Said();
  EXPECT_EQ(Status()["message"], "stopped by a person");

  // In the background again; a kill is seen, and what it told last is no news.
  ASSERT_TRUE(Crucible({"mission", "add", "--case", "n300", "--goal", "Go on"}).status.ok());
  const Captured resumed = Crucible({"campaign", "resume", "--detach"});
  EXPECT_NE(resumed.out.find("campaign short runs in process "), std::string::npos) << resumed.err;
  const pid_t pid = std::stoi(resumed.out.substr(resumed.out.find("process ") + 8));
  while (Missions()[1]["state"] != "running" && Status()["alive"] == true)
    SystemClock().SleepFor(std::chrono::milliseconds(50));
  ::kill(pid, SIGKILL);
  while (Status()["alive"] == true) SystemClock().SleepFor(std::chrono::milliseconds(50));
  EXPECT_NE(Crucible({"campaign", "status"}).out.find("killed (resume it)"), std::string::npos);
  EXPECT_EQ(Crucible({"campaign", "status"}).out.find("\n  agents:"), std::string::npos);
  ASSERT_TRUE(Crucible({"mission", "add", "--case", "n500", "--goal", "And on"}).status.ok());
  const Captured last = Crucible({"campaign", "resume", "--detach"});
  EXPECT_TRUE(last.status.ok()) << last.err;
  EXPECT_TRUE(Crucible({"campaign", "stop"}).status.ok());
  while (Status()["alive"] == true) SystemClock().SleepFor(std::chrono::milliseconds(50));
  ExpectTidy();
}

TEST_F(PeopleTest, AStopDoesNotWaitForAMeasurement) {
  MeasureForMinutes();
  Subprocess run = Begin({"campaign", "launch", "campaign.toml"});
  Await(&run, [&] { return JobRuns("crucible_check measure"); });
  EXPECT_TRUE(Crucible({"campaign", "stop"}).status.ok());
  auto ended = run.Wait(std::chrono::minutes(1));
  ASSERT_TRUE(ended) << Said();
  EXPECT_NE(Said().find("(stopped by a person)"), std::string::npos) << Said();
  EXPECT_EQ(Status()["state"], "stopped");
  EXPECT_TRUE(fs::is_empty(root_ / "tmp")) << fs::directory_iterator(root_ / "tmp")->path();

  Subprocess resumed = Begin({"campaign", "resume"});
  Await(&resumed, [&] { return JobRuns("crucible_check measure"); });
  ::kill(resumed.pid(), SIGINT);
  ended = resumed.Wait(std::chrono::minutes(1));
  ASSERT_TRUE(ended) << Said();
  EXPECT_EQ(ended->code, 130) << Said();
  EXPECT_EQ(Status()["state"], "interrupted");
  ExpectTidy();

  // A comparison by hand likewise, and it takes its files along.
  Subprocess compare =
      Begin({"compare", "main", "main", "--target", "examples/transpose/target.toml"});
  Await(&compare, [&] { return JobRuns("crucible_check compare"); });
  ::kill(compare.pid(), SIGINT);
  ended = compare.Wait(std::chrono::minutes(1));
  ASSERT_TRUE(ended) << Said();
  EXPECT_EQ(ended->code, 130) << Said();
  EXPECT_TRUE(fs::is_empty(root_ / "tmp")) << fs::directory_iterator(root_ / "tmp")->path();
}

TEST_F(PeopleTest, ResultsThatNobodyTookAreAFailure) {
  ExpectLaunchWorks();
  const std::string bin = std::string(CRUCIBLE_BIN_DIR) + "/";
  const auto to_shell = [&](const std::string& line) {
    return RunCaptured(Spec({"sh", "-c", line}), std::chrono::minutes(1)).value();
  };
  for (const std::string command :
       {"crucible log export", "crucible brief n300", "crucible dashboard --out -",
        "crucible campaign status", "gpu_run status"}) {
    const Captured full = to_shell(bin + command + " >/dev/full");
    EXPECT_EQ(full.status.code, 1) << command;
    EXPECT_NE(full.err.find("stdout took no more"), std::string::npos) << command << full.err;
  }
  const Captured gone = to_shell("{ " + bin + "crucible log export; echo $? >&2; } | true");
  EXPECT_EQ(gone.err, "0\n") << "a reader that goes away is no failure";
  ASSERT_EQ(to_shell("mkfifo pipe && { cat pipe >copy & } && " + bin +
                     "crucible log export pipe && wait && test -p pipe && test -s copy && rm pipe "
                     "copy")
                .status.ShellCode(),
            0);
}

}  // namespace
}  // namespace crucible
