// The conversation: calls in order, every end a defined state, and a transcript of it all.
#include "loop_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AgentLoop : public LoopFixture {};

TEST_F(AgentLoop, CallsAreMadeInOrderAndAnsweredInOneMessage) {
  Reply(Calls({{"look", R"({"x":1})"}, {"edit_file", R"({"x":2})"}}));
  Reply(Calls({{"report", "{}"}}));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kReported);
  EXPECT_THAT(called_, ElementsAre(R"(look{"x":1})", R"(edit_file{"x":2})"));
  ASSERT_EQ(provider_.requests.size(), 2u);
  EXPECT_EQ(provider_.requests[0].system, "SYSTEM");
  EXPECT_EQ(provider_.requests[0].tools.size(), 4u);
  EXPECT_EQ(LastText(provider_.requests[0]), "MISSION");
  const auto& messages = provider_.requests[1].messages;
  ASSERT_EQ(messages.size(), 3u);
  ASSERT_EQ(messages[2].blocks.size(), 2u);
  EXPECT_EQ(messages[2].blocks[1].kind, Block::Kind::kToolResult);
  EXPECT_EQ(messages[2].blocks[1].id, messages[1].blocks[2].id);
  EXPECT_EQ(outcome.spend.turns, 2);
  EXPECT_EQ(outcome.spend.usage.input, 200);
  EXPECT_DOUBLE_EQ(outcome.spend.usd, 0.02);
}

TEST_F(AgentLoop, TheTranscriptAndTheSpendAreWrittenAsItHappens) {
  on_call_ = [&] {
    EXPECT_EQ(Kinds(), "start user assistant call ");  // before the tool has answered
    EXPECT_EQ(json::parse(ReadFile(spec_.spend).value())["turns"], 1);
  };
  Reply(Calls({{"look", "{}"}}));
  Reply(Calls({{"report", "{}"}}));
  Run();
  EXPECT_EQ(Kinds(), "start user assistant call answer assistant call answer end ");
  const json spend = json::parse(ReadFile(spec_.spend).value());
  EXPECT_EQ(spend["turns"], 2);
  EXPECT_EQ(spend["tokens_output"], 20);
  EXPECT_EQ(spend["model"], "fake");
}

// A tool may run for minutes, and the process be killed in them.
TEST_F(AgentLoop, WhatAReplyCostIsOnDiskBeforeItsCallsAreMade) {
  std::vector<double> on_disk;
  on_call_ = [&] {
    const json spend = json::parse(ReadFile(spec_.spend).value());
    on_disk.push_back(spend["usd"]);
    EXPECT_EQ(spend["tokens_input"], 100 * on_disk.size());
  };
  for (int i = 0; i < 2; ++i) Reply(Calls({{"look", "{}"}}));
  Reply(Calls({{"report", "{}"}}));
  Run();
  ASSERT_EQ(on_disk.size(), 2u);
  EXPECT_DOUBLE_EQ(on_disk[0], 0.01);
  EXPECT_DOUBLE_EQ(on_disk[1], 0.02);
}

TEST_F(AgentLoop, MoneyThatCannotBeNotedIsNotSpentFurther) {
  provider_.replies.push_back([&](const auto&, const auto&) -> Result<Completion> {
    EXPECT_TRUE(WriteFileAtomically(folder_ / "a file", ""));
    spec_.spend = folder_ / "a file" / "spend.json";
    return Calls({{"look", "{}"}});
  });
  const auto outcome = RunAgentLoop(spec_);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().text, HasSubstr("a file"));
  EXPECT_TRUE(called_.empty());
}

TEST_F(AgentLoop, ASecretIsNeitherInTheTranscriptNorInAnAnswer) {
  spec_.secrets = {"sk-12345678"};
  answer_ = "env: KEY=sk-12345678";
  Reply(Calls({{"look", "{}"}}));
  Completion loud = Calls({{"report", "{}"}});
  loud.message.blocks[0].text = "I saw sk-12345678";
  Reply(loud);
  Run();
  EXPECT_THAT(ReadFile(spec_.transcript).value(), Not(HasSubstr("sk-12345678")));
  EXPECT_EQ(LastText(provider_.requests[1]), "env: KEY=[secret]");
}

TEST_F(AgentLoop, ThreeMalformedRepliesInARowEndIt) {
  Reply(Calls({{"look", "{\"x\":"}}));
  Reply(Calls({{"no_such_tool", "{}"}}));
  Reply(Text("I am done."));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kFormat);
  EXPECT_THAT(LastText(provider_.requests[1]), HasSubstr("not JSON"));
  EXPECT_THAT(LastText(provider_.requests[2]), HasSubstr("the tools are look, edit_file"));
  EXPECT_EQ(ResultOf(outcome).outcome, "budget");
}

