// follow_main.h: the files of a checkout that shows main, when main has moved. Private to
// Repository.
//
// A person's own checkout is involved, so nothing that a person wrote is ever overwritten: the
// usual way is libgit2's safe checkout, and after a kill in the middle of it each path is looked at
// first.
#pragma once

#include <string>

#include "orchestrator/repository_internal.h"

namespace crucible {

struct MainMove {
  std::string from, to;  // commit ids
};

// Brings the files of a clean checkout over; main's ref has moved already.
Result<> FollowFiles(git_repository* checkout, const MainMove& move);

// The same where a kill may have left it half done: some files old, some new, one cut off, the
// index old or new, index.lock left. Returns why it was left alone, "" where it was finished.
Result<std::string> FinishFollowing(const Checkout& checkout, git_repository* repository,
                                    const MainMove& move);

// What a person runs to bring a checkout over that was left alone.
std::string FollowByHand(const MainMove& move);

// A git program works in `directory` (crucible's own worktrees below it do not count).
bool GitRunsIn(const std::filesystem::path& directory);

}  // namespace crucible
