// The broker with real callers and with hostile ones, jobs on the CPU through the real gpu_run.
#include "gpu_runner/broker.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>

#include "gpu_runner/broker_message.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class BrokerTest : public RunnerFixture {
 protected:
  void SetUp() override {
    RunnerFixture::SetUp();
    folder_ = fs::canonical(folder_);
    for (const char* name : {"w1", "w2", "elsewhere"}) fs::create_directory(folder_ / name);
    spec_.socket = folder_ / "sockets" / "m1";
    spec_.roots = {folder_ / "w1"};
    spec_.gpu_run = Program();
    spec_.environment = environment_;
    spec_.environment["CRUCIBLE_MISSION"] = "m1";
    spec_.forced_options = {"--device", "cpu"};
    spec_.peer_of = {};
  }
  void TearDown() override {
    broker_.reset();
    RunnerFixture::TearDown();
  }
  void Serve() {
    auto broker = Broker::Start(spec_);
    ASSERT_TRUE(broker) << broker.error().text;
    broker_ = std::move(*broker);
  }

  SubprocessSpec Call(std::vector<std::string> words, const fs::path& directory) {
    SubprocessSpec spec = Spec(std::move(words));
    spec.environment = {{"CRUCIBLE_BROKER", spec_.socket.string()}};
    spec.directory = directory;
    return spec;
  }
  SubprocessSpec Call(std::vector<std::string> words) {
    return Call(std::move(words), folder_ / "w1");
  }
  Captured RunCall(const SubprocessSpec& spec, std::string_view input = {}) {
    auto run = RunCaptured(spec, std::chrono::milliseconds(60'000), input);
    EXPECT_TRUE(run) << run.error().text;
    if (!run) return {};
    EXPECT_FALSE(run->timed_out);
    return *run;
  }
  // A job that has touched `up` in the worktree and then waits.
  Subprocess StartWaitingJob() {
    SubprocessSpec spec = Call({"--", "sh", "-c", "touch up; sleep 60"});
    spec.out = spec.err = Stdio::kNull;
    auto started = Subprocess::Start(spec);
    CRUCIBLE_CHECK(started.has_value(), started ? "" : started.error().text);
    EXPECT_TRUE(Appears("w1/up"));
    return std::move(*started);
  }
  // What the broker says to raw bytes, with `count` descriptors beside them; empty: it hung up.
  std::string Say(const std::string& bytes, std::size_t count = 3) {
    auto socket = ConnectToBroker(spec_.socket);
    EXPECT_TRUE(socket) << socket.error().text;
    if (!socket) return "";
    if (count == 3) {
      const std::array<int, 3> streams{0, 1, 2};
      (void)SendMessage(socket->get(), bytes, &streams);
    } else if (count == 0) {
      (void)SendMessage(socket->get(), bytes, nullptr);
    } else {
      SendMany(socket->get(), bytes, count);
    }
    auto answer = ReceiveMessage(socket->get(), nullptr);
    return answer && *answer ? **answer : "";
  }
  static void SendMany(int socket, std::string bytes, std::size_t count) {
    iovec part{bytes.data(), bytes.size()};
    std::vector<char> space(CMSG_SPACE(count * sizeof(int)));
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = space.data();
    header.msg_controllen = space.size();
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) reinterpret_cast<int*>(CMSG_DATA(item))[i] = 2;
    EXPECT_GT(::sendmsg(socket, &header, MSG_NOSIGNAL), 0);
  }
  static std::size_t OpenDescriptors() {
    std::size_t count = 0;
    for (const auto& item : fs::directory_iterator("/proc/self/fd")) count += item.exists();
    return count;
  }

  BrokerSpec spec_;
  std::unique_ptr<Broker> broker_;
};

TEST_F(BrokerTest, RunsAJobInTheCallersFolderWithItsStreams) {
  Serve();
  fs::create_directory(folder_ / "w1" / "sub");
  const Captured run =
      RunCall(Call({"--limit", "30s", "--", "sh", "-c", "cat; pwd; echo e >&2; exit 7"},
                   folder_ / "w1/sub"),
              "in\n");
  EXPECT_EQ(run.out, "in\n" + (folder_ / "w1" / "sub").string() + "\n");
  EXPECT_EQ(run.err, "e\n");
  EXPECT_EQ(run.status.ShellCode(), 7);
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(Rows().at(0).mission, "m1");
  EXPECT_EQ(Rows().at(0).device, "cpu");
  EXPECT_EQ(RunCall(Call({"--limit", "100ms", "--", "sleep", "60"})).status.ShellCode(), 124);
  EXPECT_EQ(RunCall(Call({"--", "no-such-command"})).status.ShellCode(), 127);
}

