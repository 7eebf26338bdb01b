// crucible mission add: whose mission it becomes, of which flavour, and when it is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using testing::HasSubstr;

class MissionAdd : public testing::Test {
 protected:
  void SetUp() override {
    home_ = MakeTemporaryDirectory("mission_add").value();
    store_.emplace(Store::Open(home_ / "log.sqlite").value());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(home_)); }

  // A campaign as a launch leaves it: its row and its own copies of the files.
  void AddCampaign(const std::string& name, const std::string& agent) {
    const auto folder = home_ / "campaigns" / name;
    ASSERT_TRUE(WriteFileAtomically(
        folder / "target.toml",
        "name = \"toy\"\ndescription = \"toy\"\ndevice = \"cpu\"\n"
        "[paths]\neditable = [\"kernel/\"]\n[build]\ncommands = [[\"true\"]]\n"
        "[harness]\ncommand = [\"true\"]\n[[case]]\nname = \"n32\"\nparams = { n = 32 }\n"
        "[[check]]\nlevel = \"quick\"\nparams = { n = 3 }\n"
        "[[check]]\nlevel = \"full\"\nparams = { n = 4 }\n"));
    ASSERT_TRUE(WriteFileAtomically(
        folder / "campaign.toml",
        fmt::format("name = \"{}\"\ntarget = \"target.toml\"\n[agent]\n{}", name, agent)));
    CampaignRow row;
    row.name = name;
    row.target = "toy";
    row.state = "finished";
    row.file = (folder / "campaign.toml").string();
    row.started_ms = ++started_ms_;
    ASSERT_TRUE(store_->PutCampaign(row));
  }

  Captured Add(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {std::string(CRUCIBLE_BIN_DIR) + "/crucible", "mission", "add", "--goal", "Try"});
    SubprocessSpec spec;
    spec.argv = std::move(words);
    spec.directory = home_;
    spec.environment = {{"CRUCIBLE_HOME", home_.string()}};
    auto run = RunCaptured(std::move(spec), std::chrono::minutes(1));
    EXPECT_TRUE(run) << run.error().text;
    return run ? *run : Captured{};
  }
  std::string FlavourOfTheLast() {
    const auto missions = store_->Missions("");
    return missions && !missions->empty() ? missions->back().flavour : "none";
  }

  std::filesystem::path home_;
  std::optional<Store> store_;
  std::int64_t started_ms_ = 1'000;
};

TEST_F(MissionAdd, WithoutAFlavourItIsTheCampaignsUsualOne) {
  AddCampaign("knobs", "kind = \"proposer\"\n");
  Captured run = Add({"--case", "n32"});
  EXPECT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(FlavourOfTheLast(), "proposer");
  AddCampaign("models", "kind = \"llm\"\n[[model]]\nname = \"m\"\n");
  run = Add({"--case", "n32"});
  EXPECT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(FlavourOfTheLast(), "kernel");
  EXPECT_THAT(run.out, HasSubstr("(kernel)"));
  EXPECT_THAT(run.out, HasSubstr("crucible campaign resume models")) << "nobody takes it by itself";
  run = Add({"--case", "n32", "--flavour", "scout"});
  EXPECT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(FlavourOfTheLast(), "scout");
  run = Add({"--case", "n32", "--campaign", "knobs"});
  EXPECT_EQ(FlavourOfTheLast(), "proposer") << "of the campaign that is named, not of the newest";
}

TEST_F(MissionAdd, AnswersAMachineToo) {
  AddCampaign("knobs", "kind = \"proposer\"\n");
  const Captured run = Add({"--case", "n32", "--json"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  const auto answer = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << run.out;
  EXPECT_EQ(answer["id"], store_->Missions("").value().back().id);
  EXPECT_EQ(answer["flavour"], "proposer");
  EXPECT_EQ(answer["state"], "planned");
}

TEST_F(MissionAdd, WhatNobodyCouldCarryOutIsRefused) {
  EXPECT_THAT(Add({"--case", "n32"}).err, HasSubstr("no campaign"));
  AddCampaign("models",
              "kind = \"llm\"\n[[model]]\nname = \"m\"\nflavours = [\"kernel\", \"explorer\"]\n");
  Captured run = Add({"--case", "n32", "--flavour", "scout"});
  EXPECT_FALSE(run.status.ok());
  EXPECT_THAT(run.err, HasSubstr("no [[model]] of the campaign takes it"));
  run = Add({"--case", "n33"});
  EXPECT_FALSE(run.status.ok());
  EXPECT_THAT(run.err, HasSubstr("it has n32"));
  run = Add({"--case", "n32", "--flavour", "wizard"});
  EXPECT_EQ(run.status.ShellCode(), 2) << run.err;
  EXPECT_EQ(FlavourOfTheLast(), "none") << "nothing was added";
}

}  // namespace
}  // namespace crucible
