// What a secluded process can no longer do, tried in one.
#include "checks/harness/seclusion.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <thread>

#include "base/subprocess.h"
#include "checks/harness/handover.h"
#include "checks/harness/shared_arena.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int status = 0;
  std::string verdict, layers;
  bool Exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

// Runs `act` in a secluded child; its return value is the child's exit code.
Outcome InSeclusion(const std::function<int()>& act, Seclusion level = Seclusion::kCompute) {
  auto arena = SharedArena::Make(4096);
  EXPECT_TRUE(arena.has_value());
  WorkerControl& control = arena->control();
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string layers = Seclude(level, control.verdict, sizeof control.verdict);
    std::snprintf(control.text, sizeof control.text, "%s", layers.c_str());
    ::_exit(act());
  }
  Outcome outcome;
  ::waitpid(child, &outcome.status, 0);
  outcome.verdict = control.verdict;
  outcome.layers = control.text;
  return outcome;
}

class SeclusionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (InSeclusion([] { return 0; }).layers.find("seccomp") == std::string::npos)
      GTEST_SKIP() << "this kernel or container has no seccomp";
  }
};

TEST_F(SeclusionTest, LetsComputingGoOn) {
  const Outcome outcome = InSeclusion([] {
    int sum = 0;
    std::thread([&] { sum = 42; }).join();
    const int file = ::open("/proc/self/maps", O_RDONLY);
    char byte = 0;
    if (file < 0 || ::read(file, &byte, 1) != 1) return 1;
    return std::fputs("", stderr) >= 0 && sum == 42 ? 5 : 2;
  });
  EXPECT_TRUE(outcome.Exited(5)) << outcome.status << " " << outcome.verdict;
}

TEST_F(SeclusionTest, StopsTheProcessAndSaysWhatItTried) {
  const int pipe_end = ::open("/dev/null", O_WRONLY);
  ASSERT_GT(pipe_end, 2);
  const std::pair<const char*, std::function<void()>> attempts[] = {
      {"tried to write to descriptor", [&] { (void)!::write(pipe_end, "x", 1); }},
      {"tried to open a file for writing", [] { ::open("/dev/null", O_WRONLY); }},
      {"tried to open a file for writing", [] { ::open("/tmp/crucible", O_CREAT, 0600); }},
      {"tried to start a process", [] { ::fork(); }},
      {"tried to start a program", [] { ::execl("/bin/true", "true", nullptr); }},
      {"tried to open a socket", [] { ::socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"tried to send a signal", [] { ::kill(::getppid(), 0); }},
      {"tried to send a signal", [] { ::syscall(SYS_tkill, ::getppid(), SIGCONT); }},
      {"tried to send a signal", [] { ::syscall(SYS_pidfd_send_signal, -1, SIGCONT, nullptr, 0); }},
      {"tried to send a signal", [] { (void)::sigqueue(::getppid(), SIGCONT, {}); }},
      {"tried to set a timer", [] { ::alarm(1); }},
      {"tried to set a timer",
       [] {
         const itimerval soon{{1, 0}, {1, 0}};
         ::setitimer(ITIMER_REAL, &soon, nullptr);
       }},
      {"tried to set a timer",
       [] {
         timer_t timer{};
         ::timer_create(CLOCK_MONOTONIC, nullptr, &timer);
       }},
      {"tried to set a timer", [] { ::timerfd_create(CLOCK_MONOTONIC, 0); }},
      {"tried to remove a file", [] { ::unlinkat(AT_FDCWD, "/nowhere", 0); }},
  };
  for (const auto& [says, act] : attempts) {
    const Outcome outcome = InSeclusion([&] {
      act();
      return 0;
    });
    EXPECT_TRUE(outcome.Exited(kSecludedExit)) << says << ": status " << outcome.status;
    EXPECT_THAT(outcome.verdict, HasSubstr(says));
  }
  ::close(pipe_end);
}

TEST_F(SeclusionTest, CannotTakeTheHandlerAway) {
  const Outcome outcome = InSeclusion([] {
    if (::signal(SIGSYS, SIG_IGN) != SIG_ERR) return 1;
    ::fork();
    return 0;
  });
  EXPECT_TRUE(outcome.Exited(kSecludedExit)) << outcome.status;
}

TEST_F(SeclusionTest, CannotLookIntoTheProcessThatJudges) {
  const std::string memory = "/proc/" + std::to_string(::getpid()) + "/mem";
  for (const Seclusion level : {Seclusion::kCompute, Seclusion::kDevice}) {
    const Outcome outcome =
        InSeclusion([&] { return ::open(memory.c_str(), O_RDONLY) >= 0 ? 1 : errno; }, level);
    if (outcome.layers.find("landlock") == std::string::npos)
      GTEST_SKIP() << "this kernel has no Landlock; layers: " << outcome.layers;
    EXPECT_FALSE(outcome.Exited(1)) << "the harness's memory was opened";
    EXPECT_TRUE(outcome.Exited(EACCES) || outcome.Exited(EPERM)) << outcome.status;
  }
}

TEST(SharedArena, GivesZeroedSpaceOutAndTakesItBackAsAWhole) {
  auto arena = SharedArena::Make(1 << 20);
  ASSERT_TRUE(arena.has_value());
  const auto first = arena->Take(1000), second = arena->Take(5000);
  ASSERT_EQ(first.size(), 1000u);
  EXPECT_GE(second.data(), first.data() + 1000);
  first[0] = std::byte{7};
  EXPECT_TRUE(arena->Take(2 << 20).empty());
  arena->GiveAllBack();
  EXPECT_EQ(arena->Take(1000).data(), first.data());
  EXPECT_EQ(first[0], std::byte{0});
}

TEST(HandoverCost, IsATimeAndTheThreadEnds) {
  Handover handover;
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < 50; ++i) least = std::min(least, handover.MeasureNs());
  EXPECT_LT(least, 10'000'000);
}

