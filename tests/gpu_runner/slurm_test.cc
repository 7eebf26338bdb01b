// The Slurm backend against a real Slurm of one node. Skipped, with the reason, where it cannot
// run.
#include <signal.h>

#include "tests/gpu_runner/runner_fixture.h"
#include "tests/gpu_runner/slurm_cluster.h"

namespace crucible {
namespace {

class Slurm : public RunnerFixture {
 protected:
  static void SetUpTestSuite() {
    if (!SlurmCluster::WhyNot().empty()) return;
    auto started = SlurmCluster::Start();
    CRUCIBLE_CHECK(started.has_value(), started ? "" : started.error().text);
    cluster_ = std::move(*started);
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    if (cluster_ == nullptr) GTEST_SKIP() << SlurmCluster::WhyNot();
    RunnerFixture::SetUp();
    for (const auto& [name, value] : cluster_->environment()) environment_[name] = value;
    environment_["CRUCIBLE_GPU_BACKEND"] = "slurm";
  }
  void TearDown() override {
    if (cluster_ == nullptr) return;
    if (HasFailure()) std::printf("%s\n", cluster_->Logs().c_str());
    (void)cluster_->Command({"scancel", "--user=root"});
    EXPECT_TRUE(Eventually([] { return cluster_->IsIdle(); })) << cluster_->Logs();
    RunnerFixture::TearDown();
  }