TEST_F(BrokerTest, RefusesFoldersOutsideTheWorktree) {
  Serve();
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "w1" / "link");
  fs::create_directory(folder_ / "w1x");  // begins alike
  for (const char* name : {"elsewhere", "w2", "w1/link", "w1/..", "w1x"}) {
    const Captured run = RunCall(Call({"--", "touch", "ran"}, folder_ / name));
    EXPECT_EQ(run.status.ShellCode(), 125) << name;
    EXPECT_NE(run.err.find("not in this mission's worktree"), std::string::npos) << run.err;
    EXPECT_FALSE(fs::exists(folder_ / name / "ran")) << name;
  }
  EXPECT_EQ(Rows().size(), 0u);
}

TEST_F(BrokerTest, TwoMissionsHaveTheirOwnFolders) {
  Serve();
  BrokerSpec other = spec_;
  other.socket = folder_ / "sockets2" / "m2";
  other.roots = {folder_ / "w2"};
  other.environment["CRUCIBLE_MISSION"] = "m2";
  const auto second = Broker::Start(other);
  ASSERT_TRUE(second) << second.error().text;
  const auto code = [&](const fs::path& socket, const char* folder) {
    SubprocessSpec call = Call({"--", "true"}, folder_ / folder);
    call.environment["CRUCIBLE_BROKER"] = socket.string();
    return RunCall(call).status.ShellCode();
  };
  EXPECT_EQ(code(spec_.socket, "w1"), 0);
  EXPECT_EQ(code(other.socket, "w2"), 0);
  EXPECT_EQ(code(spec_.socket, "w2"), 125);
  EXPECT_EQ(code(other.socket, "w1"), 125);
}

TEST_F(BrokerTest, RefusesOtherUsers) {
  spec_.peer_of = [](int) { return BrokerSpec::Peer{::geteuid() + 1, ::getpid()}; };
  Serve();
  const Captured run = RunCall(Call({"--", "touch", "ran"}));
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("serves user"), std::string::npos) << run.err;
  EXPECT_FALSE(Exists("w1/ran"));
}

TEST_F(BrokerTest, TheSocketIsItsOwnersAlone) {
  Serve();
  struct stat status {};
  ASSERT_EQ(::stat(spec_.socket.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(spec_.socket.parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(Broker::Start(spec_).error().kind, ErrorKind::kConflict) << "it is served already";
  BrokerSpec open = spec_;
  open.socket = folder_ / "open" / "m1";
  fs::create_directory(folder_ / "open");
  ::chmod((folder_ / "open").c_str(), 0755);
  EXPECT_EQ(Broker::Start(open).error().kind, ErrorKind::kConflict);
  broker_.reset();
  EXPECT_FALSE(fs::exists(spec_.socket));
  ASSERT_TRUE(ListenForJobs(spec_.socket)) << "leaves a dead socket";
  Serve();
  EXPECT_EQ(RunCall(Call({"--", "true"})).status.ShellCode(), 0);
}

TEST_F(BrokerTest, ServesWhereThePathIsLongerThanAnAddress) {
  spec_.socket = folder_ / std::string(150, 'f') / "m1";
  Serve();
  EXPECT_EQ(RunCall(Call({"--", "true"})).status.ShellCode(), 0);
}

TEST_F(BrokerTest, AKilledCallerTakesItsJobWithIt) {
  Serve();
  Subprocess caller = StartWaitingJob();
  EXPECT_TRUE(Folder().IsLocked());
  ::kill(caller.pid(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !Folder().IsLocked(); }));
  EXPECT_TRUE(Eventually([&] {
    const auto rows = Rows();  // its first writing is a thread's of gpu_run, perhaps still to come
    return !rows.empty() && rows[0].outcome == "cancelled";
  }));
}

TEST_F(BrokerTest, SignalsReachTheJob) {
  Serve();
  SubprocessSpec spec = Call({"--", "sh", "-c",
                              "trap 'echo asked >w; exit 3' INT; touch up; "
                              "while :; do sleep 0.02; done"});
  spec.out = spec.err = Stdio::kNull;
  auto caller = Subprocess::Start(spec);
  ASSERT_TRUE(caller);
  ASSERT_TRUE(Appears("w1/up"));
  ::kill(caller->pid(), SIGINT);
  EXPECT_EQ(caller->Wait()->ShellCode(), 3);
  EXPECT_TRUE(Exists("w1/w"));
}

TEST_F(BrokerTest, ItsEndEndsTheJobsAndTellsTheCallers) {
  Serve();
  Subprocess caller = StartWaitingJob();
  broker_.reset();
  EXPECT_NE(caller.Wait()->ShellCode(), 0);
  EXPECT_FALSE(Folder().IsLocked());
}

TEST_F(BrokerTest, NonsenseIsRefusedAndHoldsUpNobody) {
  spec_.hello_ms = 600'000;
  Serve();
  // Counted while no call is or was under way: right after one, the broker's thread may still have
  // its socket and its child's descriptor open.
  const std::size_t idle = OpenDescriptors() + 2;     // both ends of the silent connection
  const auto silent = ConnectToBroker(spec_.socket);  // says nothing, all the while
  ASSERT_TRUE(silent);
  EXPECT_EQ(RunCall(Call({"--", "true"})).status.ShellCode(), 0);
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() == idle; })) << "a call leaks";
  const std::string good = Encode(BrokerRequest{(folder_ / "w1").string(), {}, {"true"}, {}});
  const std::string version = good.substr(0, good.find('\0') + 1);
  const auto field = [](std::string text) { return text + std::string(1, '\0'); };
  const std::string place = field("C" + (folder_ / "w1").string());
  for (const std::string& bytes :
       {std::string("x"), std::string(1, '\0'), std::string(4096, '\xff'),
        good.substr(0, good.size() - 1), version, version + place,
        version + field("Crelative") + field("Atrue"), version + place + place + field("Atrue"),
        version + place + field("A"), version + place + field("") + field("Atrue"),
        version + place + field("Zx") + field("Atrue"),
        field("crucible-broker 9") + place + field("Atrue"),
        std::string(kMaxBrokerMessage + 1, 'a'), version + std::string(2 * kMaxBrokerFields, '\0')})
    EXPECT_EQ(Say(bytes).substr(0, 2), "F2") << bytes.substr(0, 60);
  for (const std::size_t count : {0, 1, 2, 4, 40})
    EXPECT_EQ(Say(good, count).substr(0, 2), "F2") << count;
  EXPECT_EQ(Say(good).substr(0, 3), "X0 ");
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() == idle; }))
      << "a refused call leaks " << OpenDescriptors() - idle;
  EXPECT_EQ(Rows().size(), 2u);
}

