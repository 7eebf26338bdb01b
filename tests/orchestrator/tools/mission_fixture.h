// mission_fixture.h: a mission in a throw-away repository: real git, files and log; a judge and a
// device queue of two shell scripts, whose answers a test writes.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "orchestrator/agents/tools/function_tool.h"
#include "orchestrator/agents/tools/tool_context.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/repository.h"
#include "results_log/store.h"

namespace crucible {

class MissionFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::canonical(MakeTemporaryDirectory("mission ü ").value());
    repo_ = root_ / "repo";
    Write(repo_ / "kernel/k.cc", "int speed = 1;\nint more = 2;\n");
    Write(repo_ / "kernel/fixed.h", "int fixed;\n");
    Write(repo_ / "harness.cc", "int harness;\n");
    Git(repo_, {"init", "-q", "-b", "main"});
    Git(repo_, {"add", "-A"});
    Git(repo_, {"commit", "-q", "-m", "first"});
    MakePrograms();
    MakeTarget();
    MakeOrder();
    Judge("accepted");
  }
  void TearDown() override {
    tools_.clear();
    EXPECT_TRUE(RemoveTree(root_));
  }

  static void Write(const std::filesystem::path& file, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(file, text));
  }
  static std::string Git(const std::filesystem::path& folder, std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=T", "-c", "user.email=t@localhost"});
    SubprocessSpec spec{.argv = std::move(words), .directory = folder};
    const auto run = RunCaptured(std::move(spec));
    EXPECT_TRUE(run && run->status.ok()) << (run ? run->err : run.error().text);
    return run ? run->out : "";
  }
  std::string Log() { return Git(order().worktree, {"log", "--format=%s"}); }

  void MakePrograms() {
    const std::filesystem::path bin = root_ / "bin";
    Write(bin / "gpu_run",
          "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n");
    Write(bin / "crucible_check",
          fmt::format("#!/bin/sh\necho \"$@\" >> '{0}/calls'\n. '{0}/before'\n"
                      "cat '{0}/answer.json'\nexit $(cat '{0}/code')\n",
                      root_.string()));
    Write(root_ / "before", "");
    for (const char* name : {"gpu_run", "crucible_check"})
      std::filesystem::permissions(bin / name, std::filesystem::perms(0755));
  }

  void MakeTarget() {
    Target& target = context_.target;
    target.name = "toy";
    target.device = "cpu";
    target.file = root_ / "target.toml";
    target.editable = {"kernel/"};
    target.protected_ = {"kernel/fixed.h"};
    target.build_on_device = true;
    target.build_limit_ms = 20'000;
    target.build_commands = {
        {"sh", "-c",
         "if grep -q broken kernel/k.cc; then echo 'k.cc:1: error: broken' >&2; exit 1; fi; "
         "echo run >> \"$0\"/count; cp kernel/k.cc \"$0\"/k",
         "{build}"}};
    target.cases = {{"n32", "{}", {}, ""}, {"n64", "{}", {}, ""}};
  }

  void MakeOrder() {
    MissionOrder& order = context_.order;
    order.id = "m1";
    order.campaign = "c";
    order.flavour = "kernel";
    order.key_prefix = "c0.m1";
    order.cases = {"n32"};
    order.workspace = {root_ / "state", root_ / "bin"};
    order.target_file = context_.target.file;
    order.worktree = root_ / "state/worktrees/m1";
    order.branch = "crucible/m1";
    order.experiments = 3;
    order.deadline_ms = SystemClock().UnixMs() + 600'000;
    order.run_nonce = "nonce";
    order.now = {{"compiler", "gcc 12"}, {"device", "cpu x"}};
    std::filesystem::create_directories(order.worktree.parent_path());
    auto repository = Repository::Open(repo_, "main");
    ASSERT_TRUE(repository) << repository.error().text;
    order.base_commit = repository->MainTip().value();
    ASSERT_TRUE(repository->AddWorktree("m1", order.worktree, order.branch, order.base_commit));
    order.baseline = {"main", repo_, root_ / "base-build", repo_,
                      SourceHash(context_.target, repo_).value()};
    context_.author = "agent:toy-model";
    context_.unsandboxed = true;
  }

  // What the judge answers from now on.
  void Judge(const std::string& verdict, double ratio = 0.9) {
    const bool pass = verdict == "accepted" || verdict == "passed";
    answer_ = {{"op", "compare"},
               {"pass", pass},
               {"verdict", verdict},
               {"reason", "the reason"},
               {"conditions", {{"compiler", "gcc 12"}, {"device", "cpu x"}}},
               {"checks",
                {{{"case", "quick n=3"},
                  {"pass", true},
                  {"margins", {{"eigen", 0.5}}},
                  {"worst", {{"eigen", 2}}},
                  {"seed", 77},
                  {"reason", ""}}}},
               {"cases",
                {{{"case", "n32"},
                  {"role", "claim"},
                  {"verdict", verdict},
                  {"before_us", 100.0},
                  {"after_us", 100.0 * ratio},
                  {"ratio", ratio},
                  {"ratio_low", ratio - 0.01},
                  {"ratio_high", ratio + 0.01},
                  {"rounds", 15}}}}};
    WriteAnswer(pass ? 0 : 1);
  }
  void WriteAnswer(int code) {
    Write(root_ / "answer.json", answer_.dump());
    Write(root_ / "code", std::to_string(code));
  }
  std::string JudgeCalls() { return ReadFile(root_ / "calls").value_or(""); }

  MissionOrder& order() { return context_.order; }
  std::filesystem::path Folder() { return order().workspace.Mission("m1"); }
  Store OpenLog() { return std::move(*Store::Open(order().workspace.LogFile())); }

  ToolAnswer Call(const std::string& tool, const nlohmann::json& arguments) {
    return CallText(tool, arguments.dump());
  }
  ToolAnswer CallText(const std::string& tool, const std::string& arguments) {
    if (tools_.empty()) Remake();
    Tool* found = FindTool(tools_, tool);
    EXPECT_NE(found, nullptr) << tool;
    return found != nullptr ? found->Call(arguments) : ToolAnswer{};
  }
  // The set made again, as another process would.
  void Remake() {
    auto tools = MakeTools(context_);
    ASSERT_TRUE(tools) << tools.error().text;
    tools_ = std::move(*tools);
  }
  void Edit(const std::string& from, const std::string& to) {
    const ToolAnswer answer =
        Call("edit_file", {{"path", "kernel/k.cc"}, {"old_text", from}, {"new_text", to}});
    ASSERT_FALSE(answer.is_error) << answer.text;
  }

  std::filesystem::path root_, repo_;
  ToolContext context_;
  ToolSet tools_;
  nlohmann::json answer_;
};

// The answer is (not) an error and holds the words.
#define EXPECT_ANSWER(answer, words)                                \
  do {                                                              \
    const ToolAnswer expected_answer = (answer);                    \
    EXPECT_FALSE(expected_answer.is_error) << expected_answer.text; \
    EXPECT_THAT(expected_answer.text, ::testing::HasSubstr(words)); \
  } while (0)
#define EXPECT_REFUSED(answer, words)                               \
  do {                                                              \
    const ToolAnswer expected_answer = (answer);                    \
    EXPECT_TRUE(expected_answer.is_error) << expected_answer.text;  \
    EXPECT_THAT(expected_answer.text, ::testing::HasSubstr(words)); \
  } while (0)

}  // namespace crucible
