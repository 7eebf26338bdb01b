// How full a context is, by the server's count or, without one, by bytes.
#include "orchestrator/agents/loop/conversation.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

Completion Reply(std::int64_t tokens, int attempts = 1) {
  Completion completion;
  completion.message = {Role::kAssistant, {{.kind = Block::Kind::kText, .text = "words"}}};
  completion.usage = {.input = tokens / 2, .cache_read = tokens - tokens / 2};
  completion.attempts = attempts;
  return completion;
}

TEST(Conversation, TheServersCountIsBelievedAndWhatCameAfterIsEstimated) {
  Conversation conversation(10'000, 1000, 400);
  conversation.Restart(std::string(4000, 'm'));
  EXPECT_NEAR(static_cast<double>(conversation.Estimate()), 1100, 20);
  conversation.AddReply(Reply(5000));
  EXPECT_EQ(conversation.Estimate(), 5000);
  EXPECT_FALSE(conversation.NearlyFull());
  conversation.AddText(std::string(6000, 'x'));
  EXPECT_NEAR(static_cast<double>(conversation.Estimate()), 6500, 20);
  EXPECT_TRUE(conversation.NearlyFull());
  EXPECT_FALSE(conversation.Full());
  conversation.AddReply(Reply(8500));
  EXPECT_TRUE(conversation.Full());
}

TEST(Conversation, ACountOverSeveralAttemptsIsNotTheContext) {
  Conversation conversation(10'000, 1000, 0);
  conversation.Restart("m");
  conversation.AddReply(Reply(9900, 3));
  EXPECT_LT(conversation.Estimate(), 100);
}

TEST(Conversation, ARestartKeepsOnlyTheTaleOfTheLastCalls) {
  Conversation conversation(10'000, 1000, 0);
  conversation.Restart("m");
  conversation.AddReply(Reply(9000));
  for (int i = 0; i < 30; ++i)
    conversation.AddAnswer(
        {.kind = Block::Kind::kToolCall, .name = "t" + std::to_string(i), .arguments = "{}"},
        "first line\nsecond", false);
  conversation.Restart("again");
  EXPECT_EQ(conversation.messages().size(), 1u);
  EXPECT_LT(conversation.Estimate(), 100);
  EXPECT_EQ(conversation.LastCalls().find("t19 "), std::string::npos);
  EXPECT_NE(conversation.LastCalls().find("- t29 {} -> first line\n"), std::string::npos);
}

}  // namespace
}  // namespace crucible
