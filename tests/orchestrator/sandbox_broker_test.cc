// An agent in its sandbox, its mission's broker, and jobs in theirs: no device but through gpu_run.
#include <signal.h>

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "gpu_runner/broker.h"
#include "gpu_runner/history.h"
#include "orchestrator/agents/sandbox.h"
#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class SandboxBroker : public GitFixture {
 protected:
  struct Mission {
    SandboxSpec sandbox;
    std::unique_ptr<Broker> broker;
  };

  void SetUp() override {
    GitFixture::SetUp();
    if (const auto works = SandboxWorks(); !works) GTEST_SKIP() << works.error().text;
    state_ = repo_ / ".crucible";
    Write(".crucible/key", "secret key");
    one_ = Start("m1");
    two_ = Start("m2");
  }

  Mission Start(const std::string& id) {
    Mission mission;
    mission.sandbox.worktree = state_ / "worktrees" / id;
    mission.sandbox.scratch = state_ / "scratch" / id;
    mission.sandbox.readable = {fs::path(CRUCIBLE_BIN_DIR)};
    mission.sandbox.broker_socket = state_ / "sockets" / id / "broker";
    Git({"worktree", "add", "-q", "-b", "agent/" + id, mission.sandbox.worktree.string()});
    fs::create_directories(mission.sandbox.scratch);
    BrokerSpec spec;
    spec.socket = mission.sandbox.broker_socket;
    spec.roots = {mission.sandbox.worktree};
    spec.gpu_run = fs::path(CRUCIBLE_BIN_DIR) / "gpu_run";
    spec.environment = {
        {"CRUCIBLE_LOCK_DIR", (root_ / "locks").string()},
        {"CRUCIBLE_HOME", state_.string()},
        {"CRUCIBLE_MISSION", id},
        {"CRUCIBLE_NVML_LIBRARY", std::string(CRUCIBLE_LIB_DIR) + "/libfake_nvml.so"}};
    spec.sandbox = [sandbox = mission.sandbox](SubprocessSpec job) {
      return SandboxedJob(sandbox, std::move(job));
    };
    auto broker = Broker::Start(std::move(spec));
    EXPECT_TRUE(broker) << broker.error().text;
    if (broker) mission.broker = std::move(*broker);
    return mission;
  }

  Captured In(const Mission& mission, const std::string& script) {
    auto spec = Sandboxed(mission.sandbox, {.argv = {"bash", "-c", script}});
    EXPECT_TRUE(spec) << spec.error().text;
    if (!spec) return {};
    auto run = RunCaptured(*spec, std::chrono::seconds(60));
    EXPECT_TRUE(run) << run.error().text;
    if (!run) return {};
    EXPECT_FALSE(run->timed_out);
    return *run;
  }
  std::vector<JobRow> Rows() {
    auto history = History::Open(state_ / "log.sqlite");
    EXPECT_TRUE(history) << history.error().text;
    return history->Recent(100).value();
  }

  const std::string gpu_run_ = std::string(CRUCIBLE_BIN_DIR) + "/gpu_run";
  fs::path state_;
  Mission one_, two_;
};

