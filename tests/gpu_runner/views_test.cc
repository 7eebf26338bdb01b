// What people see and do besides running: `crucible gpu status | history | cancel | logs | unpin`,
// through the program, on the CPU and on several GPUs of the fake NVML.
#include <signal.h>

#include "base/json.h"
#include "gpu_runner/queue.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

using Json = nlohmann::json;

class Views : public RunnerFixture {
 protected:
  SubprocessSpec CrucibleSpec(std::vector<std::string> words) const {
    SubprocessSpec spec = Spec({});
    spec.argv = {std::string(CRUCIBLE_BIN_DIR) + "/crucible", "gpu"};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    return spec;
  }
  Captured Crucible(std::vector<std::string> words) const {
    const auto run = RunCaptured(CrucibleSpec(std::move(words)), std::chrono::seconds(60));
    EXPECT_TRUE(run && !run->timed_out);
    return run ? *run : Captured{};
  }
  Json CrucibleJson(std::vector<std::string> words) const {
    words.push_back("--json");
    const auto run = Crucible(words);
    EXPECT_EQ(run.status.ShellCode(), 0) << run.err;
    return Json::parse(run.out, nullptr, false);
  }
  // A job that is up when `name` appears, and ends when `name`.go does.
  Subprocess Hold(const std::string& name, std::vector<std::string> options) const {
    options.insert(options.end(), {"--", "sh", "-c",
                                   "echo begun; touch " + Path(name) + "; while [ ! -e " +
                                       Path(name + ".go") + " ]; do sleep 0.02; done; echo over"});
    return Start(options);
  }
  void LetGo(const std::string& name) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name + ".go"), ""));
  }
  bool Waits(const std::string& device, std::size_t count) const {
    return Eventually([&] { return WaitingTickets(Folder(device)).size() == count; });
  }
  static Json Of(const Json& status, const std::string& device) {
    for (const Json& item : status["devices"])
      if (item["device"] == device) return item;
    return {};
  }
};