TEST_F(AgentLoop, AWellFormedCallBeginsTheCountAnew) {
  for (int i = 0; i < 4; ++i) {
    Reply(Text("words only"));
    Reply(Calls({{"look", "[]"}}));
    Reply(Calls({{"look", "{}"}}));
  }
  Reply(Calls({{"report", "{}"}}));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kReported);
  EXPECT_EQ(outcome.spend.format_errors, 8);
  EXPECT_THAT(LastText(provider_.requests[1]), HasSubstr("every reply must call a tool"));
}

TEST_F(AgentLoop, AnEmptyReplyLeavesNoEmptyMessage) {
  Reply(Text(""));
  Reply(Calls({{"report", "{}"}}));
  EXPECT_EQ(Run().end, LoopEnd::kReported);
  for (const Message& message : provider_.requests[1].messages)
    EXPECT_FALSE(message.blocks.empty());
  ASSERT_EQ(provider_.requests[1].messages.size(), 1u);  // user texts stay one message
}

TEST_F(AgentLoop, TurnsWithoutProgressEndItAndProgressBeginsTheCountAnew) {
  spec_.budgets.idle_turns = 3;
  Reply(Calls({{"look", "{}"}}));
  Reply(Calls({{"look", "{}"}}));
  Reply(Calls({{"compare", "{}"}}));
  provider_.forever = Always(Calls({{"look", "{}"}}));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kIdle);
  EXPECT_EQ(outcome.spend.turns, 6);
}

TEST_F(AgentLoop, EachBudgetEndsItInItsOwnName) {
  provider_.forever = Always(Calls({{"edit_file", "{}"}}));
  const LoopBudgets none = {.deadline_ms = spec_.budgets.deadline_ms, .turns = 0};
  const auto end_of = [&](auto set) {
    spec_.budgets = none;
    set(&spec_.budgets);
    return Run().end;
  };
  EXPECT_EQ(end_of([](LoopBudgets* b) { b->turns = 4; }), LoopEnd::kTurns);
  EXPECT_EQ(end_of([](LoopBudgets* b) { b->tokens = 250; }), LoopEnd::kTokens);
  EXPECT_EQ(end_of([](LoopBudgets* b) { b->usd = 0.025; }), LoopEnd::kUsd);
  on_call_ = [this] { clock_.now_ms += 60'000; };
  EXPECT_EQ(end_of([&](LoopBudgets* b) { b->deadline_ms = clock_.now_ms + 90'000; }),
            LoopEnd::kWall);
  spec_.gpu_seconds = [this] { return static_cast<double>(called_.size()); };
  EXPECT_EQ(end_of([&](LoopBudgets* b) {
              b->deadline_ms = clock_.now_ms + 36'000'000;
              b->gpu_seconds = static_cast<double>(called_.size()) + 2;
            }),
            LoopEnd::kGpu);
}

TEST_F(AgentLoop, TheAgentIsToldWhenABudgetIsNearlyUsedUp) {
  spec_.budgets.turns = 5;
  provider_.forever = Always(Calls({{"edit_file", "{}"}}));
  Run();
  EXPECT_EQ(LastText(provider_.requests[3]), "answered");
  EXPECT_THAT(LastText(provider_.requests[4]), HasSubstr("[budget: turn 4 of 5"));
}

TEST_F(AgentLoop, WhatAFailedRequestCostIsCounted) {
  provider_.replies.push_back(
      [](const CompletionRequest&, const CompletionEvents& events) -> Result<Completion> {
        events.on_billed({.input = 1000, .output = 500}, 0.5);
        events.on_retry("529, waiting 2 s");
        return Fail(ErrorKind::kUnavailable, "ask", "fake", "overloaded", "");
      });
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kProvider);
  EXPECT_DOUBLE_EQ(outcome.spend.usd, 0.5);
  EXPECT_EQ(outcome.spend.retries, 1);
  EXPECT_THAT(outcome.detail, HasSubstr("overloaded"));
  EXPECT_THAT(Kinds(), HasSubstr("retry end"));
  ASSERT_TRUE(WriteLoopResult(folder_, outcome));
  EXPECT_FALSE(ReadMissionResult(folder_));  // the campaign sees a crash
}

TEST_F(AgentLoop, ABilledReplyIsCountedOnce) {
  provider_.replies.push_back(
      [](const CompletionRequest&, const CompletionEvents& events) -> Result<Completion> {
        const Completion completion = Calls({{"report", "{}"}});
        events.on_billed(completion.usage, completion.usd);
        return completion;
      });
  EXPECT_DOUBLE_EQ(Run().spend.usd, 0.01);
}

TEST_F(AgentLoop, AWrongKeyBlocksTheMission) {
  provider_.replies.push_back(
      [](const CompletionRequest&, const CompletionEvents&) -> Result<Completion> {
        return Fail(ErrorKind::kUsage, "ask", "fake", "401", "check the key");
      });
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kConfiguration);
  ASSERT_TRUE(WriteLoopResult(folder_, outcome));
  EXPECT_EQ(ReadMissionResult(folder_)->outcome, "blocked");
  EXPECT_THAT(ReadMissionResult(folder_)->report, HasSubstr("check the key"));
}

TEST_F(AgentLoop, ARequestNeverOutlivesTheMission) {
  spec_.budgets.deadline_ms = clock_.now_ms + 5000;
  Reply(Calls({{"report", "{}"}}));
  Run();
  EXPECT_EQ(provider_.requests[0].deadline_ms, clock_.now_ms + 5000);
}

TEST_F(AgentLoop, AnInterruptionEndsItBetweenTwoCalls) {
  spec_.interrupted = [this] { return called_.size() >= 1; };
  Reply(Calls({{"look", "{}"}, {"edit_file", "{}"}}));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kInterrupted);
  EXPECT_THAT(called_, ElementsAre("look{}"));
  EXPECT_EQ(Lines().back()["why"], "interrupted");
}

