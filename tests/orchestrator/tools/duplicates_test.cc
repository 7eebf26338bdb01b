// Which experiments the log answers already.
#include "orchestrator/agents/tools/duplicates.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

const Conditions kNow = {{"compiler", "gcc 12"}};

Entry Rejection() {
  Entry entry;
  entry.id = 12;
  entry.key = "c0.m1.4";
  entry.kind = EntryKind::kLoss;
  entry.mechanism = "Panel-width";
  entry.change = R"({"knobs":{"panel_width":[4,8]},"scoped":"x"})";
  entry.cases = {{.name = "n32"}};
  entry.conditions = {{"compiler", "gcc 12"}};
  return entry;
}

const Entry* Find(const Entry& entry, const Experiment& experiment,
                  std::vector<std::string> retry = {}) {
  static std::vector<Entry> entries;
  entries = {entry};
  return FindRejection(entries, experiment, kNow, retry);
}

const Experiment kAgain = {"panel width", R"({"Panel Width":8})", "", "", {"n32"}};

TEST(Duplicates, TheSameMechanismAndParamsAreTheSameWhateverTheSpelling) {
  EXPECT_NE(Find(Rejection(), kAgain), nullptr);
  EXPECT_NE(Find(Rejection(), {"PANEL WIDTH", R"({"panel_width":[2,8]})", "", "", {"n32"}}),
            nullptr);
}

TEST(Duplicates, OtherParamsMechanismsOrCasesAreOtherExperiments) {
  EXPECT_EQ(Find(Rejection(), {"panel width", R"({"panel_width":16})", "", "", {"n32"}}), nullptr);
  EXPECT_EQ(Find(Rejection(), {"panel width", "{}", "", "", {"n32"}}), nullptr);
  EXPECT_EQ(Find(Rejection(), {"panel height", R"({"panel_width":8})", "", "", {"n32"}}), nullptr);
  EXPECT_EQ(Find(Rejection(), {"panel width", R"({"panel_width":8})", "", "", {"n64"}}), nullptr);
}

TEST(Duplicates, OnlyARejectionThatHoldsTodayCounts) {
  Entry entry = Rejection();
  entry.conditions["compiler"] = "gcc 11";
  EXPECT_EQ(Find(entry, kAgain), nullptr);
  entry = Rejection();
  entry.kind = EntryKind::kInconclusive;
  EXPECT_EQ(Find(entry, kAgain), nullptr);
  entry = Rejection();
  entry.conflated = true;
  EXPECT_EQ(Find(entry, kAgain), nullptr);
  EXPECT_EQ(Find(Rejection(), kAgain, {"c0.m1.4"}), nullptr);  // up for another try
}

TEST(Duplicates, TheVerySameFilesAreTheSameExperimentUnderAnyName) {
  Entry entry = Rejection();
  entry.change = R"({"tree":"aaa","against":"bbb","params":{}})";
  EXPECT_NE(Find(entry, {"another name", "{}", "aaa", "bbb", {"n32"}}), nullptr);
  EXPECT_EQ(Find(entry, {"another name", "{}", "aaa", "ccc", {"n32"}}), nullptr);
}

TEST(Duplicates, APersonsOwnChangeIsItsParams) {
  Entry entry = Rejection();
  entry.change = R"({"panel_width":[1,8]})";
  EXPECT_NE(Find(entry, kAgain), nullptr);
}

TEST(Duplicates, TheCitationNamesTheEntryAndItsReason) {
  Entry entry = Rejection();
  entry.summary = "n32 +4 %";
  entry.reason = "slower";
  EXPECT_EQ(Citation(entry), "[e12] Panel-width: loss; n32 +4 %: slower");
}

}  // namespace
}  // namespace crucible
