// What a provider makes of replies that are good, in both wire formats, streaming and not.
#include <gmock/gmock.h>

#include "base/json.h"
#include "tests/orchestrator/llm/provider_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Provides : public ProviderTest {
 protected:
  json Body(std::size_t index) { return json::parse(server->requests().at(index).body); }
  bool anthropic() const { return settings.kind == ProviderKind::kAnthropic; }
};
class ProvidesMessages : public Provides {};
class ProvidesChat : public Provides {};
INSTANTIATE_TEST_SUITE_P(Wires, Provides, kEveryWire,
                         [](const auto& info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Wires, ProvidesMessages,
                         testing::Values(Wire{ProviderKind::kAnthropic, false},
                                         Wire{ProviderKind::kAnthropic, true}),
                         [](const auto& info) { return NameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Wires, ProvidesChat,
                         testing::Values(Wire{ProviderKind::kOpenAi, false},
                                         Wire{ProviderKind::kOpenAi, true}),
                         [](const auto& info) { return NameOf(info.param); });

constexpr const char* kTextAndCalls =
    R"({"text":"Measuring n=32 with \u00e9l\u00e9gance and a long line of words.",
        "tools":[{"name":"bash","arguments":{"command":"ls -l \"a b\""}},
                 {"name":"report","arguments":{}}],
        "usage":{"input":1000,"output":200,"cache_read":5000}})";

TEST_P(Provides, TextToolCallsAndUsage) {
  Serve(kTextAndCalls);
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_EQ(reply->stop, StopReason::kToolUse);
  ASSERT_EQ(reply->message.blocks.size(), 3u);
  const auto& blocks = reply->message.blocks;
  EXPECT_EQ(blocks[0].text, "Measuring n=32 with \u00e9l\u00e9gance and a long line of words.");
  EXPECT_EQ(told, blocks[0].text);
  EXPECT_EQ(blocks[1].name, "bash");
  EXPECT_EQ(json::parse(blocks[1].arguments), json({{"command", "ls -l \"a b\""}}));
  EXPECT_EQ(blocks[2].name, "report");
  EXPECT_EQ(json::parse(blocks[2].arguments), json::object());
  EXPECT_NE(blocks[1].id, blocks[2].id);
  EXPECT_EQ(reply->usage.input, 1000);
  EXPECT_EQ(reply->usage.output, 200);
  EXPECT_EQ(reply->usage.cache_read, 5000) << "cached tokens are not billed twice";
  EXPECT_TRUE(reply->usage_known);
  EXPECT_NEAR(reply->usd, 0.003 + 0.003 + 0.0015, 1e-9);
  EXPECT_NEAR(billed_usd, reply->usd, 1e-12);
  EXPECT_EQ(reply->attempts, 1);
  EXPECT_EQ(reply->model, "scripted-1");
}

TEST_P(Provides, TheSameReplyHoweverTheBytesAreCut) {
  Serve(kTextAndCalls, R"("piece_bytes":7)");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  ASSERT_EQ(reply->message.blocks.size(), 3u);
  EXPECT_EQ(told, "Measuring n=32 with \u00e9l\u00e9gance and a long line of words.");
  EXPECT_EQ(json::parse(reply->message.blocks[1].arguments), json({{"command", "ls -l \"a b\""}}));
}

TEST_P(Provides, TheKeyInItsHeaderAndNowhereElse) {
  Serve(R"({"text":"hello"})", std::string(R"("require_key":")") + kTestKey + "\"");
  ASSERT_TRUE(Ask());
  const RecordedRequest sent = server->requests().at(0);
  if (anthropic()) {
    EXPECT_EQ(sent.headers.at("x-api-key"), kTestKey);
    EXPECT_EQ(sent.headers.at("anthropic-version"), "2023-06-01");
    EXPECT_EQ(sent.headers.count("authorization"), 0u);
  } else {
    EXPECT_EQ(sent.headers.at("authorization"), std::string("Bearer ") + kTestKey);
    EXPECT_EQ(sent.headers.count("x-api-key"), 0u);
  }
  EXPECT_EQ(sent.body.find(kTestKey), std::string::npos);
  EXPECT_EQ(sent.path.find(kTestKey), std::string::npos);
}

