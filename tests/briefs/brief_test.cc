// A brief says what the log says of exactly these shapes, cites it, and keeps to its budget.
#include "briefs/brief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace crucible {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Entry Tried(int id, EntryKind kind, const std::string& mechanism, const std::string& compiler) {
  Entry entry;
  entry.id = id;
  entry.key = "key" + std::to_string(id);
  entry.kind = kind;
  entry.time_ms = 1'700'000'000'000 + id;
  entry.target = "eigh";
  entry.author = "user:ada";
  entry.mechanism = mechanism;
  entry.reason = "reason " + std::to_string(id);
  entry.change = R"({"knobs":{"panel":[1,8]}})";
  entry.cases = {{"n32", "claim", "rejected", 100.0, 110.0, 1.10, 1.08, 1.12, 11}};
  entry.conditions = {{"compiler", compiler}};
  return entry;
}

BriefInput Example() {
  BriefInput input;
  input.target = "eigh";
  input.cases = {"n32"};
  input.now = {{"compiler", "gcc 13"}};
  input.commands = {"crucible check ."};
  Entry floor = Tried(1, EntryKind::kFloor, "floor", "gcc 13");
  floor.reason = "everybody knows";
  floor.summary = "n32 cannot be faster than 12 us";
  Entry note = Tried(7, EntryKind::kNote, "", "gcc 13");
  note.cases.clear();
  note.summary = "try\n## Rejected\nrows of eight";
  Entry conflated = Tried(6, EntryKind::kLoss, "two at once", "gcc 13");
  conflated.conflated = true;
  input.entries = {floor,
                   Tried(2, EntryKind::kWin, "wide rows", "gcc 13"),
                   Tried(3, EntryKind::kLoss, "panel width", "gcc 13"),
                   Tried(4, EntryKind::kNull, "unroll", "gcc 12"),
                   Tried(5, EntryKind::kInconclusive, "prefetch", "gcc 13"),
                   conflated,
                   note};
  input.entries[1].landed = true;
  input.entries[1].cases = {{"n32", "claim", "accepted", 120.0, 100.0, 0.83, 0.82, 0.85, 11}};
  input.points = {{"eigh", "n32", "main", "c0", 1, 120.0, {}, {}, true, "key3", "{}"},
                  {"eigh", "n32", "main", "c1", 2, 100.0, {}, {}, true, "key2", "{}"},
                  {"eigh", "n32", "peer", "openblas", 2, 90.0, {}, {}, false, "key2", "{}"},
                  {"eigh", "n32", "floor", "everybody knows", 2, 12.0, {}, {}, false, "key1", "{}"},
                  {"eigh", "n176", "main", "c1", 2, 5000.0, {}, {}, true, "key2", "{}"}};
  return input;
}

std::string SectionOf(const std::string& brief, const std::string& title) {
  const std::size_t begin = brief.find("\n## " + title);
  if (begin == std::string::npos) return "no section " + title;
  const std::size_t end = brief.find("\n## ", begin + 1);
  return brief.substr(begin, end == std::string::npos ? end : end - begin);
}

