#include "orchestrator/follow_main.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/files.h"

namespace crucible {
namespace fs = std::filesystem;

namespace {

struct Trees {
  GitTree from, to;
};

// Looked up in this very handle: libgit2 refuses objects that another handle gave.
Result<Trees> TreesOf(git_repository* repository, const MainMove& move) {
  CRUCIBLE_ASSIGN(GitCommit from, FindCommit(repository, move.from));
  CRUCIBLE_ASSIGN(GitCommit to, FindCommit(repository, move.to));
  Trees trees;
  int code = git_commit_tree(trees.from.Out(), from.get());
  if (code >= 0) code = git_commit_tree(trees.to.Out(), to.get());
  if (code < 0) return GitFail("read the trees of", move.from + " and " + move.to, code);
  return trees;
}

// The blobs of a path before and after; nothing where it is not there.
struct TwoSides {
  std::optional<git_oid> before, after;

  bool Has(const git_oid& id) const {
    return (before && git_oid_equal(&*before, &id) != 0) ||
           (after && git_oid_equal(&*after, &id) != 0);
  }
  bool MayBeMissing() const { return !before || !after; }
};

Result<std::map<std::string, TwoSides>> ChangesOf(git_repository* repository, const Trees& trees) {
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_INCLUDE_TYPECHANGE;
  GitDiff diff;
  if (const int code =
          git_diff_tree_to_tree(diff.Out(), repository, trees.from.get(), trees.to.get(), &options);
      code < 0)
    return GitFail("compare trees in", git_repository_path(repository), code);
  std::map<std::string, TwoSides> changes;
  for (std::size_t i = 0; i < git_diff_num_deltas(diff.get()); ++i) {
    const git_diff_delta* delta = git_diff_get_delta(diff.get(), i);
    if (delta->status != GIT_DELTA_ADDED) changes[delta->old_file.path].before = delta->old_file.id;
    if (delta->status != GIT_DELTA_DELETED)
      changes[delta->new_file.path].after = delta->new_file.id;
  }
  return changes;
}

// A kill while libgit2 wrote the file leaves its beginning.
bool IsBeginningOf(git_repository* repository, const git_oid& id, const std::string& path,
                   const std::string& text) {
  GitBlob blob;
  if (git_blob_lookup(blob.Out(), repository, &id) < 0) return false;
  git_blob_filter_options options = GIT_BLOB_FILTER_OPTIONS_INIT;
  git_buf whole = GIT_BUF_INIT;
  if (git_blob_filter(&whole, blob.get(), path.c_str(), &options) < 0) return false;
  const bool beginning = std::string_view(whole.ptr, whole.size).starts_with(text);
  git_buf_dispose(&whole);
  return beginning;
}

bool BehindALink(const fs::path& root, const fs::path& path) {
  fs::path at = root;
  std::error_code ignored;
  for (const fs::path& part : path.parent_path())
    if (fs::is_symlink(fs::symlink_status(at /= part, ignored))) return true;
  return false;
}

// Nobody but a checkout from the one commit to the other made this file what it is.
bool IsOurs(git_repository* repository, const fs::path& root, const std::string& path,
            const TwoSides& sides) {
  std::error_code error;
  const fs::path file = root / path;
  const fs::file_status status = fs::symlink_status(file, error);
  if (BehindALink(root, path)) return false;
  if (status.type() == fs::file_type::not_found) return true;  // removed before it is written anew
  git_oid id;
  if (fs::is_symlink(status)) {
    const std::string text = fs::read_symlink(file, error).string();
    return !error && git_odb_hash(&id, text.data(), text.size(), GIT_OBJECT_BLOB) >= 0 &&
           sides.Has(id);
  }
  if (!fs::is_regular_file(status)) return false;
  if (git_repository_hashfile(&id, repository, file.c_str(), GIT_OBJECT_BLOB, path.c_str()) < 0)
    return false;
  if (sides.Has(id)) return true;
  const auto text = ReadFile(file);
  return sides.after && text && IsBeginningOf(repository, *sides.after, path, *text);
}

// The first path that somebody else changed, "" where there is none.
Result<std::string> ForeignPath(git_repository* repository, const fs::path& root,
                                const std::map<std::string, TwoSides>& changes) {
  CRUCIBLE_ASSIGN(const std::vector<ChangedPath> changed,
                  StatusOf(repository, /*tracked_only=*/true));
  for (const ChangedPath& change : changed)
    if (!changes.contains(change.path)) return change.path;
  GitIndex index;
  if (const int code = git_repository_index(index.Out(), repository); code < 0)
    return GitFail("read the index of", root.string(), code);
  if (git_index_has_conflicts(index.get()) != 0) return std::string("a merge that is not resolved");
  for (const auto& [path, sides] : changes) {
    const git_index_entry* entry = git_index_get_bypath(index.get(), path.c_str(), 0);
    const bool index_is_ours = entry != nullptr ? sides.Has(entry->id) : sides.MayBeMissing();
    if (!index_is_ours || !IsOurs(repository, root, path, sides)) return path;
  }
  return std::string();
}

Result<> CheckoutTree(git_repository* repository, const Trees& trees, unsigned strategy,
                      std::vector<char*> paths) {
  git_checkout_options options = GIT_CHECKOUT_OPTIONS_INIT;
  options.checkout_strategy = strategy;
  options.baseline = trees.from.get();
  options.paths = {paths.data(), paths.size()};
  const int code =
      git_checkout_tree(repository, reinterpret_cast<const git_object*>(trees.to.get()), &options);
  if (code < 0) return GitFail("update files of", git_repository_workdir(repository), code);
  return {};
}

}  // namespace

Result<> FollowFiles(git_repository* checkout, const MainMove& move) {
  CRUCIBLE_ASSIGN(const Trees trees, TreesOf(checkout, move));
  return CheckoutTree(checkout, trees, GIT_CHECKOUT_SAFE | GIT_CHECKOUT_DONT_OVERWRITE_IGNORED, {});
}

Result<std::string> FinishFollowing(const Checkout& checkout, git_repository* repository,
                                    const MainMove& move) {
  CRUCIBLE_ASSIGN(const Trees trees, TreesOf(repository, move));
  CRUCIBLE_ASSIGN(auto changes, ChangesOf(repository, trees));
  CRUCIBLE_ASSIGN(const std::string foreign, ForeignPath(repository, checkout.directory, changes));
  if (!foreign.empty()) return "somebody changed " + foreign;
  const fs::path lock = checkout.administration / "index.lock";
  std::error_code error;
  if (fs::exists(lock, error)) {
    if (GitRunsIn(checkout.directory))
      return "a git program works there and holds " + lock.string();
    fs::remove(lock, error);  // of the process that was killed
  }
  std::vector<std::string> names;
  for (const auto& [path, sides] : changes) names.push_back(path);
  std::vector<char*> paths;
  for (std::string& name : names) paths.push_back(name.data());
  // An empty list would mean every path.
  if (!paths.empty())
    CRUCIBLE_TRY(CheckoutTree(repository, trees,
                              GIT_CHECKOUT_FORCE | GIT_CHECKOUT_DISABLE_PATHSPEC_MATCH, paths));
  return std::string();
}

std::string FollowByHand(const MainMove& move) {
  const std::string from = move.from.substr(0, 12), to = move.to.substr(0, 12);
  return "its files still show " + from + "; there, `git read-tree -m -u " + from + " " + to +
         "` brings them over and keeps what was changed, `git checkout HEAD -- PATH` takes one "
         "file of the merge";
}

bool GitRunsIn(const fs::path& directory) {
  std::error_code error;
  const fs::path root = fs::canonical(directory, error);
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto name = ReadFile(it->path() / "comm");
    if (!name || !name->starts_with("git")) continue;
    std::error_code unreadable;
    const fs::path where = fs::read_symlink(it->path() / "cwd", unreadable);
    if (unreadable) continue;
    const std::string inside = where.lexically_relative(root).string();
    if (!inside.empty() && !inside.starts_with("..") && !inside.starts_with(".crucible"))
      return true;
  }
  return false;
}

}  // namespace crucible
