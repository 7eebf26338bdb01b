// The log on disk: what is written stays, once, whoever writes and whenever they die.
#include "results_log/store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <future>

#include "base/files.h"
#include "base/json.h"
#include "results_log/case_text.h"
#include "results_log/conditions.h"

namespace crucible {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { root_ = MakeTemporaryDirectory("store_test").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }
  std::filesystem::path File() const { return root_ / "log.sqlite"; }
  Store OpenLog() { return Store::Open(File()).value(); }

  static Entry Example(const std::string& key) {
    Entry entry;
    entry.key = key;
    entry.kind = EntryKind::kLoss;
    entry.time_ms = 1'700'000'000'000;
    entry.target = "eigh_cpu";
    entry.campaign = "demo";
    entry.mission = "m1";
    entry.author = "proposer";
    entry.mechanism = "panel width";
    entry.hypothesis = "fewer passes";
    entry.summary = "slower — ünïcode 漢字";
    entry.change = R"({"knobs":{"panel":[1,8]}})";
    entry.cases = {{"n32", "claim", "rejected", 10.5, 11.25, 1.0714, 1.06, 1.08, 21},
                   {"n176", "ratchet", "accepted", std::nullopt, std::nullopt, 0.5, std::nullopt,
                    std::nullopt, std::nullopt}};
    entry.conditions = {{"compiler", "gcc 12.2"}, {"clock", "unlocked"}};
    entry.evidence = {{"commit", "abc", ""}, {"report", "missions/m1/reports/1.json", "ff"}};
    entry.margins = {{"eigen", 0.125}, {"orthogonal", 0.5}};
    entry.margins["eigen"].check = "dense n=32 batch=3 cond=2";
    entry.margins["eigen"].matrix = 2;
    entry.margins["eigen"].seed = (std::int64_t{1} << 53) - 1;
    return entry;
  }

  std::filesystem::path root_;
};

TEST_F(StoreTest, AnEntryComesBackWhole) {
  Store store = OpenLog();
  ASSERT_TRUE(store.AddEntry(Example("k1")));
  const auto found = store.FindEntry("k1");
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(ToJson(*found), ToJson(Example("k1")));
  EXPECT_EQ(found->id, 1);
  EXPECT_EQ(store.FindEntry("e1")->key, "k1");
  EXPECT_EQ(store.FindEntry("e2").error().kind, ErrorKind::kNotFound);
}

TEST_F(StoreTest, TheMatrixOfAMarginComesBackAndAnEarlierLogHasNone) {
  Store store = OpenLog();
  ASSERT_TRUE(store.AddEntry(Example("k1")));
  const auto found = store.FindEntry("k1");
  ASSERT_TRUE(found) << found.error().text;
  const Margin& eigen = found->margins.at("eigen");
  EXPECT_EQ(MarginText(eigen),
            "0.125 (dense n=32 batch=3 cond=2, matrix 2, seed 9007199254740991)");
  EXPECT_FALSE(found->margins.at("orthogonal").known());
  EXPECT_EQ(MarginText(found->margins.at("orthogonal")), "0.5");
  nlohmann::json earlier = ToJson(*found);
  earlier.erase("worst");
  const auto entry = EntryFromJson(earlier);
  ASSERT_TRUE(entry) << entry.error().text;
  EXPECT_EQ(entry->margins.at("eigen"), 0.125);
  EXPECT_FALSE(entry->margins.at("eigen").known());
}

// As a program before the table left it: read as it stands, and completed when it is written to.
TEST_F(StoreTest, ALogWithoutTheTableOfWorstMatricesIsReadAndCompleted) {
  const auto file = root_ / "log.sqlite";
  {
    auto store = Store::Open(file);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->AddEntry(Example("k1")));
  }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "DROP TABLE entry_worst", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  auto reader = Store::OpenReadOnly(file);
  ASSERT_TRUE(reader) << reader.error().text;
  const auto found = reader->FindEntry("k1");
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->margins.at("eigen"), 0.125);
  EXPECT_FALSE(found->margins.at("eigen").known());
  auto writer = Store::Open(file);
  ASSERT_TRUE(writer) << writer.error().text;
  ASSERT_TRUE(writer->AddEntry(Example("k2")));
  EXPECT_TRUE(writer->FindEntry("k2")->margins.at("eigen").known());
}

TEST_F(StoreTest, ManyMayMakeTheSameNewLogAtOnce) {
  for (int round = 0; round < 10; ++round) {
    const auto file = root_ / fmt::format("new{}.sqlite", round);
    std::barrier start(6);
    std::vector<std::future<std::string>> opened;
    for (int i = 0; i < 6; ++i)
      opened.push_back(std::async(std::launch::async, [&] {
        start.arrive_and_wait();
        const auto store = Store::Open(file);
        return store ? std::string() : store.error().text;
      }));
    for (auto& result : opened) EXPECT_EQ(result.get(), "");
  }
}

