// The log as text: nothing is lost, nothing doubled, and two logs merge.
#include "results_log/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;

class JsonlTest : public ::testing::Test {
 protected:
  void SetUp() override { root_ = MakeTemporaryDirectory("jsonl_test").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }
  Store Log(const std::string& name) { return Store::Open(root_ / name).value(); }
  std::filesystem::path root_;
};

// Random rows: every double finite and of any magnitude, texts of any code point.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t Below(std::uint64_t end) { return engine_() % end; }
  double Double() {
    for (;;) {
      const std::uint64_t bits = engine_();
      double value;
      std::memcpy(&value, &bits, sizeof value);
      if (std::isfinite(value)) return value;
    }
  }
  std::optional<double> Maybe() { return Below(3) == 0 ? std::nullopt : std::optional(Double()); }
  std::string Text() {
    static const char* kPieces[] = {"a",    "\"", "\\", "\n",  "\t", "\x01",   "é", "漢",
                                    "🙂", "{",  "'",  "<b>", " ",  "\u2028", "0"};
    std::string text;
    for (std::uint64_t i = Below(12); i > 0; --i) text += kPieces[Below(std::size(kPieces))];
    return text;
  }
  Entry AnEntry(int number) {
    Entry entry;
    entry.key = "key" + std::to_string(number);
    entry.kind = static_cast<EntryKind>(Below(8));
    entry.time_ms = static_cast<std::int64_t>(Below(1000));
    for (std::string* field :
         {&entry.target, &entry.campaign, &entry.author, &entry.flavour, &entry.mechanism,
          &entry.hypothesis, &entry.summary, &entry.reason, &entry.supersedes, &entry.split_from})
      *field = Text();
    entry.change = nlohmann::json{{Text(), Double()}, {Text(), {Text(), nullptr}}}.dump();
    for (std::uint64_t i = Below(4); i > 0; --i)
      entry.cases.push_back(
          {Text(), Text(), Text(), Maybe(), Maybe(), Maybe(), Maybe(), Maybe(),
           Below(2) == 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(Below(99)))});
    for (std::uint64_t i = Below(3); i > 0; --i) {
      entry.conditions[Text()] = Text();
      entry.evidence.push_back({Text(), Text(), Text()});
      Margin& margin = entry.margins[Text()];
      margin = Double();
      if (Below(2) == 0) {
        margin.check = "a" + Text();
        margin.matrix = static_cast<std::int64_t>(Below(9)) - 1;
        margin.seed = static_cast<std::int64_t>(Below(std::uint64_t{1} << 53));
      }
    }
    entry.landed = Below(2) == 0;
    entry.conflated = Below(2) == 0;
    return entry;
  }

 private:
  std::mt19937_64 engine_;
};

void Fill(Store* store, std::uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Random random(seed);
  CampaignRow campaign{"c" + std::to_string(seed), "eigh", "demo.toml", R"({"a":1})", "finished"};
  campaign.started_ms = 5;
  campaign.base_commit = "abc";
  ASSERT_TRUE(store->PutCampaign(campaign));
  MissionRow mission;
  mission.campaign = campaign.name;
  mission.goal = random.Text();
  mission.cases = {"n32", random.Text()};
  mission.state = "done";
  mission.planned_ms = 7;
  mission.ended_ms = 9;
  ASSERT_TRUE(store->AddMission(mission));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(store->AddEntry(random.AnEntry(i)));
  ASSERT_TRUE(store->AddPoints({{"eigh",
                                 "n32",
                                 "main",
                                 "abc",
                                 3,
                                 1.25,
                                 0.1 + 0.2,
                                 {},
                                 true,
                                 "key1",
                                 R"({"compiler":"gcc"})"}}));
  ASSERT_TRUE(store->AddEvent(campaign.name, "m1", "note", random.Text()));
}

TEST_F(JsonlTest, ALineThatIsNoJsonIsNamedWithoutTheParsersOwnWords) {
  Store log = Log("one");
  const auto imported = ImportLines(&log, "\n{\"type\":twelve}\n", "one.jsonl");
  ASSERT_FALSE(imported);
  EXPECT_NE(imported.error().text.find("one.jsonl:2: the line is not JSON from its character 10"),
            std::string::npos)
      << imported.error().text;
}

TEST_F(JsonlTest, RoundTripsWithoutLossAndTwiceIsOnce) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Store one = Log("one" + std::to_string(seed)), two = Log("two" + std::to_string(seed));
    Fill(&one, seed);
    const std::string text = ExportLines(&one, {.events = true}).value();
    const auto imported = ImportLines(&two, text, "one.jsonl");
    ASSERT_TRUE(imported) << imported.error().text;
    EXPECT_EQ(imported->entries, 60);
    EXPECT_EQ(imported->events, 1);
    EXPECT_EQ(ExportLines(&two, {.events = true}).value(), text);
    for (int i = 0; i < 60; ++i) {
      const std::string key = "key" + std::to_string(i);
      EXPECT_EQ(ToJson(*two.FindEntry(key)), ToJson(*one.FindEntry(key)));
    }
    const auto again = ImportLines(&two, text, "one.jsonl");
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->entries + again->missions + again->campaigns + again->points + again->events,
              0);
    EXPECT_EQ(again->differing, 0);
    EXPECT_EQ(ExportLines(&two, {.events = true}).value(), text);
  }
}

