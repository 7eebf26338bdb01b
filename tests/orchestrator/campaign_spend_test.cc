// What missions and a planner's choices cost: each once, running or ended, taken or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process_identity.h"
#include "base/subprocess.h"
#include "orchestrator/spend.h"

namespace crucible {
namespace {

using nlohmann::json;

class CampaignSpend : public testing::Test {
 protected:
  void SetUp() override {
    workspace_.home = MakeTemporaryDirectory("campaign_spend").value();
    store_.emplace(Store::Open(workspace_.LogFile()).value());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(workspace_.home)); }

  static json Used(int turns, double usd, int tokens) {
    return {{"turns", turns}, {"usd", usd}, {"tokens_input", tokens}, {"tokens_cache_read", 9999}};
  }
  MissionRow Add(const std::string& state, const json& settings = json::object()) {
    MissionRow row;
    row.campaign = "c";
    row.target = "t";
    row.flavour = "kernel";
    row.state = state;
    row.settings = settings.dump();
    row.id = store_->AddMission(row).value();
    return row;
  }
  void WriteSpend(const std::filesystem::path& folder, const json& spend) {
    ASSERT_TRUE(WriteFileAtomically(folder / "spend.json", spend.dump()));
  }
  Spend Total() { return SpendOf(&*store_, workspace_, "c").value(); }
  std::filesystem::path Question(const std::string& name) {
    return workspace_.Campaign("c") / "planner" / name;
  }
  // As the queue logs it; without an end where `ended_ms` is 0.
  void AddJob(const std::string& mission, std::int64_t started_ms, std::int64_t ended_ms,
              const std::string& outcome = "ok", const std::string& runner = "") {
    const auto run = RunCaptured(
        {.argv = {"python3", "-c",
                  "import sqlite3, sys\n"
                  "log = sqlite3.connect(sys.argv[1])\n"
                  "log.execute('CREATE TABLE IF NOT EXISTS jobs (id, device, argv, mission, '\n"
                  "            'outcome, queued_ms, started_ms, ended_ms, runner)')\n"
                  "log.execute('INSERT INTO jobs VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)',\n"
                  "            (sys.argv[3], 'cpu', '[]', sys.argv[2], sys.argv[5] or None,\n"
                  "            int(sys.argv[3]), int(sys.argv[4]) or None, sys.argv[6]))\n"
                  "log.commit()\n",
                  workspace_.LogFile().string(), mission, std::to_string(started_ms),
                  std::to_string(ended_ms), outcome, runner}},
        std::chrono::minutes(1));
    ASSERT_TRUE(run && run->status.ok()) << (run ? run->err : run.error().text);
  }

  Workspace workspace_;
  std::optional<Store> store_;
};

TEST_F(CampaignSpend, AJobWhoseEndNobodySawIsNotCharged) {
  const std::int64_t now_ms = SystemClock().UnixMs();
  AddJob("m1", now_ms - 60'000, 0, "", ToText(OwnIdentity()));
  const double running = DeviceSeconds(workspace_.LogFile(), "m1").value();
  EXPECT_GE(running, 60) << "its runner lives";
  ProcessIdentity dead = OwnIdentity();
  dead.start_ticks += 1;
  AddJob("m2", now_ms - 50'000, 0, "", ToText(dead));
  AddJob("m2", now_ms - 40'000, now_ms, "lost", ToText(dead));
  EXPECT_DOUBLE_EQ(DeviceSeconds(workspace_.LogFile(), "m2").value(), 0);
  AddJob("m2", now_ms - 30'000, now_ms - 28'000, "killed", ToText(dead));
  EXPECT_DOUBLE_EQ(DeviceSeconds(workspace_.LogFile(), "m2").value(), 2);
}

TEST_F(CampaignSpend, AMissionCountsOnceWhenItRunsAndWhenItHasEnded) {
  EXPECT_TRUE(Total().empty());
  MissionRow mission = Add("running");
  WriteSpend(workspace_.Mission(mission.id), Used(3, 0.5, 1000));
  EXPECT_EQ(Total().turns, 3);
  EXPECT_DOUBLE_EQ(Total().usd, 0.5);
  EXPECT_EQ(Total().tokens, 1000) << "without those read from the cache";
  // As the end of a mission, or a recovery after a kill, writes it; twice is the same.
  for (int i = 0; i < 2; ++i) {
    mission.state = "done";
    mission.ended_ms = 5;
    mission.spend = SpendForRow(workspace_, mission).dump();
    ASSERT_TRUE(store_->PutMission(mission));
    EXPECT_DOUBLE_EQ(Total().usd, 0.5);
    EXPECT_EQ(Total().turns, 3);
  }
  EXPECT_DOUBLE_EQ(SpendIn(SpendNow(workspace_, mission)).usd, 0.5);
}

TEST_F(CampaignSpend, APlannersChoiceCountsOnceTakenOrNot) {
  // Its process has paid and not answered yet, or the campaign was killed before it took it up.
  WriteSpend(Question("111"), Used(1, 0.25, 400));
  EXPECT_DOUBLE_EQ(Total().usd, 0.25);
  EXPECT_EQ(Total().tokens, 400);
  // Taken up by a mission: counted there.
  const MissionRow mission =
      Add("running",
          {{"planner", {{"folder", "campaigns/c/planner/111"}, {"spend", Used(1, 0.25, 400)}}}});
  EXPECT_DOUBLE_EQ(Total().usd, 0.25);
  EXPECT_EQ(Total().tokens, 400);
  WriteSpend(workspace_.Mission(mission.id), Used(2, 1.0, 1000));
  WriteSpend(Question("222"), Used(1, 0.125, 100));
  EXPECT_DOUBLE_EQ(Total().usd, 1.375);
  EXPECT_EQ(Total().tokens, 1500);
}

TEST_F(CampaignSpend, DeviceTimeIsUsedUpAtItsLimit) {
  const MissionRow mission = Add("running");
  EXPECT_EQ(DeviceTimeUsedUp(workspace_, mission.id, 5), "");
  AddJob(mission.id, 1000, 5000);
  AddJob("m99", 1000, 900'000);
  EXPECT_EQ(DeviceTimeUsedUp(workspace_, mission.id, 5), "");
  AddJob(mission.id, 6000, 8000);
  EXPECT_EQ(DeviceTimeUsedUp(workspace_, mission.id, 5), "6 of 5 s of device time are used");
  EXPECT_EQ(DeviceTimeUsedUp(workspace_, mission.id, 0), "") << "no limit";
}

TEST_F(CampaignSpend, EachBudgetOfACampaignIsNamedWhenItIsUsedUp) {
  const Spend spend{.turns = 10, .tokens = 2000, .usd = 1.5, .device_seconds = 30};
  CampaignFile file;
  EXPECT_EQ(UsedUp(file, spend), "") << "0 is no limit";
  const auto with = [](auto set) {
    CampaignFile limited;
    set(limited);
    return limited;
  };
  EXPECT_THAT(UsedUp(with([](auto& f) { f.turns = 10; }), spend), testing::HasSubstr("10 turns"));
  EXPECT_THAT(UsedUp(with([](auto& f) { f.tokens = 2000; }), spend), testing::HasSubstr("tokens"));
  EXPECT_THAT(UsedUp(with([](auto& f) { f.usd = 1.5; }), spend), testing::HasSubstr("1.5 USD"));
  EXPECT_THAT(UsedUp(with([](auto& f) { f.device_seconds = 30; }), spend),
              testing::HasSubstr("device time"));
  EXPECT_EQ(UsedUp(with([](auto& f) { f.turns = 11; }), spend), "");
}

}  // namespace
}  // namespace crucible
