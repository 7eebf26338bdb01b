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
      &*store_, workspace_, row_.id, true,
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
      &*store_, workspace_, row_.id, true, [] { return false; }, out, SystemClock());
  ASSERT_FALSE(attached);
  EXPECT_THAT(attached.error().text, HasSubstr("agent.log"));
  EXPECT_FALSE(Attach(
      &*store_, workspace_, "m99", true, [] { return false; }, out, SystemClock()));
}

TEST(TranscriptText, CutsALongAnswerBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "é";
  const std::string said =
      TranscriptText("{\"kind\":\"answer\",\"error\":true,\"text\":\"x" + text + "\"}");
  EXPECT_THAT(said, HasSubstr("! x"));
  EXPECT_THAT(said, HasSubstr("é … (402 bytes more)"));
}

}  // namespace
}  // namespace crucible
