// The sandbox, attacked from inside. What must fail there is first seen to work outside.
#include "orchestrator/agents/sandbox.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/process_identity.h"
#include "orchestrator/agents/sandbox_git.h"
#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

// Beside a console, which is there with a terminal.
constexpr char kHarmlessDevices[] =
    "core\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n";

class Sandbox : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    if (const auto works = SandboxWorks(); !works) GTEST_SKIP() << works.error().text;
    // As a campaign lays them out: worktrees, log and key in the repository's own state folder.
    state_ = repo_ / ".crucible";
    Write(".crucible/log.sqlite", "secret log");
    Write(".crucible/key", "secret key");
    Git({"worktree", "add", "-q", "-b", "agent/m1", (state_ / "worktrees" / "m1").string()});
    Git({"worktree", "add", "-q", "-b", "agent/m2", (state_ / "worktrees" / "m2").string()});
    spec_.worktree = state_ / "worktrees" / "m1";
    spec_.scratch = state_ / "scratch" / "m1";
    spec_.readable = {repo_};
    fs::create_directories(spec_.scratch);
    fs::create_directory(root_ / "home");
    home_ = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
    ::setenv("HOME", (root_ / "home").c_str(), 1);
    ::setenv("TEST_API_KEY", "secret variable", 1);
  }
  void TearDown() override {
    ::unsetenv("TEST_API_KEY");
    if (!home_.empty()) ::setenv("HOME", home_.c_str(), 1);
    GitFixture::TearDown();
  }

  Captured In(std::vector<std::string> argv) {
    auto spec = Sandboxed(spec_, {.argv = std::move(argv)});
    EXPECT_TRUE(spec) << spec.error().text;
    if (!spec) return {};
    auto run = RunCaptured(*spec, std::chrono::seconds(60));
    EXPECT_TRUE(run) << run.error().text;
    if (!run) return {};
    EXPECT_FALSE(run->timed_out);
    return *run;
  }
  Captured In(const std::string& script) { return In({"bash", "-c", script}); }
  Captured Outside(const std::string& script) {
    auto run = RunCaptured({.argv = {"bash", "-c", script}}, std::chrono::seconds(60));
    EXPECT_TRUE(run) << run.error().text;
    return run ? *run : Captured{};
  }
  // Works outside and not inside.
  void ExpectRefused(const std::string& script) {
    EXPECT_TRUE(Outside(script).status.ok()) << "proves nothing: " << script;
    const Captured inside = In(script);
    EXPECT_FALSE(inside.status.ok()) << script << "\n" << inside.out << inside.err;
  }
  static std::string Quoted(const fs::path& path) { return "'" + path.string() + "'"; }

  fs::path state_;
  std::string home_;
  SandboxSpec spec_;
};

TEST_F(Sandbox, BuildsAndRunsAProgramInTheWorktree) {
  ASSERT_TRUE(
      WriteFileAtomically(spec_.worktree / "a.cc",
                          "#include <cstdio>\nint main() { std::puts(\"built\"); return 3; }\n"));
  const Captured run = In("g++ -O1 a.cc -o a && ./a");
  EXPECT_EQ(run.out, "built\n") << run.err;
  EXPECT_EQ(run.status.code, 3);
  EXPECT_TRUE(fs::exists(spec_.worktree / "a"));
}

TEST_F(Sandbox, PassesInputOutputAndExitOn) {
  auto spec = Sandboxed(spec_, {.argv = {"sh", "-c", "cat; echo e >&2; kill -9 $$"}});
  ASSERT_OK(spec);
  const auto run = RunCaptured(*spec, std::chrono::seconds(60), "words");
  ASSERT_OK(run);
  EXPECT_EQ(run->out, "words");
  EXPECT_EQ(run->err, "e\n");
  EXPECT_EQ(run->status.ShellCode(), 137);
}

TEST_F(Sandbox, HomeAndTemporaryFilesAreTheScratchFolder) {
  EXPECT_EQ(In("touch \"$HOME/a\" \"$TMPDIR/b\" /tmp/c; pwd").out, spec_.worktree.string() + "\n");
  EXPECT_TRUE(fs::exists(spec_.scratch / "a"));
  EXPECT_TRUE(fs::exists(spec_.scratch / "b"));
  EXPECT_FALSE(fs::exists("/tmp/c"));
}

