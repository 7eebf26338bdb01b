#include "missions/states.h"

#include <algorithm>

#include "base/result.h"

namespace crucible {
namespace {

constexpr MissionWord kStates[] = {
    {"planned", "chosen or added by a person; nothing was made for it yet"},
    {"preparing", "its baseline, worktree and brief are being made"},
    {"running", "its agent works"},
    {"ended", "its agent is done; its commit waits for the merge (or for a person)"},
    {"merging", "its commit is being merged, built, checked and compared"},
    {"done", "nothing more happens to it"},
};

constexpr MissionWord kOutcomes[] = {
    {"candidate", "it left a commit that it believes is faster"},
    {"no_change", "it ended without a commit"},
    {"pivot", "it says that the idea is dead, with evidence"},
    {"blocked", "it could not go on and says why"},
    {"budget", "a limit ended it; its best commit is kept"},
    {"crashed", "its process broke"},
    {"stopped", "a person stopped its campaign while it worked"},
    {"interrupted", "its campaign was killed before it had ended; its best commit is kept"},
};

constexpr MissionWord kMergeOutcomes[] = {
    {"landed", "main moved to its merge commit"},
    {"conflict", "it does not merge onto main's tip"},
    {"check_failed", "the merged tree failed the full check"},
    {"ratchet_failed", "another case got slower than its ratchet allows"},
    {"not_faster", "the claimed cases are not faster on the merged tree"},
    {"inconclusive", "the noise was too large to say; it is to be measured again"},
    {"flagged", "the gain is so large that a person looks first"},
    {"awaiting_approval", "it passed; the campaign asks a person to approve each merge"},
    {"nothing_to_merge", "there was no commit to merge"},
    {"build_failed", "the merged tree does not build"},
    {"rejected_by_person", "a person declined it"},
    {"protected_path", "it changed files that no agent may change"},
    {"crashed", "the merge itself broke before a verdict"},
};

struct Move {
  std::string_view from, to;
};

constexpr Move kMoves[] = {
    {"planned", "preparing"}, {"planned", "done"},                            // cancelled
    {"preparing", "running"}, {"preparing", "ended"}, {"preparing", "done"},  // interrupted
    {"preparing", "planned"},                                                 // waits again
    {"running", "ended"},     {"running", "done"},                            // nothing to merge
    {"ended", "merging"},     {"ended", "done"},     // declined, or nothing to merge
    {"merging", "done"},      {"merging", "ended"},  // resumed, or waits for a person
};

std::string_view Meaning(std::span<const MissionWord> words, std::string_view word) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const MissionWord& w) { return w.word == word; });
  return found == words.end() ? std::string_view() : found->meaning;
}

}  // namespace

std::span<const MissionWord> MissionStates() { return kStates; }
std::span<const MissionWord> MissionOutcomes() { return kOutcomes; }
std::span<const MissionWord> MergeOutcomes() { return kMergeOutcomes; }
std::string_view MeaningOfState(std::string_view word) { return Meaning(kStates, word); }
std::string_view MeaningOfOutcome(std::string_view word) { return Meaning(kOutcomes, word); }
std::string_view MeaningOfMergeOutcome(std::string_view word) {
  return Meaning(kMergeOutcomes, word);
}

bool IsValidMove(std::string_view from, std::string_view to) {
  return std::any_of(std::begin(kMoves), std::end(kMoves),
                     [&](const Move& move) { return move.from == from && move.to == to; });
}

void MoveState(const std::string& mission, std::string* state, std::string_view to) {
  CRUCIBLE_CHECK(*state == to || IsValidMove(*state, to),
                 "mission " + mission + " goes from " + *state + " to " + std::string(to));
  *state = to;
}

}  // namespace crucible
