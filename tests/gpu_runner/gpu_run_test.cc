// gpu_run as its callers meet it: turns, nested calls, limits, signals, clean-up, history.
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "gpu_runner/queue.h"
#include "gpu_runner/survivors.h"
#include "gpu_runner/token.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

using GpuRun = RunnerFixture;

TEST_F(GpuRun, EndsAsItsJobEnds) {
  EXPECT_EQ(Run({"--device", "cpu", "--", "true"}).status.ShellCode(), 0);
  EXPECT_EQ(Run({"--device", "cpu", "--", "sh", "-c", "exit 7"}).status.ShellCode(), 7);
  EXPECT_EQ(Run({"--device", "cpu", "--", "sh", "-c", "kill -9 $$"}).status.ShellCode(), 137);
  EXPECT_EQ(Run({"--device", "cpu", "--", "no-such-command"}).status.ShellCode(), 127);
  ASSERT_TRUE(WriteFileAtomically(Path("not_executable"), ""));
  EXPECT_EQ(Run({"--device", "cpu", "--", Path("not_executable")}).status.ShellCode(), 126);
  EXPECT_EQ(Run({"--nonsense"}).status.ShellCode(), 2);
}

TEST_F(GpuRun, PassesOutputThroughUntouched) {
  const auto run = Run({"--device", "cpu", "--", "sh", "-c", "printf 'a\\0b'; printf e >&2"});
  EXPECT_EQ(run.out, std::string("a\0b", 3));
  EXPECT_EQ(run.err, "e");
}