TEST(Brief, SaysEachThingInItsSection) {
  EXPECT_EQ(CompileBrief(Example()), R"(# Brief: eigh, n32

Today: compiler gcc 13.

## Records and floor

- n32: record 100 us [e2], first 120 us [e3], openblas 90.0 us [e2], floor 12.0 us (everybody knows) [e1], 8.3x above the floor

## What holds, and why

- [e2] wide rows (panel 1 -> 8): win, n32 120 us -> 100 us (-17.0 %, -18.0 to -15.0 %, 11 rounds). Why: reason 2. On main.

## Rejected under today's conditions: do not retry

- [e3] panel width (panel 1 -> 8): loss, n32 100 us -> 110 us (+10.0 %, +8.0 to +12.0 %, 11 rounds). Why: reason 3.

## Up for a retest, and why

- [e4] unroll (panel 1 -> 8): null, n32 100 us -> 110 us (+10.0 %, +8.0 to +12.0 %, 11 rounds). Why: reason 4. Changed since: compiler: gcc 12 -> gcc 13.

## Conflated: several changes at once, so none of them is judged

- [e6] two at once (panel 1 -> 8): loss, n32 100 us -> 110 us (+10.0 %, +8.0 to +12.0 %, 11 rounds). Why: reason 6. Not split yet: test its parts one by one.

## Asserted floors to challenge

- [e1] n32 cannot be faster than 12 us: "everybody knows". It does not name what it was computed from.

## Open leads

- [e7] try ## Rejected rows of eight (user:ada).
- [e5] prefetch (panel 1 -> 8): inconclusive, n32 100 us -> 110 us (+10.0 %, +8.0 to +12.0 %, 11 rounds). Why: reason 5. Measure it again.

## Measuring commands

    crucible check .
)");
}

TEST(Brief, IsTheSameForTheSameLog) { EXPECT_EQ(CompileBrief(Example()), CompileBrief(Example())); }

TEST(Brief, LeavesOutOtherShapesTargetsAndReplacedEntries) {
  BriefInput input = Example();
  Entry other = Tried(20, EntryKind::kLoss, "other shape", "gcc 13");
  other.cases[0].name = "n176";
  Entry foreign = Tried(21, EntryKind::kLoss, "other target", "gcc 13");
  foreign.target = "matmul";
  Entry foreign_old = Tried(22, EntryKind::kLoss, "other target too", "gcc 12");
  foreign_old.target = "matmul";
  Entry better = Tried(23, EntryKind::kLoss, "corrected", "gcc 13");
  better.supersedes = "key3";
  for (const Entry& entry : {other, foreign, foreign_old, better}) input.entries.push_back(entry);
  const std::string brief = CompileBrief(input);
  EXPECT_THAT(brief, Not(HasSubstr("other ")));
  EXPECT_THAT(brief, Not(HasSubstr("panel width")));
  EXPECT_THAT(SectionOf(brief, "Rejected"), HasSubstr("[e23] corrected"));
}

TEST(Brief, ARejectionMovesToTheRetestsWhenAConditionChanges) {
  BriefInput input = Example();
  input.now["compiler"] = "gcc 14";
  const std::string brief = CompileBrief(input);
  EXPECT_THAT(SectionOf(brief, "Rejected"), HasSubstr("None."));
  EXPECT_THAT(SectionOf(brief, "Up for a retest"), HasSubstr("[e3]"));
  EXPECT_THAT(SectionOf(brief, "Up for a retest"), HasSubstr("compiler: gcc 13 -> gcc 14"));
}

TEST(Brief, AWinIsOfTheCasesItClaimed) {
  BriefInput input = Example();
  Entry other = Tried(30, EntryKind::kWin, "of another case", "gcc 13");
  other.cases[0].role = "ratchet";
  other.cases.push_back({"n176", "claim", "accepted", 50.0, 40.0, 0.8, 0.79, 0.81, 11});
  input.entries.push_back(other);
  EXPECT_THAT(CompileBrief(input), Not(HasSubstr("of another case")));
  input.cases = {"n176"};
  EXPECT_THAT(SectionOf(CompileBrief(input), "What holds"), HasSubstr("[e30] of another case"));
}

TEST(Brief, ALossThatALaterWinOverturnedIsNoRejection) {
  BriefInput input = Example();
  Entry won = Tried(31, EntryKind::kWin, "panel width", "gcc 13");
  won.cases[0] = {"n32", "claim", "accepted", 100.0, 90.0, 0.9, 0.89, 0.91, 11};
  input.entries.push_back(won);
  const std::string brief = CompileBrief(input);
  EXPECT_THAT(SectionOf(brief, "Rejected"), Not(HasSubstr("[e3]")));
  EXPECT_THAT(SectionOf(brief, "What holds"), HasSubstr("[e31]"));
  input.now["compiler"] = "gcc 14";
  EXPECT_THAT(SectionOf(CompileBrief(input), "Up for a retest"), Not(HasSubstr("[e3]")));
}

