// `crucible mcp` as a client starts it: the official client of the protocol works a mission with
// it.
#include "base/json.h"
#include "mission_fixture.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/agents/sandbox.h"
#include "tests/orchestrator/mcp/mcp_script.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class McpProgram : public MissionFixture {
 protected:
  void SetUp() override {
    MissionFixture::SetUp();
    Write(context_.target.file,
          "name = \"toy\"\ndescription = \"toy\"\ndevice = \"cpu\"\n"
          "[paths]\neditable = [\"kernel/\"]\nprotected = [\"kernel/fixed.h\"]\n"
          "[build]\ncommands = [[\"cp\", \"kernel/k.cc\", \"{build}/k\"]]\n"
          "[harness]\ncommand = [\"true\"]\n"
          "[[case]]\nname = \"n32\"\nparams = { n = 32 }\n"
          "[[check]]\nlevel = \"quick\"\nparams = { n = 3 }\n"
          "[[check]]\nlevel = \"full\"\nparams = { n = 4 }\n");
    const auto target = LoadTarget(context_.target.file);
    ASSERT_TRUE(target) << target.error().text;
    order().baseline.source_hash = SourceHash(*target, repo_).value();
    ASSERT_TRUE(WriteMissionOrder(order()));
    words_ = {std::string(CRUCIBLE_BIN_DIR) + "/crucible", "mcp", "--mission",
              (Folder() / "mission.json").string(), "--unsandboxed"};
  }
  std::vector<std::string> words_;
};

TEST_F(McpProgram, AMissingMissionIsNamedOnStderrAlone) {
  words_[3] = "no/such/mission.json";
  const auto run = RunCaptured({.argv = words_});
  ASSERT_TRUE(run);
  EXPECT_NE(run->status.code, 0);
  EXPECT_EQ(run->out, "");
  EXPECT_THAT(run->err, HasSubstr("no/such/mission.json"));
}

TEST_F(McpProgram, AnswersOnStdoutAndEndsWithItsInput) {
  const auto run = RunCaptured(
      {.argv = words_}, std::chrono::seconds(60),
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})"
      "\n");
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->status.ok()) << run->err;
  EXPECT_EQ(nlohmann::json::parse(run->out)["result"]["serverInfo"]["name"], "crucible");
}

// In the sandbox, as a person's editor gets it without --unsandboxed.
TEST_F(McpProgram, ADeviceIsReachedThroughTheMissionsBrokerAlone) {
  if (const auto works = SandboxWorks(); !works) GTEST_SKIP() << works.error().text;
  fs::remove(root_ / "bin/gpu_run");  // the real one: it is the queue that must know the job
  fs::copy_file(fs::path(CRUCIBLE_BIN_DIR) / "gpu_run", root_ / "bin/gpu_run");
  words_.pop_back();
  std::string server;
  for (const std::string& word : words_) server += "'" + word + "' ";
  const std::string script =
      StartsMcp(server) +
      AsksMcp("run_command", {{"command",
                               "echo broker $CRUCIBLE_BROKER; gpu_run --device any -- sh -c "
                               "'echo job $CRUCIBLE_JOB_ID; pwd'"}}) +
      AsksMcp("run_command", {{"command", "cat '" + (root_ / "state/log.sqlite").string() + "'"}}) +
      EndsMcp();
  SubprocessSpec spec{.argv = {"bash", "-c", script}};
  spec.environment = {{"CRUCIBLE_LOCK_DIR", (root_ / "locks").string()}};
  const auto run = RunCaptured(std::move(spec), std::chrono::seconds(100));
  ASSERT_TRUE(run);
  EXPECT_THAT(run->out, HasSubstr("broker /run/crucible/broker")) << run->err;
  EXPECT_THAT(run->out, HasSubstr("job ")) << run->err;
  EXPECT_THAT(run->out, HasSubstr("No such file")) << "the log is not there";
  Store store = OpenLog();
  const auto jobs = store.Jobs();
  ASSERT_TRUE(jobs && jobs->size() == 1u);
  EXPECT_EQ(jobs->front().mission, "m1") << "the queue knows whose job it was";
  int marks = 0;
  for (const auto& item : fs::directory_iterator(Folder()))
    marks += item.path().filename().string().starts_with("broker_folder");
  EXPECT_EQ(marks, 0) << "its broker's folder is gone with it";
}

// Installs the client into the build folder once; "" or why that cannot be had here.
std::string InstallClient() {
  const fs::path folder = CRUCIBLE_MCP_CLIENT;
  const fs::path source = fs::path(CRUCIBLE_SOURCE_DIR) / "tests/orchestrator/mcp/client";
  for (const char* program : {"node", "npm"})
    if (!FindExecutable(program)) return std::string(program) + " is not installed";
  for (const char* name : {"package.json", "client.mjs"}) {
    const auto text = ReadFile(source / name);
    if (!text || !WriteFileAtomically(folder / name, *text)) return "cannot copy the client";
  }
  const std::string wanted = ReadFile(folder / "package.json").value();
  if (ReadFile(folder / "installed.json").value_or("") == wanted) return "";
  SubprocessSpec spec{.argv = {"npm", "install", "--no-audit", "--no-fund", "--no-package-lock"},
                      .directory = folder};
  const auto run = RunCaptured(std::move(spec), std::chrono::seconds(200));
  if (!run) return run.error().text;
  if (run->timed_out) return "npm install took longer than 200 s";
  if (!run->status.ok()) return "npm install: " + run->err.substr(0, 300);
  return WriteFileAtomically(folder / "installed.json", wanted) ? "" : "cannot write the mark";
}

TEST_F(McpProgram, TheOfficialClientWorksAMission) {
  const std::string missing = InstallClient();
  if (!missing.empty()) GTEST_SKIP() << "the protocol's client cannot be had: " << missing;
  std::vector<std::string> argv = {"node", "client.mjs"};
  argv.insert(argv.end(), words_.begin(), words_.end());
  argv.push_back("--author");
  argv.push_back("agent:official-client");
  SubprocessSpec spec{.argv = argv, .directory = CRUCIBLE_MCP_CLIENT};
  const auto run = RunCaptured(std::move(spec), std::chrono::seconds(150));
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->status.ok() && !run->timed_out) << run->out << run->err;
  EXPECT_THAT(run->out, HasSubstr("ok\n")) << run->err;
  EXPECT_EQ(ReadMissionResult(Folder())->outcome, "candidate");
  EXPECT_THAT(Log(), HasSubstr("Raise the speed"));
  Store store = OpenLog();
  EXPECT_EQ(store.FindEntry("e1")->author, "agent:official-client");
}

}  // namespace
}  // namespace crucible