TEST_F(Views, StatusShowsEachDeviceItsHolderAndWhoWaitsInTurnOrder) {
  SetNvml("gpus 2\n");
  Subprocess holder = Hold("up", {"--device", "1", "--limit", "10m", "--priority", "high"});
  ASSERT_TRUE(Appears("up"));
  Subprocess low = Start({"--device", "1", "--priority", "low", "--", "true"});
  ASSERT_TRUE(Waits("GPU-fake-1", 1));
  Subprocess normal = Start({"--device", "1", "--", "true"});
  ASSERT_TRUE(Waits("GPU-fake-1", 2));
  const Json status = CrucibleJson({"status"});
  EXPECT_FALSE(Of(status, "cpu")["busy"].get<bool>());
  EXPECT_FALSE(Of(status, "GPU-fake-0")["busy"].get<bool>());
  const Json busy = Of(status, "GPU-fake-1");
  EXPECT_TRUE(busy["busy"].get<bool>());
  EXPECT_EQ(busy["holder"]["pid"], holder.pid());
  EXPECT_EQ(busy["holder"]["limit_ms"], 600'000);
  EXPECT_EQ(busy["holder"]["argv"][0], "sh");
  ASSERT_EQ(busy["waiting"].size(), 2u);
  EXPECT_EQ(busy["waiting"][0]["pid"], normal.pid());
  EXPECT_EQ(busy["waiting"][1]["priority"], "low");
  const std::string text = Crucible({"status"}).out;
  EXPECT_NE(text.find("cpu: free\n"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU-fake-1: busy, job " + busy["holder"]["job"].get<std::string>()),
            std::string::npos)
      << text;
  LetGo("up");
  EXPECT_EQ(holder.Wait()->ShellCode() + normal.Wait()->ShellCode() + low.Wait()->ShellCode(), 0);
}

TEST_F(Views, HistoryShowsTheNewestFirstAndOpenJobsAsTheyAre) {
  Run({"--device", "cpu", "--", "sh", "-c", "exit 3"});
  Subprocess holder = Hold("up", {"--device", "cpu"});
  ASSERT_TRUE(Appears("up"));
  ASSERT_TRUE(Eventually([&] { return Rows().size() == 2; }));
  const Json jobs = CrucibleJson({"history"})["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_TRUE(jobs[0]["outcome"].is_null());
  EXPECT_TRUE(jobs[0]["started_ms"].is_number());
  EXPECT_EQ(jobs[1]["outcome"], "failed");
  EXPECT_EQ(jobs[1]["exit_code"], 3);
  EXPECT_EQ(jobs[1]["argv"], (Json{"sh", "-c", "exit 3"}));
  EXPECT_EQ(jobs[1]["toolchain"]["device"], "CPU");
  EXPECT_EQ(CrucibleJson({"history", "-n", "1"})["jobs"].size(), 1u);
  EXPECT_NE(Crucible({"history"}).out.find("running"), std::string::npos);
  EXPECT_EQ(Crucible({"history", "-n", "none"}).status.ShellCode(), 2);
  LetGo("up");
  EXPECT_EQ(holder.Wait()->ShellCode(), 0);
}

TEST_F(Views, CancelEndsARunningJobAndAWaitingOne) {
  Subprocess holder = Hold("up", {"--device", "cpu"});
  ASSERT_TRUE(Appears("up"));
  Subprocess waiter = Start({"--device", "cpu", "--", "touch", Path("ran")});
  ASSERT_TRUE(Waits("cpu", 1));
  const Json cpu = Of(CrucibleJson({"status"}), "cpu");
  const std::string waiting = cpu["waiting"][0]["job"], running = cpu["holder"]["job"];
  EXPECT_EQ(CrucibleJson({"cancel", waiting}),
            (Json{{"job", waiting}, {"cancelled", true}, {"was", "waiting"}}));
  EXPECT_EQ(waiter.Wait()->ShellCode(), 143);
  EXPECT_EQ(Crucible({"cancel", running}).out, "cancelled the running job " + running + "\n");
  EXPECT_EQ(holder.Wait()->ShellCode(), 143);
  for (const JobRow& row : Rows()) EXPECT_EQ(row.outcome, "cancelled") << row.id;
  EXPECT_FALSE(Exists("ran"));
  const auto again = Crucible({"cancel", running});
  EXPECT_NE(again.status.ShellCode(), 0);
  EXPECT_NE(again.err.find("no such job waits or runs"), std::string::npos) << again.err;
}

TEST_F(Views, LogsFollowAJobUntilItEnds) {
  Subprocess job = Hold("up", {"--device", "cpu", "--log"});
  ASSERT_TRUE(Appears("up"));
  ASSERT_TRUE(Eventually([&] { return !Rows().empty() && !Rows().at(0).log_path.empty(); }));
  const std::string id = Rows().at(0).id;
  SubprocessSpec spec = CrucibleSpec({"logs", id, "-f"});
  spec.out = Stdio::kFile;
  spec.log_path = Path("followed");
  auto follower = Subprocess::Start(spec);
  ASSERT_TRUE(follower);
  const auto followed = [&] { return ReadFile(Path("followed")).value_or(""); };
  ASSERT_TRUE(Eventually([&] { return followed() == "begun\n"; })) << followed();
  EXPECT_TRUE(follower->running());
  LetGo("up");
  EXPECT_EQ(follower->Wait()->ShellCode(), 0);
  EXPECT_EQ(followed(), "begun\nover\n");
  EXPECT_EQ(job.Wait()->ShellCode(), 0);
  EXPECT_EQ(Crucible({"logs", id}).out, "begun\nover\n");
}

TEST_F(Views, LogsSayWhyThereIsNone) {
  Run({"--device", "cpu", "--", "true"});
  const auto unkept = Crucible({"logs", Rows().at(0).id});
  EXPECT_NE(unkept.err.find("run it with --log"), std::string::npos) << unkept.err;
  const auto unknown = Crucible({"logs", "j0"});
  EXPECT_NE(unknown.err.find("no such job"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.status.ShellCode(), 0);
  EXPECT_EQ(Crucible({"logs"}).status.ShellCode(), 2);
}

TEST_F(Views, AreWordsOfGpuRunToo) {
  Run({"--device", "cpu", "--", "true"});
  EXPECT_NE(Run({"history"}).out.find(Rows().at(0).id), std::string::npos);
  EXPECT_EQ(Run({"status"}).out.substr(0, 9), "cpu: free");
  const auto none = Run({"cancel", "j0"});
  EXPECT_EQ(none.status.ShellCode(), 1);
  EXPECT_NE(none.err.find("see `gpu_run status`"), std::string::npos) << none.err;
  EXPECT_EQ(Run({"--device", "cpu", "--", "status"}).status.ShellCode(), 127) << "a command";
}

TEST_F(Views, UnpinGivesBackOnlyWhatItLocked) {
  SetNvml("gpus 2\n");
  EXPECT_EQ(Crucible({"unpin"}).out, "no clock is pinned by gpu_run\n");
  EXPECT_EQ(NvmlCalls(), "");
  Run({"--device", "1", "--clocks", "pin", "--clock-mhz", "1500", "--", "true"});
  EXPECT_EQ(CrucibleJson({"unpin"}), (Json{{"unpinned", {"GPU-fake-1"}}}));
  EXPECT_EQ(NvmlCalls(), "lock 1500\nlock 1500\nreset\n");
  EXPECT_EQ(Crucible({"unpin"}).out, "no clock is pinned by gpu_run\n");
}

TEST_F(Views, UnpinWaitsForNobodysJob) {
  Subprocess holder = Hold("a", {"--device", "0", "--clocks", "pin"});
  ASSERT_TRUE(Appears("a"));
  const auto unpin = Crucible({"unpin"});
  EXPECT_EQ(unpin.status.ShellCode(), 1);
  EXPECT_NE(unpin.err.find("a job runs on it: pid "), std::string::npos) << unpin.err;
  EXPECT_EQ(NvmlCalls(), "lock 1980\n") << "the job's lock stays";
}

TEST_F(Views, APoolIsTheFirstFreeOfSeveralGpus) {
  SetNvml("gpus 4\n");
  Subprocess first = Hold("a", {"--device", "0"});
  Subprocess second = Hold("b", {"--device", "GPU-fake-2"});
  ASSERT_TRUE(Appears("a") && Appears("b"));
  const std::vector<std::string> echo = {"--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"};
  const auto on = [&](const std::string& devices) {
    std::vector<std::string> words = {"--device", devices, "--queue-limit", "20s"};
    words.insert(words.end(), echo.begin(), echo.end());
    return Run(words);
  };
  EXPECT_EQ(on("0,2,3").out, "GPU-fake-3\n");
  EXPECT_EQ(on("GPU-fake-1,0").out, "GPU-fake-1\n");
  // All of the pool are busy: waits in both queues, and takes the one that comes free.
  Subprocess waiter =
      Start({"--device", "0,GPU-fake-2", "--", "sh", "-c",
             "echo $CUDA_VISIBLE_DEVICES >" + Path("t") + "; mv " + Path("t") + " " + Path("got")});
  ASSERT_TRUE(Waits("GPU-fake-0", 1) && Waits("GPU-fake-2", 1));
  LetGo("b");
  ASSERT_TRUE(Appears("got"));
  EXPECT_EQ(ReadFile(Path("got")).value_or(""), "GPU-fake-2\n");
  EXPECT_EQ(waiter.Wait()->ShellCode(), 0);
  EXPECT_TRUE(Waits("GPU-fake-0", 0));
  for (const char* wrong : {"0,9", "0,,1", "GPU-fake-,0"})
    EXPECT_EQ(on(wrong).status.ShellCode(), 2) << wrong;
  LetGo("a");
  EXPECT_EQ(first.Wait()->ShellCode() + second.Wait()->ShellCode(), 0);
}

}  // namespace
}  // namespace crucible
