// A command-line agent on a mission, in its sandbox: it reaches its tools and, where the campaign
// says so, the network; never another mission, the log, a device node or a foreign key. A shell
// script stands in for the program.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "mission_fixture.h"
#include "orchestrator/agents/agent_mission.h"
#include "orchestrator/agents/sandbox.h"
#include "tests/orchestrator/mcp/mcp_script.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CliMission : public MissionFixture {
 protected:
  void SetUp() override {
    MissionFixture::SetUp();
    if (const auto works = SandboxWorks(); !works) GTEST_SKIP() << works.error().text;
    const fs::path bin = root_ / "bin";
    fs::copy_file(fs::path(CRUCIBLE_BIN_DIR) / "crucible", bin / "crucible");
    Write(context_.target.file,
          "name = \"toy\"\ndescription = \"toy\"\ndevice = \"cpu\"\n"
          "[paths]\neditable = [\"kernel/\"]\nprotected = [\"kernel/fixed.h\"]\n"
          "[build]\ncommands = [[\"cp\", \"kernel/k.cc\", \"{build}/k\"]]\n"
          "[harness]\ncommand = [\"true\"]\n"
          "[[case]]\nname = \"n32\"\nparams = { n = 32 }\n"
          "[[check]]\nlevel = \"quick\"\nparams = { n = 3 }\n"
          "[[check]]\nlevel = \"full\"\nparams = { n = 4 }\n");
    order().baseline.source_hash =
        SourceHash(LoadTarget(context_.target.file).value(), repo_).value();
    order().agent.kind = "cli";
    order().agent.command = {(bin / "agent").string()};
    order().agent.budget.silence_ms = 100'000;
    // What it must not reach: another mission's worktree, and the log.
    Write(root_ / "state/worktrees/m2/kernel/k.cc", "int secret;\n");
    (void)OpenLog();
    ::setenv("OPENAI_API_KEY", "sk-foreign", 1);
  }
  void TearDown() override {
    ::unsetenv("OPENAI_API_KEY");
    MissionFixture::TearDown();
  }

  void Listen() {
    server_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(server_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(server_.get(), 8), 0);
    ::getsockname(server_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }

  // Tries each way out and notes which were open.
  std::string TriesEverything() {
    const std::string state = (root_ / "state").string();
    std::string script = "exec 2>&1\ncat > \"$HOME/mission\"\n";
    const auto tries = [&](const std::string& what, const std::string& words) {
      script += "if (" + words + ") >\"$HOME/out\" 2>&1; then echo 'reached: " + what +
                "'; else echo 'refused: " + what + "'; fi\n";
    };
    tries("own worktree", "cat kernel/k.cc");
    tries("other worktree", "cat '" + state + "/worktrees/m2/kernel/k.cc'");
    tries("log", "cat '" + state + "/log.sqlite'");
    tries("device node", "ls /dev/nvidia* /dev/dri");
    tries("foreign key", "env | grep sk-foreign || cat /proc/*/environ | grep -az sk-foreign");
    tries("server", "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(port_));
    return script;
  }

  // Runs the mission with `script` for an agent; what it printed, by the transcript.
  std::string Play(const std::string& script, const std::string& program = "agent") {
    Write(root_ / "bin" / program, "#!/bin/bash\n" + script);
    fs::permissions(root_ / "bin" / program, fs::perms(0755));
    Write(Folder() / "mission.md", "# Mission m1\n");
    EXPECT_TRUE(WriteMissionOrder(order()));
    const auto ended = RunAgentMission(Folder() / "mission.json", [] { return false; });
    EXPECT_TRUE(ended) << ended.error().text;
    return ReadFile(Folder() / "transcript.jsonl").value_or("");
  }

  UniqueFd server_;
  int port_ = 1;
};

TEST_F(CliMission, WithoutTheNetworkNothingOutsideIsReached) {
  Listen();
  const std::string told = Play(TriesEverything());
  EXPECT_THAT(told, HasSubstr("reached: own worktree"));
  for (const char* what : {"other worktree", "log", "device node", "foreign key", "server"})
    EXPECT_THAT(told, HasSubstr(std::string("refused: ") + what));
}

TEST_F(CliMission, WithTheNetworkServersAreReachedAndNothingElseMore) {
  Listen();
  order().agent.network = true;
  const std::string told = Play(TriesEverything());
  for (const char* what : {"own worktree", "server"})
    EXPECT_THAT(told, HasSubstr(std::string("reached: ") + what));
  for (const char* what : {"other worktree", "log", "device node", "foreign key"})
    EXPECT_THAT(told, HasSubstr(std::string("refused: ") + what));
}

TEST_F(CliMission, AProfilesKeyMayBeInTheKeyFileAndWhatItPaidIsNoted) {
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", ((root_ / "bin").string() + ":" + path).c_str(), 1);
  Write(root_ / "keys", "ANTHROPIC_API_KEY=sk-of-the-key-file\nOPENAI_API_KEY=sk-foreign\n");
  fs::permissions(root_ / "keys", fs::perms(0600));
  ::setenv("CRUCIBLE_KEY_FILE", (root_ / "keys").c_str(), 1);
  order().agent.command.clear();
  order().agent.profile = "claude";
  order().agent.network = true;
  order().agent.cli_usd = {.input = 1000};
  const std::string told = Play(
      "cat > /dev/null\n[ \"$ANTHROPIC_API_KEY\" = sk-of-the-key-file ] && echo has its key\n"
      "env | grep -q -e sk-foreign -e CRUCIBLE_KEY_FILE || echo and no other\n"
      R"(echo '{"type":"assistant","message":{"id":"a","usage":{"input_tokens":300}}}')"
      "\necho \"I have $ANTHROPIC_API_KEY\"\n"
      R"(echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1}')"
      "\n",
      "claude");
  ::unsetenv("CRUCIBLE_KEY_FILE");
  ::unsetenv("ANTHROPIC_API_KEY");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(told, HasSubstr("has its key"));
  EXPECT_THAT(told, HasSubstr("and no other"));
  EXPECT_THAT(told, HasSubstr("I have [key]"));
  EXPECT_THAT(told, Not(HasSubstr("sk-of-the-key-file")));
  const nlohmann::json spend = nlohmann::json::parse(ReadFile(Folder() / "spend.json").value());
  EXPECT_EQ(spend["tokens_input"], 300);
  EXPECT_DOUBLE_EQ(spend["usd"].get<double>(), 0.3) << "by the campaign's prices: it told no money";
}

TEST_F(CliMission, ItMeasuresLogsCommitsAndReportsByTheMissionsTools) {
  const std::string told =
      Play("cat > \"$HOME/mission\"\ngrep -q 'crucible mcp' \"$HOME/mission\" || exit 3\n" +
           StartsMcp("crucible mcp") + "sed -i 's/speed = 1/speed = 2/' kernel/k.cc\n" +
           AsksMcp("compare", {{"rule", "claim"}}) +
           AsksMcp("log_experiment", {{"mechanism", "speed"}, {"hypothesis", "faster"}}) +
           AsksMcp("commit", {{"message", "Raise the speed"}}) +
           AsksMcp("report", {{"outcome", "candidate"}, {"report", "# Faster"}}));
  EXPECT_THAT(told, HasSubstr("verdict: accepted"));
  EXPECT_THAT(Log(), HasSubstr("Raise the speed"));
  const auto result = ReadMissionResult(Folder());
  ASSERT_TRUE(result) << result.error().text << told;
  EXPECT_EQ(result->outcome, "candidate");
  Store store = OpenLog();
  const auto entry = store.FindEntry("e1");
  ASSERT_TRUE(entry) << entry.error().text;
  EXPECT_EQ(entry->author, "agent:" + order().agent.command.front());
}

TEST_F(CliMission, TheToolsKeepTheMissionsLimits) {
  order().experiments = 1;
  const std::string told = Play(
      "cat > /dev/null\n" + StartsMcp("crucible mcp") +
      "sed -i 's/speed = 1/speed = 2/' kernel/k.cc\n" + AsksMcp("compare", {{"rule", "claim"}}) +
      AsksMcp("log_experiment", {{"mechanism", "speed"}, {"hypothesis", "faster"}}) +
      "sed -i 's/speed = 2/speed = 3/' kernel/k.cc\n" + AsksMcp("compare", {{"rule", "claim"}}));
  EXPECT_THAT(told, HasSubstr("1 experiment is used up"));
}

TEST(RelayMcp, SaysWhatIsMissingOutsideASandbox) {
  const auto run = RunCaptured({.argv = {std::string(CRUCIBLE_BIN_DIR) + "/crucible", "mcp"}},
                               std::chrono::seconds(60));
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->status.ok());
  EXPECT_THAT(run->err, HasSubstr("--mission FILE"));
}

}  // namespace
}  // namespace crucible
