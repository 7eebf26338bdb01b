// Server-sent events come out the same however their bytes were cut.
#include "orchestrator/agents/llm/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace crucible {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

// Feeds `text` in pieces of `size` bytes.
Events Parse(const std::string& text, std::size_t size) {
  SseParser parser;
  Events events;
  for (std::size_t at = 0; at < text.size(); at += size) {
    const auto fed = parser.Feed(text.substr(at, size), [&](const SseEvent& event) {
      events.emplace_back(event.name, event.data);
    });
    EXPECT_TRUE(fed) << fed.error().text;
  }
  return events;
}

TEST(Sse, EveryCutOfTheBytesGivesTheSameEvents) {
  const std::string text =
      "\xEF\xBB\xBF"
      "event: a\r\ndata: one\r\n\r\n: comment\n\ndata:two\ndata: three\n\nevent: empty\n\n"
      "data\r\revent:b\rdata:  f\xC3\xBCnf \rid: 7\r\r";
  const Events expected = {{"a", "one"}, {"", "two\nthree"}, {"", ""}, {"b", " f\xC3\xBCnf "}};
  for (std::size_t size = 1; size <= text.size(); ++size)
    EXPECT_EQ(Parse(text, size), expected) << "pieces of " << size << " bytes";
}

TEST(Sse, AnEventWithoutItsBlankLineIsNotGivenOut) {
  SseParser parser;
  int events = 0;
  const auto count = [&](const SseEvent&) { ++events; };
  ASSERT_TRUE(parser.Feed("data: half", count));
  EXPECT_TRUE(parser.mid_event());
  ASSERT_TRUE(parser.Feed("\n", count));
  EXPECT_TRUE(parser.mid_event());
  EXPECT_EQ(events, 0);
  ASSERT_TRUE(parser.Feed("\n", count));
  EXPECT_FALSE(parser.mid_event());
  EXPECT_EQ(events, 1);
}

TEST(Sse, ALineWithoutEndIsAnErrorAndNotMemory) {
  SseParser parser(1000);
  const auto ignore = [](const SseEvent&) {};
  EXPECT_TRUE(parser.Feed("data: " + std::string(900, 'x'), ignore));
  EXPECT_FALSE(parser.Feed(std::string(200, 'x'), ignore));
}

TEST(Sse, ManyDataLinesCountTogether) {
  SseParser parser(1000);
  Result<> fed;
  for (int i = 0; i < 40 && fed; ++i)
    fed = parser.Feed("data: " + std::string(100, 'x') + "\n", [](const SseEvent&) {});
  EXPECT_FALSE(fed);
}

}  // namespace
}  // namespace crucible
