// paths.h: where state lives.
//
// A repository's state is in `.crucible/` beside its common git directory, so every worktree of one
// repository shares it; $CRUCIBLE_HOME overrides. Device locks are shared by every repository of
// the machine: $CRUCIBLE_LOCK_DIR, else /run/lock/crucible (or /tmp/crucible-UID).
#pragma once

#include <filesystem>

#include "base/result.h"

namespace crucible {

// The folder the process works in; kNotFound where it was removed meanwhile.
Result<std::filesystem::path> CurrentFolder();

// The common git directory (".git" or a bare repository) that `start` lies in, by reading the
// files git documents (gitdir:, commondir); kNotFound outside a repository.
Result<std::filesystem::path> CommonGitDirectory(const std::filesystem::path& start);

// $CRUCIBLE_HOME, else `.crucible` beside the common git directory of `start`.
Result<std::filesystem::path> CrucibleHome(const std::filesystem::path& start);

// Created with mode 1777 where the machine's shared directory allows it, else the user's own.
Result<std::filesystem::path> LockDirectory();

// The folder of the running program, e.g. ".../build/bin".
std::filesystem::path ProgramDirectory();

}  // namespace crucible