TEST_F(StoreTest, TheSameKeyTwiceIsOneEntry) {
  Store store = OpenLog();
  bool fresh = false;
  const auto first = store.AddEntry(Example("k1"), &fresh);
  EXPECT_TRUE(fresh);
  EXPECT_EQ(store.AddEntry(Example("k1"), &fresh).value(), *first);
  EXPECT_FALSE(fresh);
  EXPECT_EQ(store.QueryEntries({})->size(), 1u);
}

TEST_F(StoreTest, FiltersByCaseKindMechanismMissionAndText) {
  Store store = OpenLog();
  Entry win = Example("k2");
  win.kind = EntryKind::kWin;
  win.mission = "m2";
  win.mechanism = "unroll";
  win.cases.resize(1);
  ASSERT_TRUE(store.AddEntries({Example("k1"), win}));
  const auto count = [&](const EntryFilter& filter) { return store.QueryEntries(filter)->size(); };
  EXPECT_EQ(count({.cases = {"n176"}}), 1u);
  EXPECT_EQ(count({.cases = {"n176", "n32"}}), 2u);
  EXPECT_EQ(count({.kinds = {EntryKind::kWin}}), 1u);
  EXPECT_EQ(count({.mission = "m2"}), 1u);
  EXPECT_EQ(count({.mechanism = "panel width"}), 1u);
  EXPECT_EQ(count({.text = "PASSES"}), 2u);
  EXPECT_EQ(count({.text = "'; DROP TABLE entries; --"}), 0u);
  EXPECT_EQ(count({.cases = {"n1"}}), 0u);
}

TEST_F(StoreTest, SupersededEntriesCanBeLeftOut) {
  Store store = OpenLog();
  Entry newer = Example("k2");
  newer.supersedes = "k1";
  ASSERT_TRUE(store.AddEntries({Example("k1"), newer}));
  EXPECT_EQ(store.QueryEntries({.superseded = false})->size(), 1u);
  EXPECT_EQ(store.QueryEntries({})->size(), 2u);
}

TEST_F(StoreTest, AFailedTransactionLeavesNothing) {
  Store store = OpenLog();
  const auto result = store.InTransaction([&]() -> Result<> {
    CRUCIBLE_TRY(store.AddEntry(Example("k1")));
    return Fail(ErrorKind::kInternal, "stop", "here", "on purpose");
  });
  ASSERT_FALSE(result);
  EXPECT_TRUE(store.QueryEntries({})->empty());
  ASSERT_TRUE(store.AddEntry(Example("k1"))) << "the store is usable afterwards";
}

TEST_F(StoreTest, ProcessesWriteAtTheSameTimeWithoutLoss) {
  { OpenLog(); }
  constexpr int kProcesses = 4, kEntries = 50;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = Store::Open(File());
      bool good = store.has_value();
      for (int i = 0; good && i < kEntries; ++i)
        good =
            store->AddEntry(Example("p" + std::to_string(p) + "." + std::to_string(i))).has_value();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(OpenLog().QueryEntries({})->size(), static_cast<std::size_t>(kProcesses * kEntries));
}

TEST_F(StoreTest, AKilledWriterLosesNothingThatItHadFinished) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = Store::Open(File());
    for (int i = 0;; ++i) {
      if (!store->AddEntry(Example("w." + std::to_string(i)))) ::_exit(1);
      (void)!::write(ends[1], "x", 1);  // told after it was written
    }
  }
  char byte = 0;
  for (int i = 0; i < 30; ++i) ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto entries = OpenLog().QueryEntries({});
  ASSERT_TRUE(entries) << entries.error().text;
  EXPECT_GE(entries->size(), 30u);
  for (std::size_t i = 0; i < entries->size(); ++i) EXPECT_EQ((*entries)[i].cases.size(), 2u);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(StoreTest, ACampaignMovesOnlyFromTheStateItIsIn) {
  Store store = OpenLog();
  CampaignRow row;
  row.name = "demo";
  row.state = "running";
  row.settings = "{}";
  ASSERT_TRUE(store.PutCampaign(row));
  EXPECT_TRUE(store.MoveCampaign("demo", "running", "paused").value());
  EXPECT_FALSE(store.MoveCampaign("demo", "running", "stopping").value());
  EXPECT_EQ(store.FindCampaign("demo").value()->state, "paused");
  EXPECT_FALSE(store.FindCampaign("other").value());
}