TEST_F(GpuRun, KeepsOutputWhenAsked) {
  const auto run = Run({"--device", "cpu", "--log", "--", "sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(run.out, "out\n");
  EXPECT_EQ(run.err, "err\n");
  const auto kept = ReadFile(Rows().at(0).log_path);
  ASSERT_TRUE(kept) << kept.error().text;
  EXPECT_NE(kept->find("out\n"), std::string::npos);
  EXPECT_NE(kept->find("err\n"), std::string::npos);
}

TEST_F(GpuRun, CountsTheLimitFromTheStartOfTheJob) {
  Subprocess first =
      Start({"--device", "cpu", "--", "sh", "-c",
             "touch " + Path("up") + "; while [ ! -e " + Path("go") + " ]; do sleep 0.02; done"});
  ASSERT_TRUE(Appears("up"));
  // Waits longer than its run limit, and still gets all of it.
  Subprocess second = Start({"--device", "cpu", "--limit", "30s", "--", "touch", Path("done")});
  SystemClock().SleepFor(std::chrono::milliseconds(50));
  ASSERT_TRUE(WriteFileAtomically(Path("go"), ""));
  EXPECT_EQ(second.Wait()->ShellCode(), 0);
  EXPECT_TRUE(Exists("done"));
  const auto run = Run({"--device", "cpu", "--limit", "100ms", "--", "sleep", "60"});
  EXPECT_EQ(run.status.ShellCode(), 124);
  EXPECT_EQ(Rows().at(0).outcome, "run_limit");
}

TEST_F(GpuRun, TheLimitReachesAJobThatLeftItsGroup) {
  const auto run = Run({"--device", "cpu", "--limit", "4s", "--", "python3", "-c",
                        "import os, signal, time\n"
                        "os.setpgid(0, os.getpgid(os.getppid()))\n"
                        "open('" +
                            Path("left") +
                            "', 'w').close()\n"
                            "time.sleep(50)"});
  EXPECT_TRUE(Exists("left"));
  EXPECT_EQ(run.status.ShellCode(), 124) << run.err;
}

TEST_F(GpuRun, AWaiterWhoseTicketIsRemovedQueuesAgain) {
  Subprocess holder =
      Start({"--device", "cpu", "--", "sh", "-c",
             "touch " + Path("up") + "; while ! [ -e " + Path("go") + " ]; do sleep 0.05; done"});
  ASSERT_TRUE(Appears("up"));
  Subprocess waiter = Start({"--device", "cpu", "--", "touch", Path("ran")});
  ASSERT_TRUE(Eventually([&] { return WaitingTickets(Folder()).size() == 1; }));
  for (const auto& item : std::filesystem::directory_iterator(Folder().tickets()))
    std::filesystem::remove(item.path());
  ASSERT_TRUE(WriteFileAtomically(Path("go"), ""));
  const auto status = waiter.Wait(std::chrono::seconds(30));
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_TRUE(status->ok());
  EXPECT_TRUE(Exists("ran"));
}

TEST_F(GpuRun, SaysWhoHoldsTheDeviceAndGivesUpAtTheQueueLimit) {
  Subprocess holder =
      Start({"--device", "cpu", "--", "sh", "-c", "touch " + Path("up") + "; sleep 60"});
  ASSERT_TRUE(Appears("up"));
  const auto run = Run({"--device", "cpu", "--queue-limit", "150ms", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 75);
  EXPECT_NE(run.err.find("held by pid " + std::to_string(holder.pid())), std::string::npos)
      << run.err;
  EXPECT_FALSE(Exists("ran"));
  EXPECT_EQ(Rows().at(0).outcome, "queue_limit");
}

TEST_F(GpuRun, NestedCallsRunAtOnce) {
  std::vector<std::string> words;
  for (int depth = 0; depth < 5; ++depth) {
    words.insert(words.end(), {"--device", "cpu", "--queue-limit", "5s", "--"});
    if (depth < 4) words.push_back(Program());
  }
  words.insert(words.end(), {"sh", "-c", "echo $CRUCIBLE_JOB_ID"});
  const auto run = Run(words);
  EXPECT_EQ(run.status.ShellCode(), 0) << run.err;
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(run.out, Rows().at(0).id + "\n");
}

TEST_F(GpuRun, ForgedAndStaleTokensWaitLikeEverybody) {
  Subprocess holder = Start({"--device", "cpu", "--", "sh", "-c",
                             "echo $CRUCIBLE_GPU_TOKEN >" + Path("t") + "; mv " + Path("t") + " " +
                                 Path("token") + "; sleep 60"});
  ASSERT_TRUE(Appears("token"));
  std::string real = *ReadFile(Path("token"));
  real.pop_back();
  std::string forged = real;
  forged[4] = forged[4] == '0' ? '1' : '0';  // another nonce
  // The true one as well: this test is no descendant of the holder.
  for (const std::string& token : {real, forged, std::string("cpu:00:2:1")}) {
    environment_["CRUCIBLE_GPU_TOKEN"] = token;
    SubprocessSpec spec = Spec({"--device", "cpu", "--queue-limit", "100ms", "--", "true"});
    spec.unset.erase(spec.unset.begin());
    const auto run = RunCaptured(spec);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->status.ShellCode(), 75) << token << "\n" << run->err;
    EXPECT_NE(run->err.find("was not accepted"), std::string::npos) << run->err;
  }
}

TEST_F(GpuRun, EndsWhatAJobLeavesBehind) {
  Run({"--device", "cpu", "--", "sh", "-c",
       "setsid sh -c 'echo $$ >" + Path("a") +
           "; sleep 60' & "
           "(setsid env -i sh -c 'echo $$ >" +
           Path("b") +
           "; sleep 60' &); "
           "while [ ! -s " +
           Path("a") + " ] || [ ! -s " + Path("b") + " ]; do sleep 0.01; done"});
  for (const char* name : {"a", "b"}) {
    const pid_t pid = std::stoi(*ReadFile(Path(name)));
    EXPECT_FALSE(IsAlive(IdentityOf(pid))) << name << " " << pid;
  }
}

TEST_F(GpuRun, ADeadHoldersJobIsGoneBeforeTheNextStartsAndIsRecordedAsLost) {
  Subprocess holder = Start({"--device", "cpu", "--", "sh", "-c",
                             "setsid sh -c 'echo $$ >" + Path("p") + "; mv " + Path("p") + " " +
                                 Path("pid") + "; sleep 60' & sleep 60"});
  ASSERT_TRUE(Appears("pid"));
  const pid_t pid = std::stoi(*ReadFile(Path("pid")));
  ::kill(holder.pid(), SIGKILL);  // the runner alone
  (void)holder.Wait();
  const auto next = Run({"--device", "cpu", "--", "sh", "-c",
                         "grep State /proc/" + std::to_string(pid) + "/status || echo gone"});
  // Nobody may have reaped it yet, but it runs no more.
  EXPECT_TRUE(next.out == "gone\n" || next.out == "State:\tZ (zombie)\n") << next.out;
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].outcome, "ok");
  EXPECT_EQ(rows[1].outcome, "lost");
}