TEST_P(Provides, ToolResultsInTheFormatsOwnWay) {
  Serve(R"x({"tools":[{"name":"commit","arguments":{"message":"try"}}]},
           {"text":"Done with ${commit}.","captures":{"commit":"commit ([0-9a-f]{8})"}})x");
  const auto first = Ask();
  ASSERT_TRUE(first) << first.error().text;
  request.messages.push_back(first->message);
  Block result;
  result.kind = Block::Kind::kToolResult;
  result.id = first->message.blocks.at(0).id;
  result.text = "made commit 0123abcd\nbytes \xFF that are no UTF-8";
  result.is_error = true;
  request.messages.push_back({Role::kUser, {{.text = "Go on."}, result}});
  const auto second = Ask();
  ASSERT_TRUE(second) << second.error().text;
  EXPECT_EQ(second->message.blocks.at(0).text, "Done with 0123abcd.");

  const json messages = Body(1).at("messages");
  if (anthropic()) {
    const json& content = messages.back().at("content");
    EXPECT_EQ(content.at(0).at("type"), "tool_result") << "results stand before text";
    EXPECT_EQ(content.at(0).at("tool_use_id"), result.id);
    EXPECT_EQ(content.at(0).at("is_error"), true);
    EXPECT_EQ(content.at(1).at("text"), "Go on.");
    EXPECT_EQ(messages.at(1).at("content").at(0).at("input"), json({{"message", "try"}}));
  } else {
    ASSERT_EQ(messages.size(), 4u);
    EXPECT_EQ(messages.at(2).at("role"), "tool");
    EXPECT_EQ(messages.at(2).at("tool_call_id"), result.id);
    EXPECT_THAT(messages.at(2).at("content").get<std::string>(), HasSubstr("[error]"));
    EXPECT_EQ(messages.at(3).at("content"), "Go on.");
    EXPECT_EQ(messages.at(1).at("tool_calls").at(0).at("function").at("arguments"),
              R"({"message":"try"})");
  }
}

TEST_P(Provides, ToolsAndSystemInTheFormatsOwnWay) {
  Serve(R"({"text":"ok"})");
  request.system = "You are careful.";
  request.tools = {{"bash", "Runs a command.", R"({"type":"object"})"}};
  ASSERT_TRUE(Ask());
  const json body = Body(0);
  if (anthropic()) {
    EXPECT_EQ(body.at("system").at(0).at("text"), "You are careful.");
    EXPECT_EQ(body.at("tools").at(0).at("input_schema"), json({{"type", "object"}}));
    EXPECT_EQ(body.at("max_tokens"), 8192);
  } else {
    EXPECT_EQ(body.at("messages").at(0).at("role"), "system");
    EXPECT_EQ(body.at("tools").at(0).at("function").at("parameters"), json({{"type", "object"}}));
    EXPECT_EQ(body.at("max_tokens"), 8192) << "a server that is not the author's own";
  }
}

TEST_P(Provides, AToolWithoutASchemaIsRefusedBeforeAsking) {
  Serve(R"({"text":"ok"})");
  request.tools = {{"bash", "Runs a command.", "not json"}};
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUsage);
  EXPECT_TRUE(server->requests().empty());
}

TEST_P(Provides, MalformedArgumentsReachTheLoopAndTheHistoryStaysValid) {
  Serve(R"({"tools":[{"name":"bash","arguments":{"command":"ls"}}],"malformed_arguments":true},
           {"text":"again"})");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  const json parsed = json::parse(reply->message.blocks.at(0).arguments, nullptr, false);
  EXPECT_FALSE(parsed.is_object()) << reply->message.blocks.at(0).arguments;
  request.messages.push_back(reply->message);
  request.messages.push_back({Role::kUser, {{.text = "That was no JSON."}}});
  ASSERT_TRUE(Ask());
  const json sent = Body(1).at("messages").at(1);
  const json arguments =
      anthropic() ? sent.at("content").at(0).at("input")
                  : json::parse(sent["tool_calls"][0]["function"]["arguments"].get<std::string>());
  ASSERT_TRUE(arguments.is_object());
  EXPECT_TRUE(arguments.contains("malformed_arguments")) << arguments;
}

TEST_P(Provides, StopReasons) {
  Serve(R"({"text":"cut","stop":"max_tokens"},{"text":"no","stop":"refusal"},{"text":"end"})");
  for (const StopReason expected :
       {StopReason::kMaxTokens, StopReason::kRefused, StopReason::kEnd}) {
    const auto reply = Ask();
    ASSERT_TRUE(reply) << reply.error().text;
    EXPECT_EQ(reply->stop, expected);
    request.messages.push_back(reply->message);
    request.messages.push_back({Role::kUser, {{.text = "next"}}});
  }
}

