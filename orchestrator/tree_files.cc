// tree_files.cc: the files of a commit, for hashes over some of them.
#include <algorithm>

#include "orchestrator/repository_internal.h"

namespace crucible {
namespace {

struct Listing {
  std::string path;  // wanted, without a trailing '/'
  std::vector<std::pair<std::string, std::string>> files;
};

// libgit2 calls it for every entry of the tree, folders before what is in them.
int Collect(const char* root, const git_tree_entry* entry, void* payload) {
  auto* listing = static_cast<Listing*>(payload);
  const std::string path = std::string(root) + git_tree_entry_name(entry);
  const std::string& wanted = listing->path;
  const bool below = wanted.empty() || path == wanted || path.starts_with(wanted + "/");
  if (git_tree_entry_type(entry) == GIT_OBJECT_TREE) {
    const bool on_the_way = below || wanted.starts_with(path + "/");
    return on_the_way ? 0 : 1;  // 1: skip this folder
  }
  if (below) listing->files.emplace_back(path, ToHex(*git_tree_entry_id(entry)));
  return 0;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> Repository::ListFiles(
    const std::string& commit, const std::string& path) {
  CRUCIBLE_ASSIGN(GitCommit found, FindCommit(impl_->repository.get(), commit));
  GitTree tree;
  if (const int code = git_commit_tree(tree.Out(), found.get()); code < 0)
    return GitFail("list the files of", commit, code);
  Listing listing{path, {}};
  while (!listing.path.empty() && listing.path.back() == '/') listing.path.pop_back();
  if (const int code = git_tree_walk(tree.get(), GIT_TREEWALK_PRE, Collect, &listing); code < 0)
    return GitFail("list the files of", commit, code);
  std::sort(listing.files.begin(), listing.files.end());
  return std::move(listing.files);
}

}  // namespace crucible
