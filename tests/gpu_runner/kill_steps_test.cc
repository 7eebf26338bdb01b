// A SIGKILL of gpu_run at each of its system calls: whatever step it was in, the next call runs and
// finds nothing left.
//
// gpu_run is traced and killed at its N-th stop, with a job that leaves a process behind. Some
// steps, drawn with a seed, by default; every one with CRUCIBLE_STRESS_FULL=1.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "gpu_runner/queue.h"
#include "gpu_runner/survivors.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

class KillSteps : public RunnerFixture {
 protected:
  // Runs gpu_run to its `kill_at`-th entry into or return from the kernel and kills it there. How
  // many there were; -1: no process may be traced here.
  int RunUntil(int kill_at, const std::string& job) const {
    const std::vector<std::string> words = {Program(),
                                            "--device",
                                            "cpu",
                                            "--quiet",
                                            "--log",
                                            "--job-id",
                                            job,
                                            "--",
                                            "sh",
                                            "-c",
                                            "setsid sleep 300 & sleep 0.01"};
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const auto& [name, value] : environment_) ::setenv(name.c_str(), value.c_str(), 1);
      ::unsetenv("CRUCIBLE_GPU_TOKEN");
      if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(1);
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(99);
      ::execv(argv[0], argv.data());
      ::_exit(98);
    }
    int status = 0, stops = 0;
    long pass_on = 0;
    while (::waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
      if (stops == 0) ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD);
      const int signal_number = WSTOPSIG(status);
      pass_on = signal_number == SIGTRAP || (signal_number & 0x80) != 0 ? 0 : signal_number;
      if (stops++ == kill_at) {
        ::kill(pid, SIGKILL);
        (void)::waitpid(pid, &status, __WALL);
        return stops;
      }
      ::ptrace(PTRACE_SYSCALL, pid, nullptr, pass_on);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 99 ? -1 : stops;
  }
};

TEST_F(KillSteps, WhicheverItIsTheNextCallRunsAndNothingIsLeft) {
  const int all = RunUntil(-1, "jkill_none");
  if (all < 0) GTEST_SKIP() << "no process may be traced here";
  ASSERT_GT(all, 200);
  const bool full = std::getenv("CRUCIBLE_STRESS_FULL") != nullptr;
  const char* chosen = std::getenv("CRUCIBLE_STRESS_SEED");
  const unsigned seed = chosen != nullptr ? std::stoul(chosen) : std::random_device{}();
  std::vector<int> steps(static_cast<std::size_t>(all));
  std::iota(steps.begin(), steps.end(), 0);
  std::shuffle(steps.begin(), steps.end(), std::mt19937(seed));
  if (!full) steps.resize(30);
  std::printf("seed %u: SIGKILL at %zu of %d stops\n", seed, steps.size(), all);
  std::size_t killed_jobs = 0;
  for (const int step : steps) {
    const std::string job = "jkill" + std::to_string(::getpid()) + "_" + std::to_string(step);
    RunUntil(step, job);
    const auto next = Run({"--device", "cpu", "--queue-limit", "30s", "--", "true"});
    ASSERT_EQ(next.status.ShellCode(), 0) << "step " << step << ": " << next.err;
    EXPECT_TRUE(WaitingTickets(Folder()).empty()) << "step " << step;
    EXPECT_FALSE(Folder().IsLocked()) << "step " << step;
    const std::string cgroup = JobCgroupPath(job);
    EXPECT_TRUE(cgroup.empty() || !std::filesystem::exists(cgroup)) << "step " << step;
    // A job that had not come to its exec may be dying still: never more than that.
    EXPECT_TRUE(Eventually([&] {
      return ProcessesWithEnvironment("CRUCIBLE_LOCK_DIR", environment_.at("CRUCIBLE_LOCK_DIR"))
          .empty();
    })) << "step "
        << step;
    const auto rows = Rows();
    for (const JobRow& row : rows) {
      EXPECT_NE(row.outcome, "") << "step " << step << ", job " << row.id;
      killed_jobs += row.id == job && row.outcome == "lost" ? 1 : 0;
    }
  }
  EXPECT_GT(killed_jobs, 0u) << "no step was one with a job";
  std::printf("%zu of them had begun a job: recorded as lost\n", killed_jobs);
}

}  // namespace
}  // namespace crucible
