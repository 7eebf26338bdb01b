// Knobs, constraints and the proposer's search: all pure, so every choice can be asserted.
#include "orchestrator/agents/knobs.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "orchestrator/agents/expression.h"
#include "orchestrator/agents/proposals.h"

namespace crucible {
namespace {

const NameLookup kNames = [](const std::string& name) -> std::optional<std::int64_t> {
  if (name == "a.b") return 6;
  if (name == "zero") return 0;
  return std::nullopt;
};

TEST(Expression, FollowsCsPrecedence) {
  EXPECT_EQ(Evaluate("1 + 2 * 3", kNames).value(), 7);
  EXPECT_EQ(Evaluate("(1 + 2) * 3", kNames).value(), 9);
  EXPECT_EQ(Evaluate("a.b % 4 == 2 && !(zero)", kNames).value(), 1);
  EXPECT_EQ(Evaluate("1 < 2 == 1 || 1 / zero", kNames).value(), 1);
  EXPECT_EQ(Evaluate("-a.b + 10 - 3 - 1", kNames).value(), 0);
  EXPECT_EQ(Evaluate("8 / 2 / 2", kNames).value(), 2);
  EXPECT_EQ(Evaluate("a.b >= 6 && a.b <= 6", kNames).value(), 1);
}

TEST(Expression, SaysWhereItIsWrong) {
  for (const char* bad : {"1 +", "(1", "1 2", "nothing_like_it", "3 / zero", "1 = 2", ""}) {
    const auto value = Evaluate(bad, kNames);
    ASSERT_FALSE(value) << bad;
    EXPECT_EQ(value.error().kind, ErrorKind::kUsage);
    EXPECT_NE(value.error().text.find("column"), std::string::npos) << value.error().text;
  }
}

constexpr char kFile[] = R"(
[[knob]]
name = "block"
file = "tuning.h"
constant = "kBlock"
values = [1, 2, 4]
cases = ["small"]
mechanism = "edge of the tile"
[[knob]]
name = "width"
file = "tuning.h"
constant = "kWidth"
values = [1, 4]
mechanism = "floats a vector"
[[constraint]]
when = "width > block"
reason = "a tile holds whole vectors"
)";

TEST(Knobs, ReadsAndRewritesConstantsInPlace) {
  const auto root = MakeTemporaryDirectory("knobs_test").value();
  const std::string before =
      "// kBlock = 9 in a comment\ninline constexpr int kBlock = 1;  // note\n"
      "inline constexpr int kWidth = 1;\n";
  ASSERT_TRUE(WriteFileAtomically(root / "tuning.h", before));
  const auto space = ParseKnobs(kFile, "knobs.toml");
  ASSERT_TRUE(space) << space.error().text;
  Configuration now = ReadConfiguration(*space, root).value();
  EXPECT_EQ(CanonicalText(now), "block=1 width=1");
  now["block"] = 4;
  ASSERT_TRUE(WriteConfiguration(*space, root, now));
  EXPECT_EQ(ReadFile(root / "tuning.h").value(),
            "// kBlock = 9 in a comment\ninline constexpr int kBlock = 4;  // note\n"
            "inline constexpr int kWidth = 1;\n");
  ASSERT_TRUE(RemoveTree(root));
}

TEST(Knobs, AMissingOrDoubledConstantIsAnError) {
  const auto root = MakeTemporaryDirectory("knobs_test").value();
  const auto space = ParseKnobs(kFile, "knobs.toml").value();
  ASSERT_TRUE(WriteFileAtomically(root / "tuning.h", "inline constexpr int kBlock = 1;\n"));
  auto read = ReadConfiguration(space, root);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("0 definitions"), std::string::npos) << read.error().text;
  const std::string line = "inline constexpr int kBlock = 1;\n";
  ASSERT_TRUE(WriteFileAtomically(root / "tuning.h", line + line));
  read = ReadConfiguration(space, root);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("2 definitions"), std::string::npos) << read.error().text;
  ASSERT_TRUE(RemoveTree(root));
}

TEST(Knobs, RefusesBeforeAnyBuild) {
  const auto space = ParseKnobs(kFile, "knobs.toml").value();
  EXPECT_EQ(WhyInvalid(space, {{"block", 4}, {"width", 4}}).value(), "");
  EXPECT_EQ(WhyInvalid(space, {{"block", 2}, {"width", 4}}).value(),
            "a tile holds whole vectors (width > block)");
  EXPECT_NE(WhyInvalid(space, {{"block", 3}, {"width", 1}}).value(), "");
}

