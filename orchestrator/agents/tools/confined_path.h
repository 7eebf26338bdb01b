// confined_path.h: which file a path of an agent's means, and whether the agent may touch it.
//
// Paths are relative to the worktree, or absolute. Every symbolic link on the way is resolved
// before anything is decided, so a link cannot lead out. Between the check and the use nothing of
// the agent's runs: its commands have ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/target.h"

namespace crucible {

struct ConfinedPath {
  std::filesystem::path file;  // absolute, without links
  std::string shown;           // relative to the worktree, or absolute outside it
};

// An existing file or folder at or below one of `roots` (the worktree first). kUsage names what is
// wrong; kNotFound where there is no such file.
Result<ConfinedPath> PathToRead(const std::vector<std::filesystem::path>& roots,
                                const std::string& path);

// A file of the worktree that the target lets an agent change; it may not exist yet. A link is not
// written through.
Result<ConfinedPath> PathToWrite(const std::filesystem::path& worktree, const Target& target,
                                 const std::string& path);

// "kernels/a/, kernels/b.h": what an agent may change, for a refusal.
std::string EditableText(const Target& target);

}  // namespace crucible
