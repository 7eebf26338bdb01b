// What a provider makes of a server that fails: every fault over real HTTP.
#include <gmock/gmock.h>

#include <thread>

#include "tests/orchestrator/llm/provider_fixture.h"

namespace crucible {
namespace {

using testing::HasSubstr;

class Faults : public ProviderTest {};
INSTANTIATE_TEST_SUITE_P(Wires, Faults, kEveryWire,
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(Faults, AsksAgainWhereThatHelps) {
  for (const int status : {408, 409, 424, 429, 500, 503, 504, 529}) {
    Serve(R"({"fault":)" + std::to_string(status) + R"(},{"text":"good"})");
    clock.slept_ms = 0;
    retries.clear();
    const auto reply = Ask();
    ASSERT_TRUE(reply) << status << ": " << reply.error().text;
    EXPECT_EQ(reply->attempts, 2) << status;
    EXPECT_GE(clock.slept_ms, retry.first_wait_ms / 2) << status;
    EXPECT_LE(clock.slept_ms, retry.first_wait_ms + 1) << status;
    ASSERT_EQ(retries.size(), 1u);
    EXPECT_THAT(retries[0], HasSubstr(std::to_string(status)));
    EXPECT_EQ(billed.size(), 1u) << "a refusal costs nothing";
    billed.clear();
  }
}

TEST_P(Faults, DoesNotAskAgainWhereItDoesNotHelp) {
  for (const int status : {400, 401, 402, 403, 404, 422}) {
    Serve(R"({"fault":)" + std::to_string(status) + R"(},{"text":"never"})");
    const auto reply = Ask();
    ASSERT_FALSE(reply) << status;
    EXPECT_EQ(reply.error().kind, ErrorKind::kUsage) << reply.error().text;
    EXPECT_THAT(reply.error().text, HasSubstr(std::to_string(status)));
    EXPECT_EQ(server->requests().size(), 1u);
  }
  EXPECT_EQ(clock.slept_ms, 0);
}

TEST_P(Faults, SaysWhichVariableHoldsAWrongKey) {
  Serve(R"({"text":"never"})", R"("require_key":"another key")");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().text, HasSubstr("CRUCIBLE_TEST_KEY"));
  EXPECT_THAT(reply.error().text, HasSubstr("scripted-1"));
}

TEST_P(Faults, AKeyThatTheServerRepeatsIsScrubbed) {
  Serve(R"({"fault":400,"message":"what is ${key}?"})");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().text, HasSubstr("what is [key]?"));
}

TEST_P(Faults, WaitsAsLongAsTheServerAsks) {
  const auto waited = [&](const std::string& fields) {
    Serve(R"({"fault":429,)" + fields + R"(},{"text":"good"})");
    clock.slept_ms = 0;
    const auto reply = Ask();
    EXPECT_TRUE(reply) << reply.error().text;
    return clock.slept_ms;
  };
  EXPECT_EQ(waited(R"("retry_after":"7")"), 7000);
  EXPECT_EQ(waited(R"("retry_after_ms":"1250","retry_after":"7")"), 1250);
  EXPECT_EQ(waited(R"("retry_after":"3600")"), 60'000) << "believed up to a minute";
  clock.unix_ms = 1'445'412'470'000;  // ten seconds before the date
  request.deadline_ms = clock.unix_ms + 3'600'000;
  EXPECT_EQ(waited(R"("retry_after":"Wed, 21 Oct 2015 07:28:00 GMT")"), 10'000);
}

TEST_P(Faults, NoQuotaIsFatalThoughItLooksLikeARateLimit) {
  Serve(R"({"fault":"insufficient_quota"},{"text":"never"})");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(reply.error().text, HasSubstr("insufficient_quota"));
  EXPECT_EQ(server->requests().size(), 1u);
}

TEST_P(Faults, GivesUpAfterTheLastAttempt) {
  Serve(R"({"fault":529,"times":1000},{"text":"never"})");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(server->requests().size(), static_cast<std::size_t>(retry.max_attempts));
  EXPECT_LE(clock.slept_ms, retry.max_attempts * retry.max_wait_ms);
}

TEST_P(Faults, DoesNotWaitForADeadlineThatComesFirst) {
  Serve(R"({"fault":429,"retry_after":"30"},{"text":"never"})");
  request.deadline_ms = clock.unix_ms + 20'000;
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kTimeout);
  EXPECT_EQ(clock.slept_ms, 0);
}

TEST_P(Faults, ADroppedReplyIsAskedForAgainAndPaidFor) {
  Serve(R"({"fault":"drop"},{"text":"good","usage":{"input":10,"output":2}})");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_EQ(reply->message.blocks.at(0).text, "good");
  EXPECT_EQ(reply->attempts, 2);
  ASSERT_EQ(billed.size(), 2u);
  EXPECT_GT(billed[0].input, 0);
  EXPECT_EQ(reply->usage.input, billed[0].input + 10);
  EXPECT_NEAR(reply->usd, billed_usd, 1e-12);
}

TEST_P(Faults, DroppedRepliesAreBoundedMoreTightlyThanRefusals) {
  Serve(R"({"fault":"drop","times":1000},{"text":"never"})");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(server->requests().size(), static_cast<std::size_t>(retry.max_unusable));
  EXPECT_EQ(billed.size(), static_cast<std::size_t>(retry.max_unusable));
}

TEST_P(Faults, RepliesThatMakeNoSenseAreAskedForAgain) {
  for (const char* fault : {"not_json", "cut_json", "empty"}) {
    Serve(std::string(R"({"fault":")") + fault + R"("},{"text":"good"})");
    const auto reply = Ask();
    ASSERT_TRUE(reply) << fault << ": " << reply.error().text;
    EXPECT_EQ(reply->attempts, 2) << fault;
    EXPECT_EQ(reply->message.blocks.at(0).text, "good");
  }
}

TEST_P(Faults, CountsWhatAnUnreadableReplyCost) {
  Serve(R"({"fault":"cut_json"},{"text":"good","usage":{"input":10,"output":2}})");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().text;
  ASSERT_EQ(billed.size(), 2u);
  if (!settings.stream) {
    EXPECT_EQ(billed[0].input, 100);
    EXPECT_EQ(billed[0].output, 50);
    EXPECT_TRUE(reply->usage_known);
  }
  EXPECT_EQ(reply->usage.input, billed[0].input + billed[1].input);
}

TEST_P(Faults, AnErrorWithinAStreamIsJudgedLikeAStatus) {
  Serve(R"({"fault":"error_event"},{"text":"good"})");
  const auto again = Ask();
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->attempts, 2);
  if (!settings.stream) return;
  Serve(R"({"fault":"error_event","error_type":"invalid_request_error"},{"text":"never"})");
  const auto fatal = Ask();
  ASSERT_FALSE(fatal);
  EXPECT_EQ(fatal.error().kind, ErrorKind::kUsage);
}

TEST_P(Faults, AnErrorWithStatus200IsAnError) {
  Serve(R"({"fault":200,"error_type":"invalid_request_error","message":"no such tool"})");
  const auto fatal = Ask();
  ASSERT_FALSE(fatal);
  EXPECT_EQ(fatal.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(fatal.error().text, HasSubstr("no such tool"));
  Serve(R"({"fault":200,"error_type":"overloaded_error"},{"text":"good"})");
  const auto again = Ask();
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(again->attempts, 2);
}

TEST_P(Faults, SilenceEndsAnAttempt) {
  for (const char* fault : {"hang", "silent"}) {
    Serve(std::string(R"({"fault":")") + fault + R"("},{"text":"good"})");
    if (settings.stream)
      settings.idle_timeout_ms = 150;
    else
      settings.attempt_timeout_ms = 300;
    const auto reply = Ask();
    ASSERT_TRUE(reply) << fault << ": " << reply.error().text;
    EXPECT_GE(reply->attempts, 2) << fault;
  }
}

TEST_P(Faults, TheDeadlineHoldsOverASilentServer) {
  Serve(R"({"fault":"silent"})");
  real_clock = true;
  request.deadline_ms = SystemClock().UnixMs() + 300;
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kTimeout) << reply.error().text;
}

TEST_P(Faults, AStopRequestEndsARequestThatHangs) {
  Serve(R"({"fault":"hang"})");
  settings.idle_timeout_ms = 0;
  std::stop_source source;
  request.stop = source.get_token();
  std::jthread stopper([&] {
    while (server->requests().empty()) std::this_thread::yield();
    source.request_stop();
  });
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kInterrupted);
}

TEST_P(Faults, AStopRequestEndsAWait) {
  Serve(R"({"fault":429,"retry_after":"60"},{"text":"never"})");
  std::stop_source source;
  request.stop = source.get_token();
  clock.on_sleep = [&] { source.request_stop(); };
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kInterrupted);
  EXPECT_LT(clock.slept_ms, 1000);
}

TEST_P(Faults, ARedirectIsNotFollowedWithTheKey) {
  Serve(R"({"fault":"status","status":307,"headers":{"location":"/requests"}},{"text":"never"})");
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(reply.error().text, HasSubstr("307"));
  EXPECT_EQ(server->requests().size(), 1u);
}

TEST_P(Faults, NobodyListens) {
  Serve(R"({"text":"never"})");
  server.reset();
  const auto reply = Ask();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::kUnavailable) << reply.error().text;
  EXPECT_EQ(retries.size(), static_cast<std::size_t>(retry.max_attempts - 1));
}

TEST_P(Faults, AnAddressThatIsNoneIsTheUsersMistake) {
  for (const char* address : {"not a url", "ftp://127.0.0.1", "file:///etc/passwd"}) {
    settings.base_url = address;
    provider.reset();
    const auto reply = Ask();
    ASSERT_FALSE(reply) << address;
    EXPECT_EQ(reply.error().kind, ErrorKind::kUsage) << reply.error().text;
  }
}

}  // namespace
}  // namespace crucible