TEST_F(BrokerTest, ASilentCallerIsLetGo) {
  spec_.hello_ms = 50;
  spec_.max_connections = 1;
  Serve();
  const auto silent = ConnectToBroker(spec_.socket);
  ASSERT_TRUE(silent);
  const auto answer = ReceiveMessage(silent->get(), nullptr);
  ASSERT_TRUE(answer && *answer);
  EXPECT_NE((*answer)->find("none came within 50 ms"), std::string::npos) << **answer;
  EXPECT_TRUE(Eventually([&] { return RunCall(Call({"--", "true"})).status.ok(); }));
}

TEST(BrokerMessage, LastWordsAreHeardAlthoughOursWereNotRead) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  ASSERT_TRUE(SendMessage(here.get(), "never read", nullptr));
  ASSERT_TRUE(SendMessage(there.get(), "busy", nullptr));
  there.Reset();
  const auto heard = ReceiveMessage(here.get(), nullptr);
  ASSERT_TRUE(heard && *heard);
  EXPECT_EQ(**heard, "busy");
  const auto end = ReceiveMessage(here.get(), nullptr);
  ASSERT_TRUE(end);
  EXPECT_FALSE(*end);
}

TEST_F(BrokerTest, MoreCallersThanItServesAreToldSo) {
  spec_.max_connections = 1;
  Serve();
  Subprocess caller = StartWaitingJob();
  const Captured run = RunCall(Call({"--", "true"}));
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("others are being served"), std::string::npos) << run.err;
  ::kill(caller.pid(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return RunCall(Call({"--", "true"})).status.ok(); }));
}

TEST_F(BrokerTest, OnlyHarmlessVariablesCross) {
  ::setenv("TEST_API_KEY", "secret", 1);
  ::setenv("CRUCIBLE_GPU_TOKEN", "cpu:00:1:1", 1);  // as if the campaign ran in a job itself
  ::setenv("CRUCIBLE_JOB_NONCE", "00", 1);
  Serve();
  SubprocessSpec call = Call({"--", "env"});
  call.environment.insert({{"OMP_NUM_THREADS", "3"},
                           {"LD_DEBUG_OUTPUT", "x"},
                           {"PATH_X", "1"},
                           {"CRUCIBLE_GPU_TOKEN", "cpu:11:1:1"},
                           {"CRUCIBLE_HOME", "/nowhere"}});
  const std::string text = "\n" + RunCall(call).out;
  ::unsetenv("TEST_API_KEY");
  ::unsetenv("CRUCIBLE_GPU_TOKEN");
  ::unsetenv("CRUCIBLE_JOB_NONCE");
  EXPECT_NE(text.find("\nOMP_NUM_THREADS=3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nCRUCIBLE_HOME=" + environment_["CRUCIBLE_HOME"] + "\n"),
            std::string::npos);
  for (const char* word :
       {"secret", "LD_DEBUG_OUTPUT", "PATH_X", "CRUCIBLE_BROKER", "cpu:00:", "cpu:11:"})
    EXPECT_EQ(text.find(word), std::string::npos) << word << text;
}

