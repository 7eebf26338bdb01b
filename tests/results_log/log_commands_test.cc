// The commands over the log, and the page they write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/files.h"
#include "orchestrator/cli/brief_command.h"
#include "orchestrator/cli/dashboard_command.h"
#include "orchestrator/cli/log_command.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogCommands, APersonsEntryIsFoundCitedAndEscaped) {
  const auto root = MakeTemporaryDirectory("log_commands_test").value();
  const std::string log = (root / "log.sqlite").string();
  std::ostringstream out, err;
  ASSERT_EQ(LogCommand({"add", "--log", log, "--kind", "loss", "--case", "n32", "--target", "eigh",
                        "--mechanism", "<script>alert(1)</script>", "--before", "10", "--after",
                        "11", "--condition", "compiler=gcc 12"},
                       out, err),
            0)
      << err.str();
  ASSERT_EQ(LogCommand({"query", "--log", log, "--case", "n32"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("+10.0 %"));
  out.str("");
  ASSERT_EQ(LogCommand({"retest", "--log", log, "--now", "compiler=gcc 13"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("compiler: gcc 12 -> gcc 13"));
  out.str("");
  ASSERT_EQ(BriefCommand({"n32", "--log", log}, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("[e1]"));
  out.str("");
  ASSERT_EQ(DashboardCommand({"--log", log, "--target", "eigh", "--out", "-"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(out.str(), Not(HasSubstr("<script")));
  EXPECT_EQ(LogCommand({"add", "--log", log, "--kind", "draw", "--summary", "x"}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("--kind draw is unknown"));
  EXPECT_EQ(BriefCommand({"n33", "--log", log}, out, err), 2);
  EXPECT_EQ(LogCommand({"show", "e9", "--log", log}, out, err), 1);
  EXPECT_TRUE(RemoveTree(root));
}

class LogCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = MakeTemporaryDirectory("log_commands_test").value();
    log_ = (root_ / "log.sqlite").string();
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }

  // `crucible log WORDS… --log LOG`: what it printed; it must end with `code`.
  std::string Log(std::vector<std::string> words, int code = 0) {
    words.insert(words.end(), {"--log", log_});
    std::ostringstream out, err;
    EXPECT_EQ(LogCommand(words, out, err), code) << out.str() << err.str();
    return code == 0 ? out.str() : err.str();
  }
  std::string AddLoss(const std::string& mechanism, const std::string& more = "") {
    std::vector<std::string> words = {"add",      "--kind",      "loss",        "--case",
                                      "n32",      "--target",    "eigh",        "--mechanism",
                                      mechanism,  "--reason",    "it said",     "--condition",
                                      "driver=1", "--condition", "clock=pinned"};
    if (!more.empty()) words.insert(words.end(), {"--supersedes", more});
    return Log(words);
  }

  std::filesystem::path root_;
  std::string log_;
};

TEST_F(LogCommandsTest, ShowsTheMatrixThatAMarginIsOf) {
  Entry entry;
  entry.key = "e.1";
  entry.margins = {{"eigen", 0.8}, {"orthogonal", 0.25}};
  entry.margins["eigen"].check = "dense n=32 batch=3";
  entry.margins["eigen"].matrix = 1;
  entry.margins["eigen"].seed = 17;
  ASSERT_TRUE(Store::Open(log_)->AddEntry(entry));
  const std::string text = Log({"show", "e1"});
  EXPECT_THAT(text, HasSubstr("margin       eigen = 0.8 (dense n=32 batch=3, matrix 1, seed 17)"));
  EXPECT_THAT(text, HasSubstr("margin       orthogonal = 0.25"));
}

TEST_F(LogCommandsTest, RetestNamesTheFieldAndWhatTheEntrySaid) {
  AddLoss("panels");
  EXPECT_THAT(Log({"retest"}), HasSubstr("nothing is up for a retest"));
  const std::string list = Log({"retest", "--case", "n32", "--now", "driver=2"});
  EXPECT_THAT(list, HasSubstr("changed: driver: 1 -> 2"));
  EXPECT_THAT(list, HasSubstr("it said: it said"));
  EXPECT_THAT(list, Not(HasSubstr("clock: ")));
  EXPECT_THAT(list, HasSubstr("1 up for a retest; looked at 1 rejection or undecided result of "
                              "eigh, n32\ntoday: driver = 2"));
  EXPECT_THAT(Log({"retest", "--case", "n176", "--now", "driver=2"}),
              HasSubstr("nothing is up for a retest: no entry of eigh, n176 is a rejection"));
  EXPECT_THAT(Log({"retest", "--now", "driver=1"}),
              HasSubstr("looked at 1 rejection or undecided result of eigh: 1 whose conditions are "
                        "not known to have changed"));
}

TEST_F(LogCommandsTest, ASupersedingEntryTakesTheOldOnesPlace) {
  AddLoss("panels");
  AddLoss("panels, measured again", "e1");
  EXPECT_THAT(Log({"query"}), Not(HasSubstr("e1 ")));
  EXPECT_THAT(Log({"query", "--superseded"}), HasSubstr("e1 "));
  EXPECT_THAT(Log({"show", "e2"}), HasSubstr("supersedes"));
  EXPECT_THAT(Log({"show", "e1"}), HasSubstr("replaced by  e2"));
  const std::string list = Log({"retest", "--now", "driver=2"});
  EXPECT_THAT(list, HasSubstr("e2 "));
  EXPECT_THAT(list, Not(HasSubstr("e1 ")));
}

TEST_F(LogCommandsTest, ABeginningThatFitsSeveralKeysIsRefusedWithTheCandidates) {
  for (const char* key : {"abcdef.m1.1", "abcdef.m1.10", "abcdef.m2.1"}) {
    Entry entry;
    entry.key = key;
    entry.target = "eigh";
    entry.kind = EntryKind::kLoss;
    entry.reason = "slower";
    entry.cases = {{.name = "n32"}};
    ASSERT_TRUE(Store::Open(log_)->AddEntry(entry));
  }
  for (const auto& command :
       {std::vector<std::string>{"show", "abcdef"},
        std::vector<std::string>{"split", "abcdef", "--part", "loss:one", "--part", "win:two"}}) {
    const std::string told = Log(command, 2);
    EXPECT_THAT(told, HasSubstr("e1 (abcdef.m1.1), e2 (abcdef.m1.10), e3 (abcdef.m2.1)"));
  }
  EXPECT_THAT(Log({"show", "abcdef.m1.1"}), HasSubstr("e1 "));  // a whole key is itself
  EXPECT_THAT(Log({"show", "abcdef.m2"}), HasSubstr("e3 "));    // one alone begins so
}

TEST_F(LogCommandsTest, AFileThatDoesNotReadLeavesNoLogBehind) {
  const std::string file = (root_ / "bad.jsonl").string();
  ASSERT_TRUE(WriteFileAtomically(file, "{\"bad"));
  EXPECT_THAT(Log({"import", file}, 2), HasSubstr("bad.jsonl:1: the line is not JSON"));
  EXPECT_FALSE(std::filesystem::exists(log_));
  ASSERT_TRUE(WriteFileAtomically(file, ""));
  EXPECT_THAT(Log({"import", file}), HasSubstr("new: 0 entries, 0 missions"));
  EXPECT_TRUE(std::filesystem::exists(log_));
}

TEST_F(LogCommandsTest, SplittingMakesEachPartAnEntryAndTheWholeConflated) {
  Log({"add", "--kind", "loss", "--case", "n32", "--target", "eigh", "--mechanism",
       "panels and rows", "--condition", "driver=1", "--before", "100", "--after", "110"});
  EXPECT_THAT(Log({"split", "e1", "--part", "loss:panels"}, 2), HasSubstr("at least two"));
  const std::string parts =
      Log({"split", "e1", "--part", "loss:panels:slower", "--part", "win:rows"});
  EXPECT_THAT(parts, HasSubstr("panels"));
  EXPECT_THAT(parts, HasSubstr("rows"));
  EXPECT_THAT(Log({"show", "e1"}), HasSubstr("conflated"));
  EXPECT_THAT(Log({"show", "e1"}), HasSubstr("replaced by  e2 e3"));
  EXPECT_THAT(Log({"show", "e2"}), HasSubstr("split from"));
  EXPECT_THAT(Log({"show", "e2"}), HasSubstr("case         n32"));
  EXPECT_THAT(parts + Log({"show", "e2"}), Not(HasSubstr("110")))
      << "the whole's time is not each part's";
  EXPECT_THAT(Log({"show", "e2"}), HasSubstr("driver = 1"));
  const std::string list = Log({"retest", "--now", "driver=2"});
  EXPECT_THAT(list, HasSubstr("e2 "));
  EXPECT_THAT(list, Not(HasSubstr("e3 ")));  // a win is no rejection
  EXPECT_THAT(list, Not(HasSubstr("e1 ")));  // its parts speak for it
}

TEST_F(LogCommandsTest, RecordsShowFirstBestAndNewestWithTheirEvidence) {
  EXPECT_THAT(Log({"records"}, 1), HasSubstr("log"));  // no log yet
  {
    auto store = Store::Open(log_);
    ASSERT_TRUE(store.has_value());
    const auto add = [&](const char* commit, std::int64_t time_ms, double us, bool record) {
      ASSERT_TRUE(store->AddPoints({{"eigh", "n32", "main", commit, time_ms, us, std::nullopt,
                                     std::nullopt, record, std::string("key.") + commit, "{}"}}));
    };
    add("aaaa", 1, 120, true);
    add("bbbb", 2, 90, false);  // measured, but not confirmed: no record
    add("cccc", 3, 100, true);
    add("dddd", 4, 101, false);
  }
  const std::string text = Log({"records"});
  EXPECT_THAT(text, HasSubstr("first 120 us (aaaa, key.aaaa)  best 100 us (cccc, key.cccc)\n"));
  EXPECT_THAT(text, HasSubstr("main alone since 101 us (dddd, key.dddd): not compared"));
}

TEST_F(LogCommandsTest, AFloorWithoutALimitIsListedInTheBriefAsAsserted) {
  const auto floor = [&](const std::string& summary, const std::string& reason) {
    Log({"add", "--kind", "floor", "--target", "eigh", "--case", "n32", "--summary", summary,
         "--reason", reason});
  };
  floor("n32 cannot be faster than 12 us", "everybody knows");
  floor("n32 cannot be faster than 9 us", "2.18 Mflop at 224 Gflop/s");
  EXPECT_THAT(Log({"add", "--kind", "floor", "--target", "eigh", "--case", "n32", "--after", "7",
                   "--summary", "n32 cannot be faster than 7 us"}),
              HasSubstr("names no limit"));
  EXPECT_THAT(Log({"add", "--kind", "floor", "--target", "eigh", "--case", "n32", "--after", "9.8",
                   "--summary", "arithmetic", "--reason", "2.18 Mflop at 222 Gflop/s"}),
              Not(HasSubstr("names no limit")));
  std::ostringstream out, err;
  ASSERT_EQ(BriefCommand({"n32", "--log", log_}, out, err), 0) << err.str();
  const std::string brief = out.str();
  const std::size_t section = brief.find("## Asserted floors to challenge");
  ASSERT_NE(section, std::string::npos) << brief;
  const std::string asserted = brief.substr(section, brief.find("\n## ", section + 1) - section);
  EXPECT_THAT(asserted, HasSubstr("12 us"));
  EXPECT_THAT(asserted, HasSubstr("than 7 us"));
  EXPECT_THAT(asserted, Not(HasSubstr("9 us")));
  EXPECT_THAT(brief, HasSubstr("floor 9.80 us (2.18 Mflop at 222 Gflop/s)"));
}

TEST_F(LogCommandsTest, NonsenseIsRefusedAndNothingIsAdded) {
  const auto refused = [&](std::vector<std::string> words, const std::string& why, int code = 2) {
    words.insert(words.begin(), {"add", "--target", "eigh", "--case", "n32", "--mechanism", "m"});
    EXPECT_THAT(Log(words, code), HasSubstr(why));
  };
  refused({"--kind", "win", "--before", "10", "--after", "11"},
          "a win that went from 10.0 us to 11");
  refused({"--kind", "loss", "--before", "11", "--after", "10"}, "a loss that went from 11.0 us");
  refused({"--kind", "loss", "--evidence", "foo=bar"}, "--evidence foo=bar: there is no such kind");
  refused({"--kind", "loss", "--evidence", "report=gone.json"}, "there is no such file", 1);
  refused({"--kind", "loss", "--before", "-3"}, "-3 is not a number above 0");
  AddLoss("panels");
  EXPECT_THAT(Log({"add", "--kind", "note", "--summary", "x", "--target", "nope"}, 2),
              HasSubstr("neither the log nor this repository has a target nope; they have eigh"));
  EXPECT_THAT(
      Log({"add", "--kind", "note", "--summary", "x", "--target", "eigh", "--case", "n33"}, 2),
      HasSubstr("target eigh has no case n33; it has n32"));
  EXPECT_THAT(Log({"query", "--limit", "-1"}, 2), HasSubstr("-1 is not a number from 0 on"));
  EXPECT_THAT(Log({"query"}), Not(HasSubstr("e2 ")));
}

TEST_F(LogCommandsTest, AFileThatIsEvidenceIsHashed) {
  const std::string file = (root_ / "report.json").string();
  ASSERT_TRUE(WriteFileAtomically(file, "abc"));
  Log({"add", "--kind", "note", "--summary", "x", "--evidence", "report=" + file, "--evidence",
       "report=report.json", "--evidence", "commit=abc"});
  const std::string text = Log({"show", "e1"});
  const std::string hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_THAT(text, HasSubstr("report " + file + " " + hash));
  EXPECT_THAT(text, HasSubstr("report report.json " + hash)) << "beside the log";
}

TEST_F(LogCommandsTest, AFloorWithAReasonAloneSaysEnough) {
  Log({"add", "--kind", "floor", "--target", "eigh", "--case", "n32", "--after", "9", "--reason",
       "2 Mflop at 222 Gflop/s"});
  EXPECT_THAT(Log({"show", "e1"}), HasSubstr("n32 cannot be faster than 9.00 us"));
  EXPECT_THAT(Log({"add", "--kind", "floor", "--target", "eigh"}, 2), HasSubstr("says nothing"));
}

TEST_F(LogCommandsTest, TheTargetThatHasTheCasesIsMeant) {
  {
    auto store = Store::Open(log_);
    ASSERT_TRUE(store.has_value());
    for (const char* name : {"eigh", "nope"}) {
      Entry entry;
      entry.target = name;
      entry.summary = std::string("of ") + name;
      if (entry.target == "eigh") entry.cases.push_back({.name = "n32"});
      ASSERT_TRUE(store->AddEntry(entry));
    }
  }
  std::ostringstream out, err;
  EXPECT_EQ(BriefCommand({"n32", "--log", log_}, out, err), 0) << err.str();
  EXPECT_EQ(BriefCommand({"--log", log_}, out, err), 2) << "of all cases, either could be meant";
  EXPECT_THAT(err.str(), HasSubstr("the log has eigh, nope; name one with --target"));
  for (const char* command : {"records", "retest"})
    EXPECT_THAT(Log({command, "--target", "gone"}, 2),
                HasSubstr("choose target gone: the log has nothing of it; it has eigh, nope"));
  EXPECT_EQ(BriefCommand({"--log", log_, "--target", "gone"}, out, err), 2);
  EXPECT_EQ(DashboardCommand({"--log", log_, "--target", "gone", "--out", "-"}, out, err), 2);
}

TEST_F(LogCommandsTest, AQuerySaysWhatItLeftOutAndIsAlwaysNewestFirst) {
  {
    auto store = Store::Open(log_);
    ASSERT_TRUE(store.has_value());
    for (int i = 1; i <= 22; ++i) {
      Entry entry;
      entry.time_ms = i;
      ASSERT_TRUE(store->AddEntry(entry));
    }
  }
  const auto query = [&](std::vector<std::string> words, std::string* remark) {
    words.insert(words.begin(), {"query", "--log", log_});
    std::ostringstream out, err;
    EXPECT_EQ(LogCommand(words, out, err), 0);
    *remark = err.str();
    return out.str();
  };
  std::string remark;
  std::string list = query({}, &remark);
  EXPECT_EQ(remark, "(2 more: --limit 0)\n");
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 20);
  EXPECT_TRUE(list.starts_with("e22 ")) << list;
  list = query({"--limit", "0"}, &remark);
  EXPECT_EQ(remark, "");
  EXPECT_TRUE(list.starts_with("e22 ")) << list;
  EXPECT_THAT(list, HasSubstr("\ne1 "));
  list = query({"--json"}, &remark);
  EXPECT_EQ(remark, "");
  EXPECT_THAT(list, HasSubstr("\"id\": 1,")) << "all of them";
}

TEST_F(LogCommandsTest, TheShippedCampaignsBriefRejectsNothingThatMainShips) {
  Log({"import", CRUCIBLE_SOURCE_DIR "/results_log/campaigns/eigh_h200.jsonl"});
  const auto brief = [&](const std::string& name) {
    std::ostringstream out, err;
    EXPECT_EQ(BriefCommand({name, "--log", log_}, out, err), 0) << err.str();
    return out.str();
  };
  const std::string n512 = brief("n512"), n352 = brief("n352");
  for (const std::string& text : {n512, brief("n2048")}) {
    EXPECT_THAT(text, Not(HasSubstr("[no entry]")));
    EXPECT_THAT(text, HasSubstr("yardstick, not a bound: 10/3 n^3 flops"));
  }
  EXPECT_THAT(n352, Not(HasSubstr("[no entry]")));
  EXPECT_THAT(n352, HasSubstr("floor 5.88 us (10/3 n^3 flops x 40 = 5.82 Gflop at 989.5 TFLOPS"));
  const auto rejected = [](const std::string& text) {
    const std::size_t begin = text.find("## Rejected");
    return text.substr(begin, text.find("\n## ", begin) - begin);
  };
  EXPECT_THAT(rejected(n512), HasSubstr("REL64 2e-5 -> 1e-6"));
  EXPECT_THAT(rejected(n512), Not(HasSubstr("a panel at a time")));
  EXPECT_THAT(rejected(n352), HasSubstr("None."));
  EXPECT_THAT(n352, HasSubstr("sixteen at a time on tensor cores, every operand two halves: win"));
  EXPECT_THAT(n352, Not(HasSubstr("transposing butterfly"))) << "main ships it no longer";
  EXPECT_THAT(Log({"retest"}), HasSubstr("looked at 6 rejections or undecided results"));
}

}  // namespace
}  // namespace crucible