TEST(Knobs, ABrokenFileNamesItsLine) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"[[knob]]\nname = \"a\"\n", "'file' is missing"},
      {"[[knob]\n", "knobs.toml:1"},
      {"x = 1\n", "unknown key 'x'"},
      {"", "no [[knob]]"},
      {"[[knob]]\nname='a'\nfile='f'\nconstant='k'\nvalues=[1]\nmechanism='m'\n", "two values"},
  };
  for (const auto& [text, wanted] : mistakes) {
    const auto space = ParseKnobs(text, "knobs.toml");
    ASSERT_FALSE(space) << text;
    EXPECT_NE(space.error().text.find(wanted), std::string::npos) << space.error().text;
  }
  const auto unknown = ParseKnobs(
      std::string(kFile) + "[[constraint]]\nwhen='nope > 1'\nreason='r'\n", "knobs.toml");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text.find("nope"), std::string::npos) << unknown.error().text;
}

TEST(Knobs, ClassesHaveTheirOwnCopyOfEachKnob) {
  const auto space = ParseKnobs(R"(
[[class]]
name = "small"
file = "small.h"
cases = ["n32"]
constants = { n_max = 8 }
[[class]]
name = "large"
file = "large.h"
cases = ["n352"]
constants = { n_max = 100 }
[[knob]]
name = "panel"
constant = "kPanel"
values = [1, 16]
mechanism = "m"
[[constraint]]
require = "panel <= n_max"
reason = "a panel is no wider than the matrix"
)",
                                "knobs.toml");
  ASSERT_TRUE(space) << space.error().text;
  ASSERT_EQ(space->knobs.size(), 2u);
  EXPECT_EQ(space->Find("large.panel")->file, "large.h");
  EXPECT_EQ(space->Find("small.panel")->cases, std::vector<std::string>{"n32"});
  EXPECT_EQ(WhyInvalid(*space, {{"small.panel", 1}, {"large.panel", 16}}).value(), "");
  EXPECT_EQ(WhyInvalid(*space, {{"small.panel", 16}, {"large.panel", 1}}).value(),
            "a panel is no wider than the matrix (not panel <= n_max)");
}

TEST(Knobs, TheCpuTargetsOwnFileMatchesItsSources) {
  const std::filesystem::path root = CRUCIBLE_SOURCE_DIR;
  const auto space =
      ParseKnobs(ReadFile(root / "kernels/eigh/cpu/knobs.toml").value(), "knobs.toml");
  ASSERT_TRUE(space) << space.error().text;
  const auto configuration = ReadConfiguration(*space, root);
  ASSERT_TRUE(configuration) << configuration.error().text;
  EXPECT_EQ(WhyInvalid(*space, *configuration).value(), "");
}

ProposalSearch Search(std::set<std::string> rejected = {}) {
  return ProposalSearch(ParseKnobs(kFile, "knobs.toml").value(), {{"block", 1}, {"width", 1}},
                        {"small"}, std::move(rejected));
}

TEST(ProposalSearch, NeverProposesTheSameConfigurationTwice) {
  ProposalSearch search = Search();
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto proposal = search.Next().value();
    if (!proposal) {
      // Valid ones besides the incumbent: block 2 and 4 alone, 4 with width 4.
      EXPECT_GE(seen.size(), 3u);
      return;
    }
    EXPECT_TRUE(seen.insert(CanonicalText(proposal->configuration)).second);
    search.Rejected(*proposal, 1.01);
  }
  FAIL() << "the search never ends";
}

TEST(ProposalSearch, RepairsAMoveThatAConstraintRefuses) {
  ProposalSearch search = Search();
  bool repaired = false;
  for (auto proposal = search.Next().value(); proposal; proposal = search.Next().value()) {
    if (proposal->repaired) {
      repaired = true;
      EXPECT_EQ(proposal->configuration.at("width"), 4);
      EXPECT_EQ(proposal->configuration.at("block"), 4);
      EXPECT_EQ(proposal->turned.size(), 2u);
    }
    EXPECT_TRUE(proposal->refused.empty() || proposal->turned.size() == 1);
    search.Rejected(*proposal, std::nullopt);
  }
  EXPECT_TRUE(repaired);
}

TEST(ProposalSearch, FollowsTheKnobThatPaid) {
  ProposalSearch search = Search();
  auto proposal = search.Next().value();
  while (proposal && proposal->turned != std::vector<std::string>{"block"}) {
    search.Rejected(*proposal, 1.5);
    proposal = search.Next().value();
  }
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->configuration.at("block"), 2);
  search.Accepted(*proposal, 0.8);
  EXPECT_EQ(search.incumbent().at("block"), 2);
  const auto next = search.Next().value();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->configuration.at("block"), 4);
}

TEST(ProposalSearch, TriesThePriorsValueFirst) {
  KnobSpace space = ParseKnobs(kFile, "knobs.toml").value();
  space.knobs[0].first = 4;
  ProposalSearch search(space, {{"block", 1}, {"width", 1}}, {"small"}, {});
  const auto proposal = search.Next().value();
  ASSERT_TRUE(proposal);
  EXPECT_EQ(CanonicalText(proposal->configuration), "block=4 width=1");
}

