// The mission's life cycle: the moves that exist, and a meaning for every word.
#include "missions/states.h"

#include <gtest/gtest.h>

#include <string>

namespace crucible {
namespace {

TEST(MissionStates, TheUsualLifeIsValidAndNothingLeavesDone) {
  const char* life[] = {"planned", "preparing", "running", "ended", "merging", "done"};
  for (int i = 0; i + 1 < 6; ++i) EXPECT_TRUE(IsValidMove(life[i], life[i + 1])) << life[i];
  for (const MissionWord& state : MissionStates()) {
    EXPECT_FALSE(IsValidMove("done", state.word));
    // Before its agent began nothing of it happened: a person's mission may wait again.
    EXPECT_EQ(IsValidMove(state.word, "planned"), state.word == "preparing") << state.word;
    EXPECT_FALSE(IsValidMove(state.word, state.word));
  }
  EXPECT_TRUE(IsValidMove("merging", "ended"));
  EXPECT_FALSE(IsValidMove("running", "merging"));
  EXPECT_FALSE(IsValidMove("planned", "running"));
  EXPECT_FALSE(IsValidMove("", "preparing"));
}

TEST(MissionStates, AWrongMoveEndsTheProgramAndNamesTheMission) {
  std::string state = "ended";
  MoveState("m3", &state, "merging");
  EXPECT_EQ(state, "merging");
  MoveState("m3", &state, "merging");  // staying is fine
  MoveState("m3", &state, "done");
  EXPECT_DEATH(MoveState("m3", &state, "merging"), "mission m3 goes from done to merging");
}

TEST(MissionStates, EveryStateCanReachDone) {
  for (const MissionWord& start : MissionStates()) {
    if (start.word == "done") continue;
    bool ends = IsValidMove(start.word, "done");
    for (const MissionWord& next : MissionStates())
      ends = ends || (IsValidMove(start.word, next.word) && IsValidMove(next.word, "done"));
    EXPECT_TRUE(ends) << start.word;
  }
}

TEST(MissionStates, WordsHaveMeanings) {
  EXPECT_EQ(MissionStates().size(), 6u);
  for (const char* outcome : {"candidate", "no_change", "pivot", "blocked", "budget", "crashed",
                              "stopped", "interrupted"})
    EXPECT_NE(MeaningOfOutcome(outcome), "") << outcome;
  EXPECT_NE(MeaningOfMergeOutcome("ratchet_failed"), "");
  EXPECT_NE(MeaningOfState("merging"), "");
  EXPECT_EQ(MeaningOfState("pivot"), "");
}

}  // namespace
}  // namespace crucible