  // A command of Slurm's that runs gpu_run inside.
  Captured RunUnder(std::vector<std::string> words) const {
    SubprocessSpec spec = Spec({});
    spec.argv = std::move(words);
    const auto run = RunCaptured(spec, std::chrono::milliseconds(60'000));
    EXPECT_TRUE(run && !run->timed_out);
    return run ? *run : Captured{};
  }
  // A job that is up when the file `name` appears, and ends when `name`.go does.
  std::vector<std::string> Waiting(const std::string& name) const {
    return {
        "--", "sh", "-c",
        "touch " + Path(name) + "; while [ ! -e " + Path(name + ".go") + " ]; do sleep 0.02; done"};
  }
  void Touch(const std::string& name) const { ASSERT_TRUE(WriteFileAtomically(Path(name), "")); }
  std::string Jobs() const { return cluster_->Command({"squeue", "--noheader", "--format=%i"}); }
  bool AreInSlurm(std::ptrdiff_t count) const {
    const std::string jobs = Jobs();
    return std::count(jobs.begin(), jobs.end(), '\n') == count;
  }

  static std::unique_ptr<SlurmCluster> cluster_;
};

std::unique_ptr<SlurmCluster> Slurm::cluster_;

TEST_F(Slurm, EndsAsItsJobEndsAndIsRecorded) {
  EXPECT_EQ(Run({"--", "true"}).status.ShellCode(), 0);
  EXPECT_EQ(Run({"--", "sh", "-c", "kill -9 $$"}).status.ShellCode(), 137);
  EXPECT_EQ(Run({"--", "no-such-command"}).status.ShellCode(), 127);
  EXPECT_EQ(Run({"--", "sh", "-c", "exit 7"}).status.ShellCode(), 7);
  const JobRow row = Rows().at(0);
  EXPECT_EQ(row.exit_code, 7);
  EXPECT_EQ(row.outcome, "failed");
  EXPECT_EQ(row.device, "GPU-fake-0");
  EXPECT_NE(row.toolchain.find("\"slurm_step\""), std::string::npos) << row.toolchain;
  EXPECT_NE(row.toolchain.find("\"driver\":\"999.1\""), std::string::npos) << row.toolchain;
  EXPECT_TRUE(row.started_ms && row.ended_ms);
  EXPECT_EQ(Rows().size(), 4u);
}

TEST_F(Slurm, PassesInputAndOutputThrough) {
  SubprocessSpec spec = Spec({"--", "sh", "-c", "cat; printf 'a\\0b'; printf e >&2; pwd >&2"});
  spec.directory = folder_;
  const auto run = RunCaptured(spec, std::chrono::seconds(60), "in\n");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->out, std::string("in\na\0b", 6));
  EXPECT_NE(run->err.find("e" + folder_.string() + "\n"), std::string::npos) << run->err;
}

TEST_F(Slurm, KeepsALogWhenAsked) {
  Run({"--log", "--", "echo", "kept"});
  EXPECT_EQ(ReadFile(Rows().at(0).log_path).value_or("no log"), "kept\n");
}

TEST_F(Slurm, AProfileHasItsReportItsSummaryAndTheClocks) {
  std::filesystem::create_directory(folder_ / "bin");
  std::filesystem::create_symlink(std::string(CRUCIBLE_SOURCE_DIR) + "/tests/support/fake_ncu.sh",
                                  folder_ / "bin" / "ncu");
  environment_["PATH"] = Path("bin") + ":" + environment_["PATH"];
  environment_["FAKE_NCU_PAGES"] = std::string(CRUCIBLE_SOURCE_DIR) + "/tests/gpu_runner/ncu";
  environment_["FAKE_NCU_CALLS"] = Path("ncu.calls");
  const auto run = Run({"--clocks", "pin", "--profile", Path("r"), "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 0) << run.err;
  EXPECT_TRUE(Exists("r.ncu-rep"));
  EXPECT_NE(run.err.find("profile of 3 launches"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("locked at 1980 MHz again and reads 1980 MHz"), std::string::npos)
      << run.err;
}

TEST_F(Slurm, TheRunLimitIsInSecondsAndEndsTheJob) {
  const auto run =
      Run({"--limit", "300ms", "--", "sh", "-c", "echo $$ >" + Path("pid") + "; sleep 60"});
  EXPECT_EQ(run.status.ShellCode(), 124) << run.err;
  EXPECT_EQ(Rows().at(0).outcome, "run_limit");
  EXPECT_FALSE(IsAlive(IdentityOf(std::stoi(*ReadFile(Path("pid"))))));
}

TEST_F(Slurm, OneJobAtATimeAndTheQueueLimitEndsTheWait) {
  Subprocess holder = Start(Waiting("up"));
  ASSERT_TRUE(Appears("up"));
  const auto run = Run({"--queue-limit", "400ms", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 75) << run.err;
  EXPECT_NE(run.err.find("PENDING"), std::string::npos) << run.err;
  EXPECT_EQ(Rows().at(0).outcome, "queue_limit");
  Touch("up.go");
  EXPECT_EQ(holder.Wait()->ShellCode(), 0);
  EXPECT_TRUE(Eventually([] { return cluster_->IsIdle(); }));
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(Slurm, ANestedCallRunsAtOnceInTheSameJob) {
  const auto run = Run({"--", Program(), "--", Program(), "--queue-limit", "5s", "--", "sh", "-c",
                        "echo $CRUCIBLE_JOB_ID"});
  EXPECT_EQ(run.status.ShellCode(), 0) << run.err;
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(run.out, Rows().at(0).id + "\n");
}

TEST_F(Slurm, InsideAnAllocationItRunsThere) {
  const std::string echo = "echo $SLURM_JOB_ID.$SLURM_STEP_ID";
  const auto salloc = RunUnder({"/usr/bin/salloc", "--quiet", "--gres=gpu:1", "sh", "-c",
                                "echo $SLURM_JOB_ID.0; " + Program() + " -- sh -c '" + echo + "'"});
  const std::size_t line = salloc.out.find('\n') + 1;
  EXPECT_EQ(salloc.out.substr(0, line), salloc.out.substr(line)) << salloc.err;
  // In a batch script, too: an allocation without a step of srun's.
  ASSERT_TRUE(WriteFileAtomically(Path("batch"), "#!/bin/sh\n" + Program() + " -- sh -c '" + echo +
                                                     "' >" + Path("t") + "\nmv " + Path("t") + " " +
                                                     Path("out") + "\n"));
  const auto sbatch =
      RunUnder({"/usr/bin/sbatch", "--gres=gpu:1", "--output=" + Path("batch.out"), Path("batch")});
  ASSERT_TRUE(Appears("out")) << sbatch.err << ReadFile(Path("batch.out")).value_or("");
  EXPECT_NE(ReadFile(Path("out"))->find(".0\n"), std::string::npos) << *ReadFile(Path("out"));
}

TEST_F(Slurm, InsideSomebodysStepItOverlapsInsteadOfWaitingForItself) {
  const auto run = RunUnder({"/usr/bin/srun", "--quiet", "--gres=gpu:1", Program(), "--queue-limit",
                             "30s", "--", "sh", "-c", "echo step $SLURM_STEP_ID"});
  EXPECT_EQ(run.out, "step 1\n") << run.err;
}

TEST_F(Slurm, TheFirstInterruptAsksTheSecondInsists) {
  Subprocess job = Start({"--", "sh", "-c",
                          "trap 'touch " + Path("asked") + "' INT; trap 'exit 9' TERM; touch " +
                              Path("up") + "; while :; do sleep 0.02; done"});
  ASSERT_TRUE(Appears("up"));
  ::kill(job.pid(), SIGINT);
  ASSERT_TRUE(Appears("asked"));
  ::kill(job.pid(), SIGINT);
  EXPECT_EQ(job.Wait()->ShellCode(), 9);
  EXPECT_EQ(Rows().at(0).outcome, "cancelled");
}

TEST_F(Slurm, AnInterruptedWaiterLeavesTheQueue) {
  Subprocess holder = Start(Waiting("up"));
  ASSERT_TRUE(Appears("up"));
  Subprocess waiter = Start({"--", "true"});
  ASSERT_TRUE(Eventually([&] { return AreInSlurm(2); }));
  ::kill(waiter.pid(), SIGINT);
  EXPECT_EQ(waiter.Wait()->ShellCode(), 130);
  EXPECT_TRUE(Eventually([&] { return AreInSlurm(1); }));
  EXPECT_EQ(Rows().at(0).outcome, "cancelled");
}

TEST_F(Slurm, AWaitingJobIsCancelledByItsId) {
  Subprocess holder = Start(Waiting("up"));
  ASSERT_TRUE(Appears("up"));
  Subprocess waiter = Start({"--", "true"});
  ASSERT_TRUE(Eventually([&] { return Rows().size() == 2 && AreInSlurm(2); }));
  const std::string id = Rows().at(0).id;
  const auto cancel = RunUnder({std::string(CRUCIBLE_BIN_DIR) + "/crucible", "gpu", "cancel", id});
  EXPECT_EQ(cancel.out, "cancelled the waiting job " + id + "\n") << cancel.err;
  EXPECT_EQ(waiter.Wait()->ShellCode(), 143);
  EXPECT_EQ(Rows().at(0).outcome, "cancelled");
}

TEST_F(Slurm, AKilledCallerTakesItsJobWithIt) {
  Subprocess caller = Start(Waiting("up"));
  ASSERT_TRUE(Appears("up"));
  ::kill(caller.pid(), SIGKILL);
  (void)caller.Wait();
  EXPECT_TRUE(Eventually([] { return cluster_->IsIdle(); }));
  EXPECT_EQ(Run({"--", "true"}).status.ShellCode(), 0);
  EXPECT_EQ(Rows().at(1).outcome, "lost");
}

TEST_F(Slurm, TheEpilogEndsWhatOutlivesItsJobAndTheClocksAreLockedAgain) {
  const std::string before = cluster_->SmiCalls();
  // With its output elsewhere: Slurm waits a minute for the end of a stream that is still open.
  Subprocess job = Start({"--", "sh", "-c",
                          "setsid sh -c 'echo $$ >" + Path("p") + "; mv " + Path("p") + " " +
                              Path("pid") + "; sleep 300' >/dev/null 2>&1 & exec sleep 300"});
  ASSERT_TRUE(Appears("pid"));
  ASSERT_TRUE(Eventually([&] { return Rows().at(0).started_ms.has_value(); }));
  const pid_t orphan = std::stoi(*ReadFile(Path("pid")));
  // The gpu_run on the node gets no chance to clean up.
  const auto holder = Folder("GPU-fake-0").ReadHolder();
  ASSERT_TRUE(holder);
  ::kill(holder->runner.pid, SIGKILL);
  EXPECT_EQ(job.Wait()->ShellCode(), 137);
  EXPECT_EQ(Rows().at(0).outcome, "killed");
  EXPECT_TRUE(Eventually([] { return cluster_->IsIdle(); }));
  EXPECT_FALSE(IsAlive(IdentityOf(orphan)));
  const std::string lock = "-i 0 --lock-gpu-clocks=1500,1500\n";
  EXPECT_EQ(cluster_->SmiCalls(), before + lock + lock);  // prolog and epilog
}

TEST_F(Slurm, AJobOutlivesTheDaemons) {
  Subprocess job = Start(Waiting("up"));
  ASSERT_TRUE(Appears("up"));
  const std::string name = "gpu_run-" + Rows().at(0).id;
  ASSERT_TRUE(Eventually([&] { return cluster_->HasSaved(name); }));
  ASSERT_TRUE(cluster_->KillAndRestart("slurmctld"));
  ASSERT_TRUE(cluster_->KillAndRestart("slurmd"));
  ASSERT_TRUE(Eventually([&] { return Jobs().find("error") == std::string::npos; }));
  Touch("up.go");
  EXPECT_EQ(job.Wait()->ShellCode(), 0);
  EXPECT_EQ(Rows().at(0).outcome, "ok");
}

}  // namespace
}  // namespace crucible
