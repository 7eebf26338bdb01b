// run_command: bounded in time and output, leaves nothing running, and sees no secrets.
#include <signal.h>

#include <cstdlib>

#include "base/process_identity.h"
#include "mission_fixture.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CommandTool : public MissionFixture {};

TEST_F(CommandTool, RunsInTheWorktreeAndAnswersBothStreamsAndTheStatus) {
  EXPECT_ANSWER(Call("run_command", {{"command", "cat kernel/k.cc; echo error >&2"}}),
                "int more = 2;\nerror\n");
  EXPECT_ANSWER(Call("run_command", {{"command", "ls"}, {"directory", "kernel"}}), "fixed.h");
  EXPECT_REFUSED(Call("run_command", {{"command", "exit 3"}}), "[exit code 3");
  EXPECT_REFUSED(Call("run_command", {{"command", "ls"}, {"directory", "../.."}}), "outside");
}

TEST_F(CommandTool, ALongOutputIsBoundedAndTheRestIsReadable) {
  context_.limits.answer_bytes = 300;
  const ToolAnswer answer = Call("run_command", {{"command", "seq 1 5000; echo last"}});
  EXPECT_LT(answer.text.size(), 600u);
  EXPECT_THAT(answer.text, HasSubstr("last\n"));
  const auto at = answer.text.find(" more bytes in ") + 15;
  const std::string file = answer.text.substr(at, answer.text.find(" …]", at) - at);
  EXPECT_ANSWER(Call("read_file", {{"path", file}, {"offset", 2500}, {"lines", 1}}), "2500\t2500");
}

TEST_F(CommandTool, ACommandEndsAtItsLimitWithAllItStarted) {
  const ToolAnswer answer =
      Call("run_command",
           {{"command", "sleep 1000 & setsid sleep 1000 & echo started; wait"}, {"limit_s", 1}});
  EXPECT_TRUE(answer.is_error);
  EXPECT_THAT(answer.text, HasSubstr("ended at its limit of 1 s"));
  EXPECT_THAT(answer.text, HasSubstr("started"));
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_MISSION_RUN", "m1:nonce").empty());
}

TEST_F(CommandTool, WhatACommandLeavesRunningIsKilled) {
  EXPECT_ANSWER(Call("run_command", {{"command", "setsid sleep 1000 >/dev/null 2>&1 & echo ok"}}),
                "ok");
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_MISSION_RUN", "m1:nonce").empty());
}

TEST_F(CommandTool, AnEndlessOutputIsEnded) {
  context_.limits.command_bytes = 100'000;
  EXPECT_REFUSED(Call("run_command", {{"command", "yes"}}), "bytes of output");
}

TEST_F(CommandTool, AStoppedMissionEndsItsCommand) {
  context_.interrupted = [] { return true; };
  EXPECT_REFUSED(Call("run_command", {{"command", "sleep 1000"}}), "the mission is stopped");
}

TEST_F(CommandTool, SecretsAreNotInItsEnvironment) {
  ::setenv("TOY_API_KEY", "sk-very-secret", 1);
  EXPECT_THAT(Call("run_command", {{"command", "env"}}).text, Not(HasSubstr("sk-very-secret")));
  DropSecretsFromEnvironment();
  EXPECT_EQ(std::getenv("TOY_API_KEY"), nullptr);
  EXPECT_NE(std::getenv("PATH"), nullptr);
}

TEST_F(CommandTool, IsNotOfferedWithoutASandboxUnlessThatIsMeant) {
  context_.unsandboxed = false;
  Remake();
  EXPECT_EQ(FindTool(tools_, "run_command"), nullptr);
  EXPECT_NE(FindTool(tools_, "compare"), nullptr);
}

// Stands for the real sandbox: marks what went through it.
Result<SubprocessSpec> Marked(const SandboxSpec& sandbox, SubprocessSpec spec) {
  std::vector<std::string> words = {"env", "INSIDE=" + sandbox.worktree.filename().string()};
  words.insert(words.end(), spec.argv.begin(), spec.argv.end());
  spec.argv = words;
  return spec;
}

TEST_F(CommandTool, CommandsAndBuildsGoIntoSandboxesAndABuildMayWriteItsFolderOnly) {
  context_.unsandboxed = false;
  context_.sandbox = SandboxSpec{.worktree = order().worktree, .scratch = root_ / "scratch"};
  context_.enter_sandbox = Marked;
  context_.target.build_commands = {
      {"sh", "-c", "echo $INSIDE > \"$0\"/inside; cat kernel/k.cc >> \"$0\"/inside", "{build}"}};
  EXPECT_ANSWER(Call("run_command", {{"command", "echo in $INSIDE"}}), "in m1");
  EXPECT_ANSWER(Call("build", nlohmann::json::object()), "built");
  EXPECT_EQ(ReadFile(Folder() / "build-1/inside").value(),
            "build-1\nint speed = 1;\nint more = 2;\n");
}

}  // namespace
}  // namespace crucible
