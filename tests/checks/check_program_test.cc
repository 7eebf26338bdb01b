// The program crucible_check: one JSON object on stdout, and the exit codes of the protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class CheckProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *MakeTemporaryDirectory("check-program-test");
    Write("t.toml",
          "name = \"fake\"\ndevice = \"cpu\"\n[paths]\neditable = [\"k/\"]\n"
          "[harness]\ncommand = [\"" CRUCIBLE_FAKE_HARNESS
          "\", \"{build}/plan\"]\n"
          "[[case]]\nname = \"small\"\n[[check]]\nparams = { n = [1, 2] }\n");
    MakeArm("main", "time_us 100\n");
    MakeArm("fast", "time_us 95\n");
    MakeArm("slow", "time_us 106\n");
    MakeArm("dead", "mode crash_slot\n");
  }
  void TearDown() override { (void)RemoveTree(folder_); }

  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / name, text));
  }
  void MakeArm(const std::string& name, const std::string& plan) {
    Write(name + "/plan", plan);
    Write(name + ".json", nlohmann::json{{"name", name},
                                         {"source", folder_.string()},
                                         {"build", (folder_ / name).string()},
                                         {"source_hash", "h"}}
                              .dump());
  }

  Captured Run(std::vector<std::string> words) {
    for (std::string& word : words)
      if (word.ends_with(".json") || word.ends_with(".toml")) word = (folder_ / word).string();
    words.insert(words.begin(), CRUCIBLE_BIN_DIR "/crucible_check");
    auto run = RunCaptured({.argv = words}, std::chrono::seconds(60));
    EXPECT_TRUE(run) << run.error().text;
    return run ? *run : Captured{};
  }

  fs::path folder_;
};

TEST_F(CheckProgram, EndsWith0AndOneJsonObjectWhenAccepted) {
  const Captured run = Run({"gate", "--target", "t.toml", "--baseline", "main.json", "--candidate",
                            "fast.json", "--claims", "small", "--seed", "5"});
  EXPECT_EQ(run.status.code, 0) << run.err;
  const nlohmann::json json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["verdict"], "accepted");
  EXPECT_EQ(json["pass"], true);
  EXPECT_EQ(json["checks"].size(), 2u);
  EXPECT_EQ(json["seed"], 5);
  EXPECT_THAT(run.err, ::testing::HasSubstr("gate: "));
}

TEST_F(CheckProgram, EndsWith1WhenTheCandidateIsSlowOrCrashes) {
  const Captured slow = Run({"compare", "--target", "t.toml", "--baseline", "main.json",
                             "--candidate", "slow.json", "--cases", "small"});
  EXPECT_EQ(slow.status.code, 1);
  EXPECT_EQ(nlohmann::json::parse(slow.out)["verdict"], "rejected");
  const Captured dead = Run({"compare", "--target", "t.toml", "--baseline", "main.json",
                             "--candidate", "dead.json", "--cases", "small"});
  EXPECT_EQ(dead.status.code, 1);
  EXPECT_EQ(nlohmann::json::parse(dead.out)["verdict"], "crashed");
}

TEST_F(CheckProgram, EndsWith2OnAUsageErrorAndSaysWhatToDo) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"guess"},
      {"check", "--target", "t.toml"},
      {"check", "--target", "none.toml", "--candidate", "fast.json"},
      {"compare", "--target", "t.toml", "--candidate", "fast.json"},
      {"compare", "--target", "t.toml", "--baseline", "main.json", "--candidate", "fast.json",
       "--cases", "huge"},
      {"check", "--target", "t.toml", "--candidate", "t.toml"},
  };
  for (const auto& words : wrong) {
    const Captured run = Run(words);
    EXPECT_EQ(run.status.code, 2) << ::testing::PrintToString(words) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err, "");
  }
}

TEST_F(CheckProgram, EndsWith3WhenTheBaselineFailsAndTheJsonSaysSo) {
  const Captured run =
      Run({"ratchet", "--target", "t.toml", "--baseline", "dead.json", "--candidate", "fast.json"});
  EXPECT_EQ(run.status.code, 3);
  EXPECT_THAT(nlohmann::json::parse(run.out)["error"].get<std::string>(),
              ::testing::HasSubstr("baseline dead"));
}

TEST_F(CheckProgram, PrintsATableForPeople) {
  const Captured run = Run(
      {"measure", "--target", "t.toml", "--candidate", "fast.json", "--no-quick-check", "--table"});
  EXPECT_EQ(run.status.code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::HasSubstr("median us"));
}

}  // namespace
}  // namespace crucible