// Without a successor on its device: a look at the status or a job on another device cleans up.
TEST_F(GpuRun, ADeadHolderWithoutSuccessorIsCleanedUpByAnyCall) {
  SetNvml("gpus 2\n");
  const auto kill_a_holder = [&](const std::string& name) {
    Subprocess holder = Start({"--device", "0", "--", "sh", "-c",
                               "setsid sh -c 'echo $$ >" + Path("p") + "; mv " + Path("p") + " " +
                                   Path(name) + "; sleep 60' & sleep 60"});
    EXPECT_TRUE(Appears(name));
    const auto record = Folder("GPU-fake-0").ReadHolder();
    ::kill(holder.pid(), SIGKILL);
    (void)holder.Wait();
    return record.value_or(HolderRecord{});
  };
  const auto expect_clean = [&](const HolderRecord& dead, const std::string& name) {
    EXPECT_FALSE(std::filesystem::exists(dead.cgroup)) << dead.cgroup;
    EXPECT_FALSE(IsAlive(IdentityOf(std::stoi(*ReadFile(Path(name))))));
    EXPECT_TRUE(Folder("GPU-fake-0").ReadHolder()->released);
    EXPECT_FALSE(Folder("GPU-fake-0").IsLocked());
    const auto rows = Rows();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const JobRow& any) { return any.id == dead.job; });
    ASSERT_NE(row, rows.end());
    EXPECT_EQ(row->outcome, "lost");
  };
  const HolderRecord first = kill_a_holder("first");
  EXPECT_NE(Run({"status"}).out.find("GPU-fake-0: free"), std::string::npos);
  expect_clean(first, "first");
  const HolderRecord second = kill_a_holder("second");
  EXPECT_EQ(Run({"--device", "cpu", "--", "true"}).status.ShellCode(), 0);
  expect_clean(second, "second");
}

TEST_F(GpuRun, AYieldingCallLetsAShorterOneGoFirst) {
  Subprocess holder =
      Start({"--device", "cpu", "--", "sh", "-c",
             "touch " + Path("up") + "; while [ ! -e " + Path("go") + " ]; do sleep 0.02; done"});
  ASSERT_TRUE(Appears("up"));
  std::vector<Subprocess> callers;
  const auto join = [&](const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(), {"--device", "cpu"});
    options.insert(options.end(), {"--", "sh", "-c", "echo " + name + " >>" + Path("order")});
    callers.push_back(Start(options));
    const std::size_t count = callers.size();
    EXPECT_TRUE(Eventually([&] {
      return std::distance(std::filesystem::directory_iterator(Folder().tickets()), {}) ==
             std::ptrdiff_t(count);
    }));
  };
  join("strict", {"--limit", "1h"});
  join("long", {"--limit", "50m", "--yield"});
  join("short", {"--limit", "60s"});
  ASSERT_TRUE(WriteFileAtomically(Path("go"), ""));
  for (Subprocess& child : callers) EXPECT_EQ(child.Wait()->ShellCode(), 0);
  EXPECT_EQ(ReadFile(Path("order")).value_or(""), "strict\nshort\nlong\n");
}

// Each call reads the write-ahead log that it finds: it must not grow with the number of jobs.
TEST_F(GpuRun, TheHistorysLogIsEmptiedNowAndThen) {
  {
    auto history = History::Open(folder_ / "home" / "log.sqlite");
    ASSERT_TRUE(history);
    JobRow row;
    row.outcome = "ok";
    std::size_t largest = 0;
    for (int i = 0; i < 300; ++i) {
      row.id = "j" + std::to_string(i);
      ASSERT_TRUE(history->Put(row));
      largest = std::max(largest, std::filesystem::file_size(folder_ / "home/log.sqlite-wal"));
    }
    EXPECT_GT(largest, 0u);
    EXPECT_LT(largest, 1'200'000u);  // 250 pages and one job's
  }
  EXPECT_EQ(Run({"--device", "cpu", "--", "true"}).status.ShellCode(), 0);
  EXPECT_EQ(Rows().size(), 301u);
}

TEST_F(GpuRun, KeepsItsHistoryOutOfTheRepositorysStatus) {
  std::filesystem::create_directories(folder_ / "repository" / ".git");
  SubprocessSpec spec = Spec({"--device", "cpu", "--", "true"});
  spec.environment.erase("CRUCIBLE_HOME");
  spec.unset.push_back("CRUCIBLE_HOME");
  spec.directory = folder_ / "repository";
  const auto run = RunCaptured(spec);
  ASSERT_TRUE(run && run->status.ok()) << run->err;
  EXPECT_TRUE(Exists("repository/.crucible/log.sqlite"));
  EXPECT_EQ(ReadFile(Path("repository/.crucible/.gitignore")).value_or(""), "*\n");
}