TEST_F(Sandbox, ReadsNoKeyLogOrOtherMission) {
  for (const fs::path& path :
       {state_ / "key", state_ / "log.sqlite", state_ / "worktrees" / "m2" / "kernel.txt",
        repo_ / ".git" / "refs" / "heads" / "agent" / "m2",
        repo_ / ".git" / "worktrees" / "m2" / "HEAD"})
    ExpectRefused("cat " + Quoted(path));
  // What the caller named is there, the rest of its folder's secrets are not.
  EXPECT_EQ(In("cat " + Quoted(repo_ / "kernel.txt")).out, "one\ntwo\nthree\n");
  ExpectRefused("ls " + Quoted(fs::path(std::getenv("HOME"))));
  EXPECT_EQ(In("grep -rl secret / --exclude-dir=proc --exclude-dir=usr --exclude-dir=sys 2>&-").out,
            "");
}

TEST_F(Sandbox, SeesNoVariableOfItsParents) {
  const std::string search = "cat /proc/*/environ | grep -az TEST_API_KEY >&2";
  ExpectRefused(search);
  ExpectRefused("test -n \"$TEST_API_KEY\"");
  spec_.inherited = {"TEST_INHERITED"};
  ::setenv("TEST_INHERITED", "two words", 1);
  EXPECT_EQ(In("echo $TEST_INHERITED $TEST_API_KEY").out, "two words\n");
  EXPECT_FALSE(In(search).status.ok());
  ::unsetenv("TEST_INHERITED");
  EXPECT_EQ(In("env | grep -c INHERITED").out, "0\n");
  spec_.inherited = {"A;touch /tmp/x"};
  EXPECT_EQ(Sandboxed(spec_, {.argv = {"true"}}).error().kind, ErrorKind::kUsage);
}

