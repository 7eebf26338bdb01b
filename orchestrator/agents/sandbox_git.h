// sandbox_git.h: what of a worktree's git metadata a sandbox shows, so that git can be read inside.
//
// A linked worktree's metadata lies in the main repository, beside every other mission's and a
// configuration that may hold credentials. Shown: the worktree's own folder and the object store,
// read-only, and three files made up here: HEAD, a configuration of core settings only, and
// packed-refs with the worktree's own branch. The worktree's `.git` is read-only too, or a command
// could point the git that runs outside at hooks of its own.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

struct SandboxGit {
  std::vector<std::filesystem::path> read_only;        // bound as they are
  std::map<std::filesystem::path, std::string> files;  // text to put there
  std::map<std::string, std::string> environment;
};

// Empty when `worktree` is none. kUsage when its `.git` is a symbolic link.
Result<SandboxGit> GitForSandbox(const std::filesystem::path& worktree);

// The lines of a git configuration that reading needs: of [core] and [extensions], by name.
std::string ReadableGitConfig(const std::string& text);

}  // namespace crucible