// crucible_confine COMMAND: what may hold a candidate and is no worker of the harness.
class ConfineTest : public ::testing::Test {
 protected:
  static Captured Confined(std::vector<std::string> words) {
    words.insert(words.begin(), CRUCIBLE_BIN_DIR "/crucible_confine");
    auto run = RunCaptured({.argv = std::move(words)}, std::chrono::seconds(30));
    EXPECT_TRUE(run) << run.error().text;
    return run ? *run : Captured{};
  }
  void SetUp() override {
    if (Confined({"true"}).err.find("no Landlock") != std::string::npos)
      GTEST_SKIP() << "this kernel or container has no Landlock";
  }
};

TEST_F(ConfineTest, BecomesTheCommandWhichMayStartOthersAndWriteScratchFiles) {
  const Captured run = Confined({"sh", "-c",
                                 "file=$(mktemp) && echo written >\"$file\" && "
                                 "sh -c 'cat \"$0\"' \"$file\" && rm \"$file\" && exit 9"});
  EXPECT_EQ(run.out, "written\n") << run.err;
  EXPECT_EQ(run.status.code, 9);
  EXPECT_EQ(Confined({"/no/such/checker"}).status.code, 127);
  EXPECT_EQ(Confined({}).status.code, 2);
}

TEST_F(ConfineTest, TheJudgesMemoryAndDescriptorsAreClosedToItForRootToo) {
  const std::string judge = "/proc/" + std::to_string(::getpid());
  const int own = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::string descriptor = judge + "/fd/" + std::to_string(own);
  int tried = 0;
  for (const std::string& command :
       {"exec 9<" + judge + "/mem", "exec 9<" + descriptor, "exec 9>" + descriptor,
        "test -n \"$(readlink " + judge + "/exe)\""}) {
    // Where the machine closes it to everybody there is nothing to show.
    if (!RunCaptured({.argv = {"sh", "-c", command}})->status.ok()) continue;
    ++tried;
    EXPECT_NE(Confined({"sh", "-c", command}).status.code, 0) << command;
  }
  EXPECT_GE(tried, 1);
  ::close(own);
}

TEST_F(ConfineTest, NothingIsWrittenBesideScratchFiles) {
  const Captured run =
      Confined({"sh", "-c", "echo x >>" CRUCIBLE_BIN_DIR "/crucible_confine.test"});
  EXPECT_NE(run.status.code, 0);
  EXPECT_NE(::access(CRUCIBLE_BIN_DIR "/crucible_confine.test", F_OK), 0);
}

}  // namespace
}  // namespace crucible