// A server on loopback that takes connections and says nothing.
class Server {
 public:
  Server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  // What a shell says to reach it.
  std::string Connect() const { return "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(port_); }

 private:
  UniqueFd socket_;
  int port_ = 0;
};

TEST_F(Sandbox, ReachesNoServerOfThisMachineAndNoNetwork) {
  const Server server;
  ExpectRefused(server.Connect());
  // Nothing but an unconnected loopback: no packet has a way out.
  EXPECT_EQ(
      In("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; tail -n +2 /proc/net/route").out,
      "lo\n");
}

TEST_F(Sandbox, SeesNoDeviceButTheHarmlessOnes) {
  EXPECT_EQ(In("ls /dev | grep -v console").out, kHarmlessDevices);
  EXPECT_EQ(In("ls -d /dev/nvidia* /dev/dri 2>&-").out, "");
  EXPECT_FALSE(In("mknod /tmp/nvidia0 c 195 0").status.ok());
}

TEST_F(Sandbox, WithTheNetworkItReachesServersAndNothingElseMore) {
  spec_.network = true;
  const Server server;
  EXPECT_TRUE(In(server.Connect()).status.ok());
  EXPECT_EQ(In("cat /etc/resolv.conf").out, ReadFile("/etc/resolv.conf").value_or(""))
      << "names are looked up";
  for (const fs::path& path :
       {state_ / "key", state_ / "log.sqlite", state_ / "worktrees" / "m2" / "kernel.txt"})
    ExpectRefused("cat " + Quoted(path));
  ExpectRefused("ls " + Quoted(fs::path(std::getenv("HOME"))));
  ExpectRefused("cat /proc/*/environ | grep -az TEST_API_KEY >&2");
  EXPECT_EQ(In("ls /dev | grep -v console").out, kHarmlessDevices);
  EXPECT_FALSE(In("mknod /tmp/nvidia0 c 195 0").status.ok());
  EXPECT_FALSE(In(": >>/etc/hosts").status.ok());
  EXPECT_FALSE(In("ip link add veth0 type veth").status.ok())
      << "the machine's network is used, not changed";
}

TEST_F(Sandbox, ProgramsStandFirstInThePath) {
  spec_.programs = CRUCIBLE_BIN_DIR;
  EXPECT_EQ(In("echo ${PATH%%:*}").out, std::string(CRUCIBLE_BIN_DIR) + "\n");
}

TEST_F(Sandbox, WritesNothingOfTheSystem) {
  for (const char* path : {"/usr/x", "/usr/bin/ls", "/etc/passwd", "/x",
                           "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/lib/x"})
    EXPECT_FALSE(In(std::string(": >>") + path).status.ok()) << path;
  EXPECT_FALSE(In(": >>" + Quoted(repo_ / "kernel.txt")).status.ok());
  EXPECT_FALSE(In("mount -t tmpfs none /tmp").status.ok());
  EXPECT_FALSE(In("unshare -Ur mount --bind /tmp /usr").status.ok());
}

TEST_F(Sandbox, WithDevicesTheSystemIsStillNotToBeWritten) {
  // CUDA writes to files of its own process; nothing else of /proc can be.
  spec_.devices = true;
  EXPECT_TRUE(In("echo 0 >/proc/self/coredump_filter").status.ok());
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/usr/x", "/x"})
    EXPECT_FALSE(In(std::string(": >>") + path).status.ok()) << path;
  EXPECT_EQ(In("find /proc/sys /proc/irq /proc/bus /proc/fs /proc/driver /sys -writable -type f "
               "2>&- | head -3")
                .out,
            "");
  ExpectRefused("cat " + Quoted(state_ / "key"));
}

TEST_F(Sandbox, NothingOutlivesTheCommand) {
  const std::string mark = "sandbox_test_" + root_.filename().string().substr(0, 40);
  spec_.environment["SANDBOX_TEST_MARK"] = mark;
  EXPECT_TRUE(
      In("setsid sleep 300 & (setsid sh -c 'trap \"\" HUP TERM; sleep 300' &); true").status.ok());
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {
    gone = ProcessesWithEnvironment("SANDBOX_TEST_MARK", mark).empty();
    if (!gone) SystemClock().SleepFor(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone) << "a daemon lives on";
}

TEST_F(Sandbox, DiesWithItsStarter) {
  spec_.environment["SANDBOX_TEST_MARK"] = "dies";
  auto spec = Sandboxed(spec_, {.argv = {"sh", "-c", "touch up; trap '' TERM; sleep 300"}});
  ASSERT_OK(spec);
  auto child = Subprocess::Start(*spec);
  ASSERT_OK(child);
  for (int i = 0; i < 3000 && !fs::exists(spec_.worktree / "up"); ++i)
    SystemClock().SleepFor(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(spec_.worktree / "up"));
  EXPECT_FALSE(ProcessesWithEnvironment("SANDBOX_TEST_MARK", "dies").empty());
  child->Signal(SIGKILL);
  ASSERT_OK(child->Wait());
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {
    gone = ProcessesWithEnvironment("SANDBOX_TEST_MARK", "dies").empty();
    if (!gone) SystemClock().SleepFor(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST_F(Sandbox, GitCanBeReadAndNotRedirected) {
  Git({"config", "remote.origin.url", "https://secret-token@localhost/x"});
  ASSERT_TRUE(AppendLine(spec_.worktree / "kernel.txt", "four"));
  const Captured status = In("git status --porcelain --branch && git diff && git log --oneline");
  EXPECT_TRUE(status.status.ok()) << status.err;
  EXPECT_NE(status.out.find("## agent/m1"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("\n M kernel.txt\n"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("\n+four\n"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find(" first\n"), std::string::npos) << status.out;
  EXPECT_EQ(In("git branch --list 'agent/m2'; git config --list | grep secret").out, "");
  EXPECT_FALSE(In("git commit -qam x").status.ok());
  EXPECT_FALSE(In("echo gitdir: /tmp >.git").status.ok());
  EXPECT_FALSE(In("rm -f .git").status.ok());
  EXPECT_FALSE(In("mv .git x").status.ok());
}

TEST_F(Sandbox, RefusesFoldersThatWouldShowTooMuch) {
  SubprocessSpec command{.argv = {"true"}};
  for (const fs::path& folder : {fs::path("/"), fs::path(std::getenv("HOME"))}) {
    SandboxSpec wide = spec_;
    wide.readable = {folder};
    EXPECT_EQ(Sandboxed(wide, command).error().kind, ErrorKind::kUsage) << folder;
    wide = spec_;
    wide.worktree = folder;
    EXPECT_EQ(Sandboxed(wide, command).error().kind, ErrorKind::kUsage) << folder;
  }
  spec_.readable = {root_ / "none"};
  EXPECT_EQ(Sandboxed(spec_, command).error().kind, ErrorKind::kNotFound);
  spec_.readable = {};
  fs::create_directory_symlink("/usr", spec_.worktree / "way out");
  command.directory = spec_.worktree / "way out";
  EXPECT_EQ(Sandboxed(spec_, command).error().kind, ErrorKind::kUsage);
}

TEST(SandboxGitConfig, KeepsCoreSettingsAndNothingElse) {
  EXPECT_EQ(ReadableGitConfig("[core]\n\tbare = false\n\tfileMode = true\n\tfsmonitor = evil\n"
                              "[remote \"origin\"]\n\turl = https://key@host\n"
                              "[include]\n\tpath = x\n[extensions]\n\tobjectFormat = sha256\n"),
            "[core]\n\tfileMode = true\n[extensions]\n\tobjectFormat = sha256\n");
}

}  // namespace
}  // namespace crucible