TEST_F(StoreTest, MissionsCountUpAndComeBackWhole) {
  Store store = OpenLog();
  MissionRow row;
  row.campaign = "demo";
  row.flavour = "proposer";
  row.cases = {"n32", "n176"};
  for (int i = 1; i <= 11; ++i) EXPECT_EQ(store.AddMission(row).value(), "m" + std::to_string(i));
  const auto missions = store.Missions("demo").value();
  ASSERT_EQ(missions.size(), 11u);
  EXPECT_EQ(missions.back().id, "m11");
  EXPECT_EQ(missions.back().cases, row.cases);
  EXPECT_TRUE(store.Missions("other")->empty());
}

TEST_F(StoreTest, PointsAreKeptOnce) {
  Store store = OpenLog();
  const Point point{"eigh_cpu", "n32", "main", "abc", 5, 12.5, 12.0, std::nullopt, true, "k", "{}"};
  ASSERT_TRUE(store.AddPoints({point, point}));
  ASSERT_TRUE(store.AddPoints({point}));
  const auto points = store.Points("eigh_cpu").value();
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].median_us, 12.5);
  EXPECT_EQ(points[0].low_us, 12.0);
  EXPECT_FALSE(points[0].high_us);
  EXPECT_TRUE(points[0].record);
}

TEST_F(StoreTest, AForeignFileIsRefusedAndLeftAsItWas) {
  ASSERT_TRUE(WriteFileAtomically(File(), std::string(5000, 'x')));
  const auto store = Store::Open(File());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kUsage) << store.error().text;
  EXPECT_EQ(ReadFile(File()).value(), std::string(5000, 'x'));
}

TEST_F(StoreTest, ReadingAMissingLogSaysWhatToDo) {
  const auto store = Store::OpenReadOnly(File());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(store.error().text.find("crucible init"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(File()));
}

TEST_F(StoreTest, ALogOfANewerVersionIsNotReadEither) {
  const auto file = root_ / "newer.sqlite";
  {
    auto store = Store::Open(file);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->SetMeta("version", "999"));
  }
  const auto read = Store::OpenReadOnly(file);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("it has version 999"), std::string::npos) << read.error().text;
}

TEST_F(StoreTest, ALogThatCannotBeWrittenIsReadAllTheSame) {
  const auto folder = root_ / "read only? 100%#";
  ASSERT_TRUE(MakeDirectories(folder));
  ASSERT_TRUE(Store::Open(folder / "log.sqlite")->AddEntry(Example("one")));
  std::filesystem::permissions(root_, std::filesystem::perms(0755));
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
  std::filesystem::permissions(folder / "log.sqlite", std::filesystem::perms(0444));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(9);
    auto store = Store::OpenReadOnly(folder / "log.sqlite");
    if (!store) ::_exit(1);
    const auto entry = store->FindEntry("one");
    ::_exit(entry ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
}

TEST_F(StoreTest, AReaderCannotWrite) {
  { OpenLog(); }
  Store reader = Store::OpenReadOnly(File()).value();
  EXPECT_FALSE(reader.AddEntry(Example("k1")));
}

TEST_F(StoreTest, AnEntryOfUnknownKindIsRefused) {
  nlohmann::json object = ToJson(Example("k1"));
  object["kind"] = "triumph";
  const auto entry = EntryFromJson(object);
  ASSERT_FALSE(entry);
  EXPECT_NE(entry.error().text.find("triumph"), std::string::npos);
}

TEST(ConditionsTest, OnlyFieldsThatMatterAskForARetest) {
  const Conditions then = {{"compiler", "gcc 12.2"}, {"host", "a"}, {"driver", "580"}};
  const auto changed =
      ChangedSince(then, {{"compiler", "gcc 13.1"}, {"host", "b"}, {"clock", "pinned"}});
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].field, "compiler");
  EXPECT_EQ(changed[0].then, "gcc 12.2");
  EXPECT_EQ(changed[0].now, "gcc 13.1");
  EXPECT_TRUE(ChangedSince(then, then).empty());
}

TEST(ConditionsTest, WhatWasOrIsUnknownSaysNothingOfAChange) {
  EXPECT_TRUE(ChangedSince({{"clock", "unknown"}}, {{"clock", "unlocked"}}).empty());
  EXPECT_TRUE(ChangedSince({{"driver", "580"}}, {{"driver", "unknown"}}).empty());
  EXPECT_EQ(ChangedSince({{"clock", "pinned"}}, {{"clock", "unlocked"}}).size(), 1u);
}

}  // namespace
}  // namespace crucible