TEST_F(SandboxBroker, AnAgentsJobRunsOutsideItsSandboxAndInOneOfItsOwn) {
  fs::create_directory(one_.sandbox.worktree / "sub");
  const Captured run =
      In(one_, "cd sub && OMP_NUM_THREADS=3 " + gpu_run_ +
                   " --limit 50s -- sh -c 'echo $CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS; pwd; "
                   "git status --porcelain --untracked-files=no; echo made >a; ls /dev/nvidia* "
                   "2>&- | wc -l; exit 4'");
  const long nodes = std::count_if(fs::directory_iterator("/dev"), fs::directory_iterator(),
                                   [](const fs::directory_entry& item) {
                                     return item.path().filename().string().starts_with("nvidia");
                                   });
  EXPECT_EQ(run.out.substr(0, run.out.rfind('\n', run.out.size() - 2) + 1),
            "GPU-fake-0 3\n" + (one_.sandbox.worktree / "sub").string() + "\n")
      << run.err;
  EXPECT_EQ(run.out.back(), '\n');
  if (nodes == 0) {
    EXPECT_TRUE(run.out.ends_with("\n0\n")) << run.out;
  } else {
    EXPECT_FALSE(run.out.ends_with("\n0\n")) << run.out;
  }
  EXPECT_EQ(run.status.code, 4);
  EXPECT_EQ(*ReadFile(one_.sandbox.worktree / "sub" / "a"), "made\n");
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(Rows()[0].device, "GPU-fake-0");
  EXPECT_EQ(Rows()[0].mission, "m1");
}

TEST_F(SandboxBroker, AJobReachesNoSecretAndNoQueueFile) {
  for (const fs::path& path : {state_ / "key", state_ / "log.sqlite", root_ / "locks",
                               two_.sandbox.worktree, two_.sandbox.broker_socket})
    EXPECT_NE(In(one_, gpu_run_ + " -- ls '" + path.string() + "'").status.code, 0) << path;
  EXPECT_EQ(In(one_, gpu_run_ + " -- sh -c 'cat /proc/*/environ' | tr '\\0' '\\n' | "
                                "grep -c -e TOKEN -e CRUCIBLE_HOME")
                .out,
            "0\n");
}

TEST_F(SandboxBroker, ANestedCallRunsAtOnce) {
  const Captured run = In(one_, gpu_run_ + " -- " + gpu_run_ + " --limit 20s -- " + gpu_run_ +
                                    " -- sh -c 'echo $CUDA_VISIBLE_DEVICES; exit 6'");
  EXPECT_EQ(run.out, "GPU-fake-0\n") << run.err;
  EXPECT_EQ(run.status.code, 6);
  EXPECT_EQ(Rows().size(), 1u);
  const Captured other = In(one_, gpu_run_ + " -- " + gpu_run_ + " --device cpu -- true");
  EXPECT_EQ(other.status.code, 125);
  EXPECT_NE(other.err.find("a job in a sandbox has one device"), std::string::npos) << other.err;
}

TEST_F(SandboxBroker, AMissionReachesItsOwnBrokerOnly) {
  EXPECT_EQ(In(one_, "ls '" + two_.sandbox.broker_socket.string() + "'").status.code, 2);
  EXPECT_EQ(In(one_, "CRUCIBLE_BROKER='" + two_.sandbox.broker_socket.string() + "' " + gpu_run_ +
                         " -- true")
                .status.code,
            125);
  const Captured run = In(two_, "cd /tmp && " + gpu_run_ + " -- true");
  EXPECT_EQ(run.status.code, 125);
  EXPECT_NE(run.err.find("not in this mission's worktree"), std::string::npos) << run.err;
}

TEST_F(SandboxBroker, AnEndedSandboxTakesItsJobWithIt) {
  auto spec =
      Sandboxed(one_.sandbox, {.argv = {gpu_run_, "--", "sh", "-c", "touch up; sleep 300"}});
  ASSERT_OK(spec);
  spec->out = spec->err = Stdio::kNull;
  auto child = Subprocess::Start(*spec);
  ASSERT_OK(child);
  const auto eventually = [](const std::function<bool()>& condition) {
    for (int i = 0; i < 3000 && !condition(); ++i)
      SystemClock().SleepFor(std::chrono::milliseconds(10));
    return condition();
  };
  ASSERT_TRUE(eventually([&] { return fs::exists(one_.sandbox.worktree / "up"); }));
  child->Signal(SIGKILL);
  EXPECT_TRUE(eventually([&] {
    const auto rows = Rows();
    return !rows.empty() && rows[0].outcome == "cancelled";
  }));
}

}  // namespace
}  // namespace crucible
