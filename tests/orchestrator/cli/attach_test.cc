// Following an agent's transcript.
#include "orchestrator/cli/attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/files.h"

namespace crucible {
namespace {

using testing::HasSubstr;

class AttachTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = MakeTemporaryDirectory("attach").value();
    workspace_.home = home_;
    store_.emplace(Store::Open(workspace_.LogFile()).value());
    row_.campaign = "c";
    row_.target = "t";
    row_.flavour = "kernel";
    row_.state = "running";
    row_.id = store_->AddMission(row_).value();
    ASSERT_TRUE(MakeDirectories(workspace_.Mission(row_.id)));
  }
  void TearDown() override { (void)RemoveTree(home_); }
  void Write(const std::string& text) {
    std::ofstream(workspace_.Mission(row_.id) / "transcript.jsonl", std::ios::app) << text;
  }
  void End() {
    row_.state = "done";
    ASSERT_TRUE(store_->PutMission(row_));
  }

  std::filesystem::path home_;
  Workspace workspace_;
  std::optional<Store> store_;
  MissionRow row_;
};

TEST_F(AttachTest, PrintsARowThatWasHalfWrittenOnceItIsWhole) {
  Write("{\"kind\":\"call\",\"tool\":\"build\",\"argu");
  std::ostringstream out;
  int looks = 0;
  const auto attached = Attach(
      &*store_, workspace_, row_.id, {},
      [&] {
        if (++looks == 1) {
          EXPECT_EQ(out.str(), "");
          Write("ments\":\"{}\"}\n");
          End();
        }
        return false;
      },
      out, SystemClock());
  ASSERT_TRUE(attached) << attached.error().text;
  EXPECT_EQ(out.str(), "> build {}\n");
}

TEST_F(AttachTest, AMissionWithoutATranscriptSaysWhereToLook) {
  End();
  std::ostringstream out;
  const auto attached = Attach(
      &*store_, workspace_, row_.id, {}, [] { return false; }, out, SystemClock());
  ASSERT_FALSE(attached);
  EXPECT_THAT(attached.error().text, HasSubstr("agent.log"));
  EXPECT_FALSE(Attach(
      &*store_, workspace_, "m99", {}, [] { return false; }, out, SystemClock()));
}

TEST_F(AttachTest, GivesAProgramTheWholeRowsAsJsonLines) {
  const std::string whole = "{\"kind\":\"answer\",\"text\":\"" + std::string(2000, 'x') + "\"}\n";
  Write(whole + "no json\n");
  std::ostringstream out;
  const AttachOptions options{.follow = false, .as_json = true};
  ASSERT_TRUE(Attach(
      &*store_, workspace_, row_.id, options, [] { return false; }, out, SystemClock()));
  EXPECT_EQ(out.str(), whole + "{\"kind\":\"text\",\"text\":\"no json\"}\n");
}

TEST(TranscriptView, ShowsACommandLineAgentsWordsAndCalls) {
  TranscriptView view;
  EXPECT_EQ(view.Show(R"({"kind":"start","program":"claude","argv":["claude"]})"),
            "== claude ==\n");
  EXPECT_EQ(view.Show(R"({"kind":"out","line":{"type":"assistant","message":{"id":"a","content":[)"
                      R"({"type":"text","text":"I look first."},)"
                      R"({"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}})"),
            "I look first.\n> Bash: ls\n");
  EXPECT_EQ(view.Show(R"({"kind":"out","line":{"type":"system","subtype":"init"}})"), "");
  EXPECT_EQ(view.Show(R"({"kind":"err","line":"no such file"})"), "! no such file\n");
  EXPECT_EQ(view.Show(R"({"kind":"end","outcome":"crashed","detail":"exit code 3"})"),
            "== ended: exit code 3 ==\n");
  EXPECT_EQ(view.Show(R"({"kind":"end","outcome":"ended","detail":""})"), "== ended: ended ==\n");
}

TEST(TranscriptView, ShowsEachLineOfAnyOtherCommand) {
  TranscriptView view;
  view.Show(R"({"kind":"start","program":"/opt/mine","argv":["/opt/mine"]})");
  EXPECT_EQ(view.Show(R"({"kind":"out","line":"step 1"})"), "step 1\n");
  EXPECT_EQ(view.Show(R"({"kind":"out","line":{"step":2}})"), "{\"step\":2}\n");
}

TEST(TranscriptView, NothingThatATerminalWouldObeyIsShown) {
  const std::string said =
      TranscriptView().Show(R"({"kind":"answer","text":"a\u001b[2Jb\u009b1mc\rd\u0007é\n\tend"})");
  EXPECT_EQ(said, "< a?[2Jb?1mc?d?é\n\tend\n");
}

TEST(TranscriptView, CutsALongAnswerBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "é";
  const std::string said =
      TranscriptView().Show("{\"kind\":\"answer\",\"error\":true,\"text\":\"x" + text + "\"}");
  EXPECT_THAT(said, HasSubstr("! x"));
  EXPECT_THAT(said, HasSubstr("é … (402 bytes more)"));
}

}  // namespace
}  // namespace crucible
