// repository_internal.h: what the files that implement Repository share. Nobody else includes it.
#pragma once

#include <git2.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "orchestrator/git_handle.h"
#include "orchestrator/repository.h"

namespace crucible {

using GitRepository = GitHandle<git_repository, git_repository_free>;
using GitReference = GitHandle<git_reference, git_reference_free>;
using GitObject = GitHandle<git_object, git_object_free>;
using GitCommit = GitHandle<git_commit, git_commit_free>;
using GitTree = GitHandle<git_tree, git_tree_free>;
using GitTreeEntry = GitHandle<git_tree_entry, git_tree_entry_free>;
using GitBlob = GitHandle<git_blob, git_blob_free>;
using GitIndex = GitHandle<git_index, git_index_free>;
using GitDiff = GitHandle<git_diff, git_diff_free>;
using GitStatusList = GitHandle<git_status_list, git_status_list_free>;
using GitSignature = GitHandle<git_signature, git_signature_free>;
using GitWorktree = GitHandle<git_worktree, git_worktree_free>;
using GitBranchIterator = GitHandle<git_branch_iterator, git_branch_iterator_free>;
using GitConflictIterator =
    GitHandle<git_index_conflict_iterator, git_index_conflict_iterator_free>;

struct Repository::Impl {
  GitRepository repository;      // the main one, never a linked worktree
  std::filesystem::path common;  // absolute, no trailing '/'
  std::string main_branch;
  bool bare = false;

  std::string MainRef() const { return "refs/heads/" + main_branch; }
  // move_main.cc; the caller holds the lock of moves.
  Result<> FinishMove(std::string* note);
  tl::unexpected<Error> WhyNotMoved(int code, const std::string& expected,
                                    const std::string& commit) const;
};

// libgit2's own words about the call that just failed with `code`, as one of our errors.
tl::unexpected<Error> GitFail(std::string_view action, std::string_view object, int code,
                              std::string_view next_step = "");

std::string ToHex(const git_oid& id);
Result<GitCommit> FindCommit(git_repository* repository, const std::string& revision);
// `author` is "Name <mail>" or a plain name.
Result<GitSignature> SignatureOf(const std::string& author);

// One place where a branch can be checked out. Read from git's own files, so that a half-made or
// half-removed worktree is seen as well.
struct Checkout {
  std::string name;                      // "" for the main one
  std::filesystem::path directory;       // "" where the administrative files do not say
  std::filesystem::path administration;  // its git directory
  std::string head;                      // "refs/heads/…", or "" when detached or unreadable
};
std::vector<Checkout> Checkouts(const std::filesystem::path& common, bool bare);
// Those that have `ref` checked out and whose folder is there.
std::vector<Checkout> CheckoutsOf(const std::filesystem::path& common, bool bare,
                                  const std::string& ref);

// Opens exactly the worktree at `directory`: never a repository that merely contains it (missions
// live below the main checkout, so a search upwards would find a person's files).
Result<GitRepository> OpenWorktreeAt(const std::filesystem::path& common,
                                     const std::filesystem::path& directory);

// Changes against HEAD, untracked files one by one, ignored ones left out, sorted by path.
// `tracked_only` leaves the untracked ones out as well.
Result<std::vector<ChangedPath>> StatusOf(git_repository* repository, bool tracked_only);

}  // namespace crucible
