#include "checks/harness/protocol_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <stdexcept>
#include <thread>

#include "base/fd.h"
#include "base/json.h"

namespace crucible {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

ProtocolServer Echo() {
  return ProtocolServer({
      {"hello",
       [](const Json&) -> Result<Json> {
         return Json{{"protocol", kHarnessProtocol}};
       }},
      {"check",
       [](const Json& request) -> Result<Json> {
         CRUCIBLE_ASSIGN(const std::uint64_t seed, SeedField(request));
         CRUCIBLE_ASSIGN(const std::int64_t n, IntegerField(request, "n", 1, 100));
         return Json{{"seed", seed}, {"n", n}};
       }},
      {"slot", [](const Json&) -> Result<Json> { throw std::runtime_error("out of paper"); }},
  });
}

Json Ask(ProtocolServer* server, const std::string& line) {
  bool bye = false;
  const std::string reply = server->Answer(line, &bye);
  EXPECT_EQ(reply.find('\n'), std::string::npos);
  EXPECT_FALSE(bye);
  return Json::parse(reply);
}

TEST(ProtocolServer, AnswersOkAndAddsIt) {
  ProtocolServer server = Echo();
  EXPECT_EQ(Ask(&server, R"({"op":"hello","protocol":1})"), (Json{{"ok", true}, {"protocol", 1}}));
}

TEST(ProtocolServer, RefusesWhatIsNoRequestAndSaysWhy) {
  ProtocolServer server = Echo();
  const std::pair<const char*, const char*> cases[] = {
      {"{\"op\":", "is not JSON"},
      {"nonsense", "is not JSON"},
      {"\xff\xfe{}", "is not JSON"},
      {"[1,2]", "no object with a string \"op\""},
      {"{}", "no object with a string \"op\""},
      {R"({"op":7})", "no object with a string \"op\""},
      {R"({"op":"dance"})", "unknown; this harness answers check, hello, slot, bye"},
      {R"({"op":"slot"})", "out of paper"},
      {R"({"op":"check"})", "\"seed\""},
      {R"({"op":"check","seed":1.5})", "\"seed\""},
      {R"({"op":"check","seed":1})", "\"n\": it is missing; want an integer from 1 to 100"},
      {R"({"op":"check","seed":1,"n":101})", "it is 101"},
      {R"({"op":"check","seed":1,"n":"4"})", "it is \"4\""},
      {R"({"op":"check","seed":1,"n":18446744073709551615})", "it is 18446744073709551615"},
      {R"({"op":"check","seed":1,"n":null})", "it is null"},
  };
  for (const auto& [line, want] : cases) {
    const Json reply = Ask(&server, line);
    EXPECT_EQ(reply["ok"], false) << line;
    EXPECT_THAT(reply["error"].get<std::string>(), HasSubstr(want)) << line;
  }
}

TEST(ProtocolServer, SeedsOfSixtyFourBitsArriveWhole) {
  ProtocolServer server = Echo();
  EXPECT_EQ(Ask(&server, R"({"op":"check","seed":18446744073709551615,"n":1})")["seed"],
            18446744073709551615ull);
}

TEST(ProtocolServer, RandomMutationsOfARequestAlwaysGetOneWellFormedReply) {
  const unsigned seed = 90210;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  ProtocolServer server = Echo();
  const std::string request = R"({"op":"check","case":{"n":[1,2,{"x":null}]},"seed":7,"n":3})";
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string line = request;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % line.size();
      switch (random() % 3) {
        case 0:
          line[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          line.erase(at, 1 + random() % 5);
          break;
        default:
          line.insert(at, 1, "{}[]\",:0-e\\"[random() % 11]);
          break;
      }
      if (line.empty()) line = "x";
    }
    bool bye = false;
    const Json reply = Json::parse(server.Answer(line, &bye));
    ASSERT_TRUE(reply["ok"].is_boolean());
    ASSERT_EQ(reply["ok"] == false, reply.contains("error"));
    accepted += reply["ok"] == true;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 5000);
}

struct Pipes {
  Pipes() {
    int a[2], b[2];
    EXPECT_EQ(::pipe(a), 0);
    EXPECT_EQ(::pipe(b), 0);
    request_read = UniqueFd(a[0]), request_write = UniqueFd(a[1]);
    reply_read = UniqueFd(b[0]), reply_write = UniqueFd(b[1]);
  }
  std::string ReadAllReplies() {
    reply_write.Reset();
    std::string text;
    char buffer[4096];
    for (ssize_t count; (count = ::read(reply_read.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(count));
    return text;
  }
  UniqueFd request_read, request_write, reply_read, reply_write;
};

TEST(ProtocolServer, ServesLinesThatArriveInPiecesUntilBye) {
  Pipes pipes;
  const std::string lines = "{\"op\":\"hello\"}\n\n{\"op\":\"bye\"}\n{\"op\":\"hello\"}\n";
  std::thread writer([&] {
    for (const char c : lines) ASSERT_EQ(::write(pipes.request_write.get(), &c, 1), 1);
  });
  ProtocolServer server = Echo();
  const auto ended = server.Serve(pipes.request_read.get(), pipes.reply_write.get());
  writer.join();
  ASSERT_TRUE(ended.has_value());
  EXPECT_TRUE(*ended);
  EXPECT_EQ(pipes.ReadAllReplies(), "{\"ok\":true,\"protocol\":1}\n{\"ok\":true}\n");
}

TEST(ProtocolServer, EndOfInputWithoutByeIsTold) {
  Pipes pipes;
  pipes.request_write.Reset();
  const auto ended = Echo().Serve(pipes.request_read.get(), pipes.reply_write.get());
  ASSERT_TRUE(ended.has_value());
  EXPECT_FALSE(*ended);
}

TEST(ProtocolServer, AnEndlessLineIsRefusedOnceAndTheNextOneServed) {
  Pipes pipes;
  std::thread writer([&] {
    const std::string block(64 << 10, 'x');
    for (int i = 0; i < 40; ++i)
      ASSERT_EQ(::write(pipes.request_write.get(), block.data(), block.size()),
                static_cast<ssize_t>(block.size()));
    const std::string rest = "\n{\"op\":\"hello\"}\n{\"op\":\"bye\"}\n";
    ASSERT_EQ(::write(pipes.request_write.get(), rest.data(), rest.size()),
              static_cast<ssize_t>(rest.size()));
  });
  ProtocolServer server = Echo();
  const auto ended = server.Serve(pipes.request_read.get(), pipes.reply_write.get());
  writer.join();
  ASSERT_TRUE(ended.has_value() && *ended);
  const std::string replies = pipes.ReadAllReplies();
  EXPECT_EQ(std::count(replies.begin(), replies.end(), '\n'), 3);
  EXPECT_THAT(replies, HasSubstr("longer than 1 MiB"));
}

TEST(HarnessDescriptors, ExplainHowToStartByHandWhenTheyAreMissing) {
  ::unsetenv("CRUCIBLE_REQUEST_FD");
  const auto missing = HarnessDescriptorsFromEnvironment();
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().text, HasSubstr("CRUCIBLE_REQUEST_FD: is not set"));
  ::setenv("CRUCIBLE_REQUEST_FD", "987", 1);
  const auto closed = HarnessDescriptorsFromEnvironment();
  ASSERT_FALSE(closed.has_value());
  EXPECT_THAT(closed.error().text, HasSubstr("no descriptor open for it"));
  ::unsetenv("CRUCIBLE_REQUEST_FD");
}

}  // namespace
}  // namespace crucible