TEST_F(GpuRun, FirstInterruptAsksTheSecondInsists) {
  Subprocess job = Start({"--device", "cpu", "--", "sh", "-c",
                          "trap 'touch " + Path("asked") + "' INT; trap 'exit 9' TERM; touch " +
                              Path("up") + "; while :; do sleep 0.02; done"});
  ASSERT_TRUE(Appears("up"));
  ::kill(job.pid(), SIGINT);
  ASSERT_TRUE(Appears("asked"));
  ::kill(job.pid(), SIGINT);
  EXPECT_EQ(job.Wait()->ShellCode(), 9);
  EXPECT_EQ(Rows().at(0).outcome, "cancelled");
  EXPECT_FALSE(Folder().IsLocked());
}

// The job owns the terminal, so its Ctrl-C goes to the job; what the job left in the background
// goes with it.
TEST_F(GpuRun, CtrlCOnATerminalLeavesNothingBehind) {
  const std::string script = "setsid sleep 300 & touch " + Path("up") + "; exec sleep 60";
  std::fflush(nullptr);
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    for (const auto& [name, value] : environment_) ::setenv(name.c_str(), value.c_str(), 1);
    ::unsetenv("CRUCIBLE_GPU_TOKEN");
    ::execl(Program().c_str(), "gpu_run", "--device", "cpu", "--", "sh", "-c", script.c_str(),
            nullptr);
    ::_exit(98);
  }
  const UniqueFd master(terminal);
  ASSERT_TRUE(Appears("up"));
  ASSERT_EQ(::write(master.get(), "\x03", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  EXPECT_TRUE(
      ProcessesWithEnvironment("CRUCIBLE_LOCK_DIR", environment_["CRUCIBLE_LOCK_DIR"]).empty());
  EXPECT_FALSE(Folder().IsLocked());
  EXPECT_TRUE(std::filesystem::is_empty(Folder().tickets()));
  EXPECT_EQ(Rows().at(0).outcome, "killed");
  EXPECT_EQ(Rows().at(0).signal, SIGINT);
}

TEST_F(GpuRun, AnInterruptedWaiterLeavesNoTicket) {
  Subprocess holder =
      Start({"--device", "cpu", "--", "sh", "-c", "touch " + Path("up") + "; sleep 60"});
  ASSERT_TRUE(Appears("up"));
  Subprocess waiter = Start({"--device", "cpu", "--", "true"});
  const auto tickets = [&] {
    return std::distance(std::filesystem::directory_iterator(Folder().tickets()), {});
  };
  ASSERT_TRUE(Eventually([&] { return tickets() == 1; }));
  ::kill(waiter.pid(), SIGINT);
  EXPECT_EQ(waiter.Wait()->ShellCode(), 130);
  EXPECT_EQ(tickets(), 0);
}

TEST_F(GpuRun, ABrokenHistoryDoesNotStopAJob) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "home" / "log.sqlite", std::string(4096, 'x')));
  const auto run = Run({"--device", "cpu", "--", "sh", "-c", "exit 5"});
  EXPECT_EQ(run.status.ShellCode(), 5);
  EXPECT_NE(run.err.find("log.sqlite"), std::string::npos) << run.err;
}

TEST_F(GpuRun, ACrashBetweenRecordAndStartLeavesNoCgroup) {
  // The record is written first: it may name a cgroup that was never made, or one without a
  // process.
  HolderRecord dead;
  dead.nonce = "0123456789abcdef0123456789abcdef";
  dead.job = "jtest" + std::to_string(::getpid());
  dead.cgroup = JobCgroupPath(dead.job);
  EXPECT_TRUE(KillSurvivors(dead, 1000).empty());
  if (!MakeJobCgroup(dead.cgroup)) GTEST_SKIP() << "no cgroup can be made here: " << dead.cgroup;
  EXPECT_TRUE(std::filesystem::exists(dead.cgroup));
  EXPECT_FALSE(MakeJobCgroup(dead.cgroup)) << "another's";
  EXPECT_TRUE(KillSurvivors(dead, 1000).empty());
  EXPECT_FALSE(std::filesystem::exists(dead.cgroup));
}

}  // namespace
}  // namespace crucible