TEST_P(Provides, AContextThatIsFullIsAStopReasonAndNotAnError) {
  Serve(R"({"fault":"context_full"},{"text":"fits"})");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_EQ(reply->stop, StopReason::kContextFull);
  EXPECT_TRUE(reply->message.blocks.empty());
  EXPECT_EQ(server->requests().size(), 1u);
}

TEST_P(Provides, AnEstimateWhereTheServerTellsNoUsage) {
  Serve(R"({"text":"some words","usage":false})");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_FALSE(reply->usage_known);
  EXPECT_GT(reply->usage.input, 0);
  EXPECT_GT(reply->usage.output, 0);
  EXPECT_GT(reply->usd, 0);
}

TEST_P(ProvidesMessages, AtMostFourCacheMarksInTheirPlaces) {
  Serve(R"({"text":"1"},{"text":"2"},{"text":"3"},{"text":"4"})");
  request.system = "You are careful.";
  request.tools = {{"a", "A.", "{}"}, {"b", "B.", "{}"}};
  for (int i = 0; i < 4; ++i) {
    const auto reply = Ask();
    ASSERT_TRUE(reply) << reply.error().text;
    request.messages.push_back(reply->message);
    request.messages.push_back({Role::kUser, {{.text = "one"}, {.text = "two"}}});
  }
  const std::string text = server->requests().at(3).body;
  int marks = 0;
  for (std::size_t at = 0; (at = text.find("cache_control", at)) != std::string::npos; ++at)
    ++marks;
  EXPECT_EQ(marks, 4);
  const json body = Body(3);
  EXPECT_TRUE(body["tools"][1].contains("cache_control"));
  EXPECT_FALSE(body["tools"][0].contains("cache_control"));
  EXPECT_TRUE(body["system"][0].contains("cache_control"));
  const json& messages = body["messages"];
  ASSERT_EQ(messages.size(), 7u);
  EXPECT_TRUE(messages[6]["content"][1].contains("cache_control"));
  EXPECT_FALSE(messages[6]["content"][0].contains("cache_control"));
  EXPECT_TRUE(messages[4]["content"][1].contains("cache_control")) << "what the last one wrote";
}

TEST_P(ProvidesChat, ToleratesLocalServers) {
  settings.key_variable.clear();
  Serve(R"({"tools":[{"name":"a","arguments":{"x":1}}],"usage":false},{"text":"end"})",
        R"("quirks":["no_done","no_ids","no_index"])");
  const auto first = Ask();
  ASSERT_TRUE(first) << first.error().text;
  ASSERT_EQ(first->message.blocks.size(), 1u);
  EXPECT_EQ(first->stop, StopReason::kToolUse);
  EXPECT_EQ(json::parse(first->message.blocks[0].arguments), json({{"x", 1}}));
  EXPECT_FALSE(first->message.blocks[0].id.empty());
  EXPECT_EQ(server->requests().at(0).headers.count("authorization"), 0u) << "no key, no header";
}

TEST_P(Provides, AServerThatAnswersWholeThoughAskedForAStream) {
  Serve(kTextAndCalls, R"("quirks":["no_stream"])");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_EQ(reply->attempts, 1);
  ASSERT_EQ(reply->message.blocks.size(), 3u);
  EXPECT_EQ(told, reply->message.blocks[0].text);
}

TEST_P(ProvidesChat, LearnsWhichParametersAServerKnows) {
  Serve(R"({"text":"one"},{"text":"two"})", R"("reject":["max_tokens","stream_options"])");
  const auto first = Ask();
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_EQ(clock.slept_ms, 0);
  const std::size_t asked = server->requests().size();
  EXPECT_EQ(asked, settings.stream ? 3u : 2u);
  EXPECT_TRUE(Body(asked - 1).contains("max_completion_tokens"));
  ASSERT_TRUE(Ask());
  EXPECT_EQ(server->requests().size(), asked + 1) << "learnt once";
}

TEST_P(ProvidesChat, AServerThatKnowsNeitherSpellingIsAnErrorAndNotALoop) {
  Serve(R"({"text":"one"})", R"("reject":["max_tokens","max_completion_tokens"])");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(server->requests().size(), 2u);
}

}  // namespace
}  // namespace crucible
