// Replies are read the same whole, in events, and as each kind of server writes them.
#include "orchestrator/agents/llm/wire.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "orchestrator/agents/llm/sse.h"
#include "tests/support/scripted_server/speak.h"

namespace crucible {
namespace {

using nlohmann::json;

Spoken Sample() {
  Spoken spoken;
  spoken.id = "m1";
  spoken.model = "model-1";
  spoken.text = "Some words, \"quoted\", with \xC3\xA9 and\na second line that is longer.";
  spoken.calls = {{"bash", R"({"command":"echo 'a' > b; true"})"}, {"report", "{}"}};
  spoken.usage = Usage{100, 20, 30, 0};
  return spoken;
}

std::string Text(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += event;
  return text;
}

WireReply Read(const WireFormat& format, const std::string& stream, std::size_t piece) {
  WireReply reply;
  SseParser parser;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    const auto fed = parser.Feed(stream.substr(at, piece), [&](const SseEvent& event) {
      std::string text;
      const auto read = format.read_event(event, &reply, &text);
      EXPECT_TRUE(read) << read.error().text;
    });
    EXPECT_TRUE(fed);
  }
  return reply;
}

// In words, so that two replies can be compared.
std::string Describe(WireReply reply) {
  json words;
  if (reply.usage)
    words["usage"] = {reply.usage->input, reply.usage->output, reply.usage->cache_read};
  const bool whole = reply.whole;
  const Message message = TakeMessage(&reply, 5);
  for (const Block& block : message.blocks)
    words["blocks"].push_back({static_cast<int>(block.kind), block.text, block.id, block.name,
                               json::parse(block.arguments, nullptr, false)});
  words["stop"] = reply.stop ? static_cast<int>(*reply.stop) : -1;
  words["whole"] = whole;
  return words.dump();
}

TEST(Wire, AStreamMeansTheSameAsAWholeBodyHoweverItIsCut) {
  const Spoken spoken = Sample();
  WireReply anthropic, openai;
  ASSERT_TRUE(AnthropicFormat().read_body(AnthropicBody(spoken), &anthropic));
  ASSERT_TRUE(OpenAiFormat().read_body(OpenAiBody(spoken, {}), &openai));
  const std::string anthropic_words = Describe(anthropic), openai_words = Describe(openai);
  EXPECT_NE(anthropic_words.find("echo 'a' > b"), std::string::npos) << anthropic_words;
  for (std::size_t piece : {1u, 2u, 3u, 5u, 8u, 13u, 64u, 100'000u}) {
    EXPECT_EQ(Describe(Read(AnthropicFormat(), Text(AnthropicEvents(spoken, {})), piece)),
              anthropic_words);
    EXPECT_EQ(Describe(Read(OpenAiFormat(), Text(OpenAiEvents(spoken, {})), piece)), openai_words);
  }
}

TEST(Wire, AnyPrefixOfAStreamIsEitherWholeOrKnownNotToBe) {
  for (const bool anthropic : {true, false}) {
    const WireFormat& format = anthropic ? AnthropicFormat() : OpenAiFormat();
    const std::string stream =
        Text(anthropic ? AnthropicEvents(Sample(), {}) : OpenAiEvents(Sample(), {}));
    for (std::size_t size = 0; size < stream.size(); ++size)
      ASSERT_FALSE(Read(format, stream.substr(0, size), 1000).whole) << size;
    EXPECT_TRUE(Read(format, stream, 1000).whole);
  }
}

TEST(Wire, ThinkingGoesBackAsItCame) {
  const std::string stream =
      R"(data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}})"
      "\n\n"
      R"(data: {"type":"content_block_start","index":0,)"
      R"("content_block":{"type":"thinking","thinking":"","signature":""}})"
      "\n\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",)"
      R"("thinking":"Hmm"}})"
      "\n\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta",)"
      R"("signature":"c2ln"}})"
      "\n\n"
      R"(data: {"type":"content_block_start","index":1,)"
      R"("content_block":{"type":"redacted_thinking","data":"eHl6"}})"
      "\n\n"
      R"(data: {"type":"content_block_start","index":2,)"
      R"("content_block":{"type":"tool_use","id":"t","name":"a","input":{}}})"
      "\n\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},)"
      R"("usage":{"output_tokens":9}})"
      "\n\n"
      "data: {\"type\":\"message_stop\"}\n\n";
  WireReply reply = Read(AnthropicFormat(), stream, 10);
  ASSERT_TRUE(reply.whole);
  CompletionRequest request;
  request.messages = {{Role::kUser, {{.text = "hi"}}}, TakeMessage(&reply, 1)};
  ASSERT_EQ(request.messages[1].blocks.size(), 3u);
  EXPECT_EQ(request.messages[1].blocks[2].arguments, "{}");
  const auto body = AnthropicFormat().request("m", true, {}, request);
  ASSERT_TRUE(body);
  const json content = json::parse(*body)["messages"][1]["content"];
  EXPECT_EQ(content[0], json({{"type", "thinking"}, {"thinking", "Hmm"}, {"signature", "c2ln"}}));
  EXPECT_EQ(content[1], json({{"type", "redacted_thinking"}, {"data", "eHl6"}}));
}

