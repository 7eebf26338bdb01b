// states.h: the life of a mission, as words in the log with what each means.
//
// One table each for states, outcomes and merge outcomes: the log, the CLI and the docs use these
// words and these meanings. Pure.
//
//   planned -> preparing -> running -> ended -> merging -> done
//
// A step back exists only where a killed orchestrator is resumed (merging -> ended; a person's
// mission that was being prepared is planned again: preparing -> planned) or a merge waits for a
// person (merging -> ended, `flagged` or `awaiting_approval`).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace crucible {

struct MissionWord {
  std::string_view word, meaning;
};

std::span<const MissionWord> MissionStates();
std::span<const MissionWord> MissionOutcomes();  // how the agent ended
std::span<const MissionWord> MergeOutcomes();    // what became of its commit

// "" for an unknown word.
std::string_view MeaningOfState(std::string_view word);
std::string_view MeaningOfOutcome(std::string_view word);
std::string_view MeaningOfMergeOutcome(std::string_view word);

// May a mission's row go from one state to the other? Staying is no move; unknown words never.
bool IsValidMove(std::string_view from, std::string_view to);

// Every change of a mission's state goes through here. Staying is fine; a move that is none is a
// mistake of the program, which ends with the mission and both words named.
void MoveState(const std::string& mission, std::string* state, std::string_view to);

}  // namespace crucible