TEST_F(JsonlTest, TheOrderDoesNotDependOnWhoWroteFirst) {
  Store one = Log("one"), two = Log("two");
  Random random(3);
  const Entry a = random.AnEntry(1), b = random.AnEntry(2);
  ASSERT_TRUE(one.AddEntries({a, b}));
  ASSERT_TRUE(two.AddEntries({b, a}));
  EXPECT_EQ(*ExportLines(&one), *ExportLines(&two));
}

TEST_F(JsonlTest, ABadLineIsNamedAndNothingIsWritten) {
  Store one = Log("one"), two = Log("two");
  Fill(&one, 1);
  const std::string good = *ExportLines(&one);
  const auto lines = std::count(good.begin(), good.end(), '\n');
  for (const auto& [line, why] :
       {std::pair{"{\"type\":", "not JSON from its character 9 on"},
        {"{\"type\":\"poem\"}", "poem"},
        {"[]", "type"},
        {"{\"type\":\"entry\",\"key\":\"k\",\"kind\":\"draw\",\"time_ms\":1}", "draw"},
        {"{\"type\":\"entry\",\"kind\":\"win\",\"time_ms\":1}", "key"},
        {"{\"type\":\"point\",\"target\":1}", "must be string"}}) {
    const auto imported = ImportLines(&two, good + line + "\n", "bad.jsonl");
    ASSERT_FALSE(imported) << line;
    EXPECT_EQ(imported.error().kind, ErrorKind::kUsage) << line;
    EXPECT_THAT(imported.error().text, HasSubstr("bad.jsonl:" + std::to_string(lines + 1)));
    EXPECT_THAT(imported.error().text, HasSubstr(why));
    EXPECT_EQ(*ExportLines(&two), "");
  }
}

TEST_F(JsonlTest, TwoLogsMergeByImportingEachIntoTheOther) {
  Store one = Log("one"), two = Log("two");
  MissionRow mission;
  mission.campaign = "a";
  mission.goal = "first";
  mission.state = "done";
  ASSERT_TRUE(one.AddMission(mission));
  mission.campaign = "b";
  mission.goal = "second";
  ASSERT_TRUE(two.AddMission(mission));  // m1 as well, but another mission
  Entry mine, other, shared;
  shared.key = "shared";
  mine.key = "mine";
  mine.campaign = "a";
  other.key = "other";
  other.campaign = "b";
  mine.mission = other.mission = "m1";
  ASSERT_TRUE(one.AddEntries({shared, mine}));
  shared.landed = true;
  ASSERT_TRUE(two.AddEntries({shared, other}));
  const std::string from_one = *ExportLines(&one), from_two = *ExportLines(&two);
  ASSERT_TRUE(ImportLines(&one, from_two, "two"));
  ASSERT_TRUE(ImportLines(&two, from_one, "one"));
  for (Store* store : {&one, &two}) {
    EXPECT_EQ(store->QueryEntries({})->size(), 3u);
    EXPECT_TRUE(store->FindEntry("shared")->landed);
    for (const char* key : {"mine", "other"}) {
      const Entry entry = *store->FindEntry(key);
      EXPECT_EQ((*store->FindMission(entry.mission))->campaign, entry.campaign) << key;
    }
  }
  const auto again = ImportLines(&one, from_two, "two");
  EXPECT_EQ(again->missions, 0);
  EXPECT_EQ(again->differing, 0);
}

TEST_F(JsonlTest, WhatWasUnderWayElsewhereDoesNotRunHere) {
  Store one = Log("one"), two = Log("two");
  CampaignRow campaign{"c", "eigh", "demo.toml", "{}", "running", "1:2:boot"};
  ASSERT_TRUE(one.PutCampaign(campaign));
  MissionRow mission;
  mission.campaign = "c";
  mission.state = "running";
  mission.owner = "1:2:boot";
  mission.worktree = "/somewhere";
  ASSERT_TRUE(one.AddMission(mission));
  ASSERT_TRUE(ImportLines(&two, *ExportLines(&one), "one"));
  EXPECT_EQ((*two.FindCampaign("c"))->state, "interrupted");
  EXPECT_EQ((*two.FindMission("m1"))->state, "done");
  EXPECT_EQ((*two.FindMission("m1"))->owner, "");
}

}  // namespace
}  // namespace crucible
