// loop_fixture.h: a model that replies what a test wrote, tools that answer what it wrote, and a
// clock that moves when it says so.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/loop/agent_loop.h"
#include "orchestrator/agents/tools/function_tool.h"

namespace crucible {

class TestClock : public Clock {
 public:
  std::int64_t UnixMs() override { return now_ms; }
  std::int64_t MonotonicNs() override { return now_ms * 1'000'000; }
  void SleepFor(std::chrono::nanoseconds duration) override {
    now_ms += std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  }
  std::int64_t now_ms = 1'000'000;
};

class FakeProvider : public Provider {
 public:
  using Reply =
      std::function<Result<Completion>(const CompletionRequest&, const CompletionEvents&)>;

  std::string model() const override { return "fake"; }
  Result<Completion> Complete(const CompletionRequest& request,
                              const CompletionEvents& events) override {
    requests.push_back(request);
    if (replies.empty()) {
      if (!forever) return Fail(ErrorKind::kUnavailable, "ask", "fake", "no reply is left", "");
      return forever(request, events);
    }
    const Reply reply = replies.front();
    replies.pop_front();
    return reply(request, events);
  }

  std::deque<Reply> replies;
  Reply forever;
  std::vector<CompletionRequest> requests;
};

inline Completion Text(const std::string& text, StopReason stop = StopReason::kEnd) {
  Completion completion;
  if (!text.empty())
    completion.message.blocks.push_back({.kind = Block::Kind::kText, .text = text});
  completion.message.role = Role::kAssistant;
  completion.stop = stop;
  completion.usage = {.input = 100, .output = 10};
  completion.usd = 0.01;
  return completion;
}

inline void AddCall(Completion* completion, const std::string& tool, const std::string& arguments) {
  completion->message.blocks.push_back(
      {.kind = Block::Kind::kToolCall,
       .id = "id" + std::to_string(completion->message.blocks.size()),
       .name = tool,
       .arguments = arguments});
  completion->stop = StopReason::kToolUse;
}

inline Completion Calls(const std::vector<std::pair<std::string, std::string>>& calls) {
  Completion completion = Text("thinking");
  for (const auto& [tool, arguments] : calls) AddCall(&completion, tool, arguments);
  return completion;
}

inline FakeProvider::Reply Always(Completion completion) {
  return [completion](const CompletionRequest&, const CompletionEvents&) -> Result<Completion> {
    return completion;
  };
}

class LoopFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = MakeTemporaryDirectory("loop_test_").value();
    for (const char* name : {"look", "edit_file", "compare"})
      tools_.push_back(
          MakeFunctionTool({name,
                            "help",
                            {{.name = "x", .kind = Argument::Kind::kInteger, .help = "x"}},
                            [this, name](const nlohmann::json& arguments) -> Result<ToolAnswer> {
                              called_.push_back(std::string(name) + arguments.dump());
                              if (on_call_) on_call_();
                              return ToolAnswer{.text = answer_};
                            }}));
    tools_.push_back(MakeFunctionTool({"report", "help", {}, [](const nlohmann::json&) {
                                         return Result<ToolAnswer>(
                                             ToolAnswer{.text = "ends", .ends_mission = true});
                                       }}));
    spec_.provider = &provider_;
    spec_.tools = &tools_;
    spec_.system = "SYSTEM";
    spec_.mission = "MISSION";
    spec_.notes = folder_ / "notes.md";
    spec_.transcript = folder_ / "transcript.jsonl";
    spec_.spend = folder_ / "spend.json";
    spec_.clock = &clock_;
    spec_.budgets.deadline_ms = clock_.now_ms + 3'600'000;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(folder_)); }

  void Reply(Completion completion) { provider_.replies.push_back(Always(std::move(completion))); }
  LoopOutcome Run() {
    auto outcome = RunAgentLoop(spec_);
    EXPECT_TRUE(outcome) << outcome.error().text;
    return outcome ? *outcome : LoopOutcome{};
  }
  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    std::istringstream stream(ReadFile(spec_.transcript).value());
    for (std::string line; std::getline(stream, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  std::string Kinds() {
    std::string kinds;
    for (const nlohmann::json& line : Lines()) kinds += line["kind"].get<std::string>() + " ";
    return kinds;
  }
  static std::string LastText(const CompletionRequest& request) {
    return request.messages.back().blocks.back().text;
  }

  std::filesystem::path folder_;
  TestClock clock_;
  FakeProvider provider_;
  ToolSet tools_;
  LoopSpec spec_;
  std::string answer_ = "answered";
  std::function<void()> on_call_;
  std::vector<std::string> called_;
};

}  // namespace crucible