TEST(Wire, CallsThatShareAnIndexAreToldApartByTheirIds) {
  const auto chunk = [](const char* calls, const char* finish) {
    return std::string(R"(data: {"choices":[{"delta":{"tool_calls":)") + calls +
           R"(},"finish_reason":)" + finish + "}]}\n\n";
  };
  WireReply reply = Read(
      OpenAiFormat(),
      chunk(R"([{"index":0,"id":"a","function":{"name":"one","arguments":{"x":1}}}])", "null") +
          chunk(R"([{"index":0,"id":"b","function":{"name":"two","arguments":""}}])", "\"stop\""),
      1000);
  const Message message = TakeMessage(&reply, 3);
  ASSERT_EQ(message.blocks.size(), 2u);
  EXPECT_EQ(message.blocks[0].arguments, R"({"x":1})");
  EXPECT_EQ(message.blocks[1].name, "two");
  EXPECT_EQ(message.blocks[1].arguments, "{}");
  EXPECT_EQ(reply.stop, StopReason::kToolUse) << "the finish_reason said stop";
}

TEST(Wire, BodiesOfOtherServers) {
  const auto stop_of = [](const char* body) {
    WireReply reply;
    const auto read = OpenAiFormat().read_body(body, &reply);
    EXPECT_TRUE(read) << body;
    (void)TakeMessage(&reply, 1);
    return reply.stop;
  };
  EXPECT_EQ(stop_of(R"({"choices":[{"message":{"content":null},"finish_reason":"tool_calls"}]})"),
            StopReason::kEnd);
  EXPECT_EQ(stop_of(R"({"choices":[{"message":{"content":[{"type":"text","text":"a"}]},
                                    "finish_reason":"length"}],"usage":null})"),
            StopReason::kMaxTokens);
  EXPECT_EQ(stop_of(R"({"choices":[{"message":{"content":null,"refusal":"no"},
                                    "finish_reason":"stop"}]})"),
            StopReason::kRefused);
  for (const char* body : {"", "null", "[]", "{}", R"({"choices":[]})", R"({"choices":[7]})",
                           R"({"choices":[{"message":{}}]})", R"({"content":7})"}) {
    WireReply reply;
    EXPECT_FALSE(OpenAiFormat().read_body(body, &reply)) << body;
    EXPECT_FALSE(AnthropicFormat().read_body(body, &reply)) << body;
  }
}

TEST(Wire, ErrorsInEveryShape) {
  const WireError vendor = ReadWireError(
      R"({"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}})");
  EXPECT_EQ(vendor.type, "rate_limit_exceeded");
  EXPECT_EQ(vendor.message, "slow down");
  EXPECT_EQ(
      ReadWireError(R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})").type,
      "overloaded_error");
  EXPECT_EQ(ReadWireError(R"({"error":"model not found"})").message, "model not found");
  EXPECT_EQ(ReadWireError(R"({"object":"error","message":"m","code":404})").message, "m");
  EXPECT_EQ(ReadWireError(R"({"detail":"Not Found"})").message, "Not Found");
  EXPECT_EQ(ReadWireError("<html>\n502").message, "<html> 502");
  EXPECT_LE(ReadWireError(std::string(100'000, 'x')).message.size(), 400u);
  EXPECT_EQ(ReadWireError("").message, "");
}

TEST(Wire, UsageIsFoundInTextThatIsNoJson) {
  EXPECT_EQ(FindUsage(R"({"usage":{"input_tokens":7,"output_tokens":2},"content":[)")->input, 7);
  EXPECT_EQ(FindUsage("data: {\"usage\":null}\ndata: {\"usage\":{\"prompt_tokens\":9,"
                      "\"prompt_tokens_details\":{\"cached_tokens\":4}}} and more")
                ->cache_read,
            4);
  EXPECT_FALSE(FindUsage(R"("usage": {"input_tokens": 7)"));
  EXPECT_FALSE(FindUsage("no usage here"));
  EXPECT_FALSE(FindUsage(R"("usage":{"input_tokens":-3,"output_tokens":1e99})"));
}

TEST(Wire, AddressesMayEndAsPeopleWriteThem) {
  for (const char* base : {"http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"}) {
    EXPECT_EQ(AnthropicFormat().url(base), "http://h:1/v1/messages");
    EXPECT_EQ(OpenAiFormat().url(base), "http://h:1/v1/chat/completions");
  }
  EXPECT_EQ(OpenAiFormat().url("https://h/openai/v2"), "https://h/openai/v2/chat/completions");
}

}  // namespace
}  // namespace crucible
