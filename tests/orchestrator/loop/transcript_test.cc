// The transcript: whole lines, text only, no secrets.
#include "orchestrator/agents/loop/transcript.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

TEST(Transcript, SecretsAreReplacedAtEveryDepthAndShortWordsAreNot) {
  const auto folder = MakeTemporaryDirectory("transcript_").value();
  Transcript transcript(folder / "t", {"sk-secret", "abc"}, &SystemClock());
  ASSERT_TRUE(transcript.Write("call", {{"a", {{"b", {"x sk-secretsk-secret y", "abc"}}}}}));
  const auto line = nlohmann::json::parse(ReadFile(folder / "t").value());
  EXPECT_EQ(line["a"]["b"][0], "x [secret][secret] y");
  EXPECT_EQ(line["a"]["b"][1], "abc");
  EXPECT_EQ(line["kind"], "call");
  EXPECT_TRUE(RemoveTree(folder));
}

TEST(Transcript, BytesThatAreNoTextBecomeText) {
  const auto folder = MakeTemporaryDirectory("transcript_").value();
  Transcript transcript(folder / "t", {}, &SystemClock());
  ASSERT_TRUE(transcript.Write("answer", {{"text", "a\xff\n\"b"}}));
  EXPECT_EQ(nlohmann::json::parse(ReadFile(folder / "t").value())["text"], "a\xef\xbf\xbd\n\"b");
  EXPECT_TRUE(RemoveTree(folder));
}

}  // namespace
}  // namespace crucible