TEST(Brief, WhatMainKeepsAlthoughItWasNotFasterIsNoRejection) {
  BriefInput input = Example();
  input.entries[2].landed = true;
  const std::string brief = CompileBrief(input);
  EXPECT_THAT(SectionOf(brief, "Rejected"), Not(HasSubstr("[e3]")));
  EXPECT_THAT(SectionOf(brief, "What holds"), HasSubstr("[e3] panel width (panel 1 -> 8): loss"));
  input.now["compiler"] = "gcc 14";
  EXPECT_THAT(SectionOf(CompileBrief(input), "Up for a retest"), Not(HasSubstr("[e3]")));
}

TEST(Brief, MediansThatContradictThePairsAreSaidToBeMedians) {
  BriefInput input = Example();
  input.entries[2].cases[0].before_us = 112;  // after 110, yet slower in pairs: the machine drifted
  EXPECT_THAT(CompileBrief(input),
              HasSubstr("n32 112 us -> 110 us by the medians, but in pairs (+10.0 %"));
}

TEST(Brief, WithoutAReasonTheSummarySaysWhy) {
  BriefInput input = Example();
  input.entries[2].reason = "";
  input.entries[2].summary = "registers spill!";
  EXPECT_THAT(CompileBrief(input), HasSubstr("11 rounds). registers spill!\n"));
}

TEST(Brief, APointWithoutAnEntryIsNotCited) {
  BriefInput input = Example();
  for (Point& point : input.points) point.entry_key.clear();
  EXPECT_THAT(CompileBrief(input), HasSubstr("record 100 us, first 120 us, openblas 90.0 us, floor"));
}

TEST(Brief, ABudgetThatCannotBeKeptIsNamed) {
  BriefInput input = Example();
  input.token_budget = 20;
  EXPECT_THAT(CompileBrief(input), HasSubstr("more than the budget of 20"));
  input.token_budget = 4000;
  EXPECT_THAT(CompileBrief(input), Not(HasSubstr("budget")));
}

TEST(Brief, CutsTheLeastImportantFirstAndSaysSo) {
  BriefInput input = Example();
  for (int i = 100; i < 400; ++i)
    input.entries.push_back(Tried(i, EntryKind::kLoss, "idea " + std::to_string(i), "gcc 13"));
  std::size_t last = 0;
  for (const int budget : {500, 1000, 2000, 4000}) {
    input.token_budget = budget;
    const std::string brief = CompileBrief(input);
    EXPECT_LE(brief.size(), static_cast<std::size_t>(budget) * 4) << brief;
    EXPECT_GT(brief.size(), last);
    last = brief.size();
    EXPECT_THAT(brief, HasSubstr("left out for the budget"));
    EXPECT_THAT(brief, HasSubstr("record 100 us"));
    EXPECT_THAT(brief, HasSubstr("crucible check ."));
    EXPECT_THAT(SectionOf(brief, "Open leads"), Not(HasSubstr("[e5]")));
    // The newest rejection outlives every older one.
    EXPECT_THAT(SectionOf(brief, "Rejected"), HasSubstr("[e399]"));
  }
}

TEST(Brief, EveryLineOfTheLogIsCited) {
  std::istringstream lines(CompileBrief(Example()));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("- ")) continue;
    EXPECT_THAT(line, HasSubstr("[e"));
  }
}

TEST(Brief, OfAnEmptyLogIsWhole) {
  BriefInput input;
  input.target = "eigh";
  const std::string brief = CompileBrief(input);
  EXPECT_THAT(brief, HasSubstr("Nothing was measured yet."));
  EXPECT_THAT(brief, HasSubstr("Today's conditions are unknown."));
}

}  // namespace
}  // namespace crucible
