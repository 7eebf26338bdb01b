// How child processes start, end and are cleaned up.
#include "base/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/files.h"
#include "base/process_identity.h"

namespace crucible {
namespace {

using std::chrono::milliseconds;

TEST(Subprocess, CollectsBothStreamsAndTheExitCode) {
  const auto run = RunCaptured({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(run->out, "out\n");
  EXPECT_EQ(run->err, "err\n");
  EXPECT_EQ(run->status.code, 3);
  EXPECT_EQ(run->status.signal, 0);
  EXPECT_FALSE(run->status.ok());
}

TEST(Subprocess, TellsASignalFromAnExitCode) {
  const auto run = RunCaptured({.argv = {"sh", "-c", "kill -9 $$"}});
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(run->status.signal, 9);
  EXPECT_EQ(run->status.ShellCode(), 137);
}

TEST(Subprocess, FeedsInput) {
  const std::string large(300'000, 'x');
  const auto run = RunCaptured({.argv = {"wc", "-c"}}, milliseconds(5000), large);
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(std::stoi(run->out), 300'000);
}

TEST(Subprocess, MissingProgramIsAnErrorBeforeTheFork) {
  const auto run = RunCaptured({.argv = {"no-such-program-here"}});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(run.error().text.find("no-such-program-here"), std::string::npos);
}

TEST(Subprocess, MissingDirectoryIsAnErrorAndNotTheParents) {
  const auto run = RunCaptured({.argv = {"pwd"}, .directory = "/no/such/directory"});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(run.error().text.find("/no/such/directory"), std::string::npos);
}

TEST(Subprocess, RunsInItsDirectoryWithItsEnvironment) {
  ::setenv("CRUCIBLE_TEST_REMOVED", "1", 1);
  const auto run =
      RunCaptured({.argv = {"sh", "-c", "pwd; echo $ADDED; echo [$CRUCIBLE_TEST_REMOVED]"},
                   .directory = "/usr",
                   .environment = {{"ADDED", "yes"}},
                   .unset = {"CRUCIBLE_TEST_REMOVED"}});
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(run->out, "/usr\nyes\n[]\n");
}

TEST(Subprocess, LeaksNoDescriptor) {
  // Deliberately without O_CLOEXEC, as a careless library would open it.
  UniqueFd null(::open("/dev/null", O_RDONLY));
  UniqueFd leaked(::fcntl(null.get(), F_DUPFD, 50));
  const auto run = RunCaptured({.argv = {"sh", "-c", "ls /proc/$$/fd"}});
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(run->out.find("\n" + std::to_string(leaked.get()) + "\n"), std::string::npos)
      << run->out;
}

TEST(Subprocess, PassesANamedDescriptor) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  auto child = Subprocess::Start(
      {.argv = {"sh", "-c", "echo hello >&7"}, .descriptors = {{7, write_end.get()}}});
  ASSERT_TRUE(child) << child.error().text;
  write_end.Reset();
  ASSERT_TRUE(child->Wait(milliseconds(5000))->ok());
  char buffer[16] = {};
  EXPECT_EQ(::read(read_end.get(), buffer, sizeof buffer), 6);
  EXPECT_STREQ(buffer, "hello\n");
}

TEST(Subprocess, KillsTheWholeGroupAtTheLimit) {
  const auto run = RunCaptured({.argv = {"sh", "-c", "sleep 1000 & sleep 1000"},
                                .environment = {{"CRUCIBLE_TEST_MARK", "group-at-limit"}}},
                               milliseconds(200));
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_TRUE(run->timed_out);
  EXPECT_EQ(run->status.signal, SIGKILL);
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_TEST_MARK", "group-at-limit").empty());
}

TEST(Subprocess, DestructionEndsARunningChild) {
  ProcessIdentity identity;
  {
    auto child = Subprocess::Start({.argv = {"sleep", "1000"}});
    ASSERT_TRUE(child) << child.error().text;
    identity = IdentityOf(child->pid());
    EXPECT_TRUE(IsAlive(identity));
    EXPECT_TRUE(child->running());
  }
  EXPECT_FALSE(IsAlive(identity));
}

TEST(Subprocess, ChildDiesWithItsParent) {
  // A shell would not ask for it, so a small program of this library is the parent: the test
  // itself, forked.
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto child = Subprocess::Start({.argv = {"sleep", "1000"}});
    const std::string text = child ? ToText(IdentityOf(child->pid())) : "";
    (void)!::write(ends[1], text.data(), text.size());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(parent, &status, 0);
  char buffer[256] = {};
  ASSERT_GT(::read(ends[0], buffer, sizeof buffer - 1), 0);
  const ProcessIdentity child = ProcessIdentityFromText(buffer);
  ASSERT_GT(child.pid, 0);
  for (int i = 0; i < 500 && IsAlive(child); ++i) ::usleep(10'000);
  EXPECT_FALSE(IsAlive(child));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RunCaptured, EndsSoftlyWhenItIsToldTo) {
  int asked = 0;
  const auto run = RunCaptured(
      {.argv = {"sh", "-c",
                "trap 'echo ended; exit 7' TERM; echo up; while :; do sleep 0.05; done"}},
      std::chrono::minutes(1), {}, 1 << 20, [&] { return ++asked > 3; });
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_TRUE(run->stopped);
  EXPECT_FALSE(run->timed_out);
  EXPECT_EQ(run->status.code, 7);
  EXPECT_EQ(run->out, "up\nended\n");
  const auto calm =
      RunCaptured({.argv = {"true"}}, std::nullopt, {}, 1 << 20, [] { return false; });
  ASSERT_TRUE(calm);
  EXPECT_FALSE(calm->stopped);
}

TEST(ProcessIdentity, APidAloneProvesNothing) {
  ProcessIdentity own = OwnIdentity();
  EXPECT_TRUE(IsAlive(own));
  EXPECT_EQ(ProcessIdentityFromText(ToText(own)), own);
  own.start_ticks += 1;
  EXPECT_FALSE(IsAlive(own));
  EXPECT_EQ(ProcessIdentityFromText("not an identity").pid, 0);
}

TEST(ProcessIdentity, KillByEnvironmentEndsDetachedChildren) {
  const auto run = RunCaptured({.argv = {"sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"},
                                .environment = {{"CRUCIBLE_TEST_MARK", "escaped"}},
                                .die_with_parent = false});
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(KillByEnvironment("CRUCIBLE_TEST_MARK", "escaped", 2000), 1);
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_TEST_MARK", "escaped").empty());
}

}  // namespace
}  // namespace crucible