TEST_F(AgentLoop, ARefusalBlocksAndAPauseGoesOn) {
  Reply(Text("one moment", StopReason::kPaused));
  Reply(Text("I cannot help with that", StopReason::kRefused));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kRefused);
  EXPECT_EQ(provider_.requests[1].messages.back().role, Role::kAssistant);
  EXPECT_THAT(ResultOf(outcome).report, HasSubstr("I cannot help"));
}

TEST_F(AgentLoop, ACutOffCallIsAnsweredWithWhy) {
  Completion cut = Calls({{"edit_file", R"({"x": 1, "text": "begin)"}});
  cut.stop = StopReason::kMaxTokens;
  Reply(cut);
  Reply(Calls({{"report", "{}"}}));
  EXPECT_EQ(Run().end, LoopEnd::kReported);
  EXPECT_THAT(LastText(provider_.requests[1]), HasSubstr("cut off at 8192 tokens"));
}

TEST_F(AgentLoop, AFullConversationBeginsAnewFromMissionBriefAndNotes) {
  spec_.context_tokens = 20'000;
  spec_.reply_tokens = 1000;
  spec_.brief = [] { return std::string("BRIEF"); };
  answer_ = std::string(12'000, 'a');  // about 3000 tokens an answer
  on_call_ = [this] { ASSERT_TRUE(WriteFileAtomically(spec_.notes, "NOTES\n")); };
  spec_.budgets.turns = 14;
  Completion reply = Calls({{"edit_file", R"({"x":7})"}});
  reply.usage_known = false;
  provider_.forever = Always(reply);
  const LoopOutcome outcome = Run();
  EXPECT_GE(outcome.spend.restarts, 1);
  EXPECT_FALSE(outcome.spend.usage_known);
  bool warned = false, restarted = false;
  for (const CompletionRequest& request : provider_.requests) {
    std::size_t bytes = 0;
    for (const Message& message : request.messages)
      for (const Block& block : message.blocks) bytes += block.text.size();
    EXPECT_LT(bytes / 4 + 1000, 20'000u);
    warned = warned || LastText(request).find("Write now with note") != std::string::npos;
    if (request.messages.size() != 1 || LastText(request).find("NOTES") == std::string::npos)
      continue;
    restarted = true;
    EXPECT_THAT(LastText(request), HasSubstr("MISSION\nBRIEF"));
    EXPECT_THAT(LastText(request), HasSubstr("edit_file {\"x\":7} -> aaa"));
  }
  EXPECT_TRUE(warned);
  EXPECT_TRUE(restarted);
}

TEST_F(AgentLoop, AContextThatNeverFitsIsSaidAndNotTriedForEver) {
  provider_.forever = Always(Text("", StopReason::kContextFull));
  const LoopOutcome outcome = Run();
  EXPECT_EQ(outcome.end, LoopEnd::kConfiguration);
  EXPECT_EQ(provider_.requests.size(), 2u);
}

TEST_F(AgentLoop, ATranscriptThatCannotBeWrittenStopsIt) {
  spec_.transcript = folder_ / "no such folder" / "t";
  const auto outcome = RunAgentLoop(spec_);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().text, HasSubstr("no such folder"));
  EXPECT_TRUE(provider_.requests.empty());
}

}  // namespace
}  // namespace crucible