TEST_F(BrokerTest, OptionsThatAreNotTheCallersToChooseAreRefused) {
  Serve();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--share"},
                                                {"--priority", "high"},
                                                {"--priority=high"},
                                                {"--clocks", "pin"}}) {
    std::vector<std::string> call = words;
    call.insert(call.end(), {"--", "touch", "ran"});
    const Captured run = RunCall(Call(call));
    EXPECT_EQ(run.status.ShellCode(), 125) << words[0];
    EXPECT_NE(run.err.find("broker refuses " + words[0].substr(0, words[0].find('='))),
              std::string::npos)
        << run.err;
  }
  // Options hidden behind the one that a value is expected for, and the device that is forced.
  EXPECT_EQ(RunCall(Call({"--limit", "--share", "--", "touch", "ran"})).status.ShellCode(), 2);
  EXPECT_FALSE(Exists("w1/ran"));
  EXPECT_EQ(RunCall(Call({"--device", "7", "--priority", "low", "--", "true"})).status.ShellCode(),
            0);
  EXPECT_EQ(Rows().at(0).device, "cpu");
  EXPECT_EQ(RunCall(Call({"--gpu", "7", "--", "true"})).status.ShellCode(), 0);
  EXPECT_EQ(Rows().at(0).device, "cpu");
  const Captured run = RunCall(Call({"--", "echo", std::string(kMaxBrokerMessage - 60, 'a')}));
  EXPECT_EQ(run.status.ShellCode(), 2);
  EXPECT_NE(run.err.find("is the most"), std::string::npos) << run.err.substr(0, 300);
}

TEST_F(BrokerTest, JobsGoThroughTheSandboxHook) {
  spec_.sandbox = [](SubprocessSpec job) -> Result<SubprocessSpec> {
    if (job.argv[0] == "bad")
      return Fail(ErrorKind::kUnavailable, "wrap", "bad", "no sandbox here");
    job.argv.insert(job.argv.begin(),
                    {"/usr/bin/env", "WRAPPED=" + std::to_string(job.environment.size())});
    job.environment.clear();
    return job;
  };
  Serve();
  EXPECT_EQ(RunCall(Call({"--", "sh", "-c", "test -n \"$WRAPPED\""})).status.ShellCode(), 0);
  const Captured run = RunCall(Call({"--", "bad"}));
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("no sandbox here"), std::string::npos) << run.err;
}

TEST_F(BrokerTest, ServesPeopleByTheProgram) {
  SubprocessSpec spec =
      Spec({"broker", "--socket", spec_.socket.string(), "--root", (folder_ / "w1").string(),
            "--device", "cpu", "--", Program(), "--", "sh", "-c", "pwd; exit 5"});
  spec.directory = folder_ / "w1";
  const Captured run = RunCall(spec);
  EXPECT_EQ(run.status.ShellCode(), 5) << run.err;
  EXPECT_EQ(run.out, (folder_ / "w1").string() + "\n");
  EXPECT_FALSE(fs::exists(spec_.socket));
  EXPECT_EQ(RunCall(Spec({"broker", "--root", "/tmp"})).status.ShellCode(), 2);

  spec = Spec({"broker", "--socket", spec_.socket.string(), "--root", (folder_ / "w1").string(),
               "--device", "cpu"});
  spec.err = Stdio::kNull;
  auto served = Subprocess::Start(spec);
  ASSERT_TRUE(served);
  ASSERT_TRUE(Eventually([&] { return ConnectToBroker(spec_.socket).has_value(); }));
  EXPECT_EQ(RunCall(Call({"--", "true"})).status.ShellCode(), 0);
  ::kill(served->pid(), SIGTERM);
  EXPECT_EQ(served->Wait()->ShellCode(), 0);
  const Captured gone = RunCall(Call({"--", "true"}));
  EXPECT_EQ(gone.status.ShellCode(), 125);
  EXPECT_NE(gone.err.find("reach broker"), std::string::npos) << gone.err;
}

}  // namespace
}  // namespace crucible