TEST(ProposalSearch, KnowsWhatTheLogRejected) {
  ProposalSearch search = Search({"block=2 width=1", "block=4 width=1", "block=4 width=4"});
  for (auto proposal = search.Next().value(); proposal; proposal = search.Next().value()) {
    EXPECT_FALSE(proposal->refused.empty()) << CanonicalText(proposal->configuration);
    search.Rejected(*proposal, std::nullopt);
  }
}

TEST(ProposalSearch, LeavesKnobsOfOtherCasesAlone) {
  ProposalSearch search(ParseKnobs(kFile, "knobs.toml").value(), {{"block", 4}, {"width", 1}},
                        {"large"}, {});
  const auto proposal = search.Next().value();
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->turned, std::vector<std::string>{"width"});
  search.Rejected(*proposal, 1.2);
  EXPECT_FALSE(search.Next().value());
}

TEST(ProposalSearch, RetestsComeFirst) {
  ProposalSearch search = Search({"block=4 width=1"});
  search.TryFirst({{"block", 4}});
  const auto proposal = search.Next().value();
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->configuration.at("block"), 4);
}

ProposalSearch SearchOfThree() {
  std::string file;
  for (const std::string name : {"a", "b", "c"})
    file += "[[knob]]\nname = \"" + name + "\"\nfile = \"tuning.h\"\nconstant = \"k" + name +
            "\"\nvalues = [1, 2]\nmechanism = \"" + name + "\"\n";
  return ProposalSearch(ParseKnobs(file, "knobs.toml").value(), {{"a", 1}, {"b", 1}, {"c", 1}}, {},
                        {});
}

TEST(ProposalSearch, GainsThatDrownInTheNoiseAreTriedTogether) {
  ProposalSearch search = SearchOfThree();
  search.Undecided(*search.Next().value(), 0.85);
  const auto second = search.Next().value();
  EXPECT_EQ(second->turned, std::vector<std::string>{"b"}) << "one alone is no sum";
  search.Undecided(*second, 0.9);
  const auto both = search.Next().value();
  ASSERT_TRUE(both);
  EXPECT_EQ(CanonicalText(both->configuration), "a=2 b=2 c=1");
  EXPECT_EQ(both->turned, (std::vector<std::string>{"a", "b"}));
  search.Undecided(*both, 0.8);
  search.Undecided(*search.Next().value(), 0.9);
  EXPECT_EQ(CanonicalText(search.Next().value()->configuration), "a=2 b=2 c=2") << "a third joins";
}

TEST(ProposalSearch, WhatDidNotLookLikeAGainJoinsNoSum) {
  ProposalSearch search = SearchOfThree();
  search.Undecided(*search.Next().value(), 0.85);
  search.Undecided(*search.Next().value(), 0.99);
  search.Rejected(*search.Next().value(), 0.8);
  // Pairs of the closest follow, as ever: never the two that were undecided, as a sum.
  const auto next = search.Next().value();
  ASSERT_TRUE(next);
  EXPECT_EQ(CanonicalText(next->configuration), "a=2 b=1 c=2");
}

TEST(ProposalSearch, ASumThatIsRejectedIsForgottenAndOneThatIsKeptIsHeld) {
  for (const bool kept : {false, true}) {
    ProposalSearch search = SearchOfThree();
    search.Undecided(*search.Next().value(), 0.85);
    search.Undecided(*search.Next().value(), 0.9);
    const auto both = search.Next().value();
    if (kept)
      search.Accepted(*both, 0.7);
    else
      search.Rejected(*both, 1.0);
    EXPECT_EQ(CanonicalText(search.incumbent()), kept ? "a=2 b=2 c=1" : "a=1 b=1 c=1");
    search.Undecided(*search.Next().value(), 0.9);
    const auto next = search.Next().value();
    EXPECT_FALSE(next && next->turned.size() > 2) << CanonicalText(next->configuration);
  }
}

TEST(ProposalSearch, WhatAnEarlierMissionCouldNotTellIsTriedTogetherBeforeOneByOne) {
  ProposalSearch search = SearchOfThree();
  for (const char* name : {"a", "b"}) {
    search.TryFirst({{name, 2}});
    search.Recall({{name, 2}}, 0.9);
  }
  const auto both = search.Next().value();
  EXPECT_EQ(CanonicalText(both->configuration), "a=2 b=2 c=1");
  ProposalSearch told = search;
  search.Undecided(*both, 0.9);
  EXPECT_EQ(CanonicalText(search.Next().value()->configuration), "a=2 b=1 c=1");
  told.Accepted(*both, 0.7);
  EXPECT_EQ(CanonicalText(told.Next().value()->configuration), "a=1 b=2 c=1")
      << "both are held: the search goes on from there";
}

}  // namespace
}  // namespace crucible
