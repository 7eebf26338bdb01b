// repository.h: everything crucible does to git, through libgit2.
//
// Worktrees are made off main for missions and thrown away; merges are made in memory onto the tip
// of main and checked out in the integration worktree, never in one a person uses; main moves by
// compare-and-swap only. Branches of crucible's own live under refs/heads/crucible/. Every call
// opens what it needs and leaves no residue when it fails. Not thread-safe per object.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace crucible {

struct MergeOutcome {
  std::string commit;  // the merge commit (or the commit itself: fast-forward); "" on conflict
  std::vector<std::string> conflicts;  // paths, when it does not merge
};

struct ChangedPath {
  std::string path;
  char status = 'M';  // A added, M modified, D deleted, R renamed, T type changed
};

class Repository {
 public:
  // `start` lies in the repository (a worktree of it, or bare). `main_branch` is what merges move;
  // empty: `main` where there is one, else the branch that the repository's HEAD names. kNotFound
  // outside one; kUsage with the safe.directory advice on one of a foreign owner, or without a
  // commit on that branch.
  static Result<Repository> Open(const std::filesystem::path& start,
                                 const std::string& main_branch);
  Repository(Repository&&) noexcept;
  Repository& operator=(Repository&&) noexcept;
  ~Repository();

  const std::filesystem::path& common_directory() const;  // absolute
  const std::string& main_branch() const;                 // its name, found or given
  bool is_bare() const;

  Result<std::string> MainTip();                             // commit id, 40 hex digits
  Result<std::string> Resolve(const std::string& revision);  // any revision -> commit id
  // Hash of the sub-trees/blobs at `paths` (relative; missing ones count as such) in a commit: the
  // kernel generation of those shapes.
  Result<std::string> TreeHash(const std::string& commit, const std::vector<std::string>& paths);
  // Every file at or below `path` (a trailing '/' is fine) with its blob id, in order of the path;
  // nothing when the path is not there.
  Result<std::vector<std::pair<std::string, std::string>>> ListFiles(const std::string& commit,
                                                                     const std::string& path);
  Result<std::string> ReadFileAt(const std::string& commit, const std::string& path);
  Result<bool> IsAncestor(const std::string& ancestor, const std::string& commit);

  // Uncommitted changes of the checkout that has main checked out, if there is one (ignored files
  // do not count). Empty: clean, or nobody has main checked out.
  Result<std::vector<std::string>> DirtyPathsOfMain();

  // A new worktree at `directory` with a new branch off `commit`. A left-over branch or directory
  // of that name is an error (kConflict); on failure nothing stays behind.
  Result<> AddWorktree(const std::string& name, const std::filesystem::path& directory,
                       const std::string& branch, const std::string& commit);
  // The detached integration worktree: made when missing, else hard-reset to `commit` and cleaned
  // of everything untracked.
  Result<> CheckoutDetached(const std::string& name, const std::filesystem::path& directory,
                            const std::string& commit);
  // Removes directory, administrative files and (if given) the branch; what is missing is fine.
  Result<> RemoveWorktree(const std::string& name, const std::filesystem::path& directory,
                          const std::string& branch);
  struct WorktreeInfo {
    std::string name;
    std::filesystem::path directory;
  };
  Result<std::vector<WorktreeInfo>> Worktrees();
  Result<std::vector<std::string>> Branches(const std::string& prefix);  // short names
  Result<> DeleteBranch(const std::string& branch);

  // In a worktree directory: commits everything changed there (tracked and untracked, not ignored).
  // Returns the commit id; kConflict "nothing to commit" when there is no change.
  Result<std::string> CommitAll(const std::filesystem::path& worktree, const std::string& message,
                                const std::string& author);
  // Throws away every change in that worktree and goes back to its HEAD commit.
  Result<> ResetHard(const std::filesystem::path& worktree, const std::string& commit);
  // Paths that differ between two commits, renames as A + D.
  Result<std::vector<ChangedPath>> ChangedPaths(const std::string& from, const std::string& to);
  // Paths changed in a worktree against its HEAD, untracked ones too (ignored ones not).
  Result<std::vector<ChangedPath>> WorktreeChanges(const std::filesystem::path& worktree);
  Result<std::string> DiffText(const std::string& from, const std::string& to,
                               std::size_t max_bytes);

  // Merges `commit` onto `onto` in memory and writes the merge commit (no ref moves). A commit that
  // already descends from `onto` still gets a merge commit, so history shows each mission.
  Result<MergeOutcome> Merge(const std::string& onto, const std::string& commit,
                             const std::string& message, const std::string& author);
  // Compare-and-swap: main goes from `expected` to `commit`, else kConflict. If a checkout has main
  // checked out and is clean, its files follow; if not clean they are left alone and `note` says
  // so. What is about to happen is written down first (crucible-move in the git directory).
  Result<> MoveMain(const std::string& expected, const std::string& commit,
                    std::string* note = nullptr);
  // After a kill within MoveMain: takes away the locks it left and, where main had moved, brings
  // the files of the checkouts that were clean over. Only where each path is byte for byte as in
  // the old or the new commit, or cut off on the way to the new one; else the checkout is left
  // alone and `note` says what to run. Does nothing where no move was interrupted.
  Result<> FinishMove(std::string* note = nullptr);

 private:
  struct Impl;
  explicit Repository(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace crucible
