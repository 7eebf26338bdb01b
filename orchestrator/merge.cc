// merge.cc: commits in a worktree and merges in memory. move_main.cc moves main.
#include <algorithm>
#include <set>

#include "base/files.h"
#include "orchestrator/repository_internal.h"

namespace crucible {
namespace fs = std::filesystem;

namespace {

Result<std::string> CreateCommit(git_repository* repository, const char* update_ref,
                                 const std::string& author, const std::string& message,
                                 const git_oid& tree_id, std::vector<const git_commit*> parents) {
  CRUCIBLE_ASSIGN(GitSignature signature, SignatureOf(author));
  GitTree tree;
  int code = git_tree_lookup(tree.Out(), repository, &tree_id);
  git_oid id;
  if (code >= 0)
    code = git_commit_create(&id, repository, update_ref, signature.get(), signature.get(), "UTF-8",
                             message.c_str(), tree.get(), parents.size(), parents.data());
  if (code < 0) return GitFail("commit to", git_repository_path(repository), code);
  return ToHex(id);
}

std::vector<std::string> ConflictPaths(git_index* index) {
  std::set<std::string> paths;
  GitConflictIterator iterator;
  if (git_index_conflict_iterator_new(iterator.Out(), index) < 0) return {};
  const git_index_entry *ancestor, *ours, *theirs;
  while (git_index_conflict_next(&ancestor, &ours, &theirs, iterator.get()) >= 0)
    for (const git_index_entry* entry : {ancestor, ours, theirs})
      if (entry != nullptr) paths.insert(entry->path);
  return {paths.begin(), paths.end()};
}

// Crucible's own state beside the git directory is no change of the person's.
void LeaveOutOwnState(std::vector<ChangedPath>& changed) {
  std::erase_if(changed, [](const ChangedPath& c) { return c.path.starts_with(".crucible/"); });
}

}  // namespace

Result<GitSignature> SignatureOf(const std::string& author) {
  std::string name = author, mail = "crucible@localhost";
  if (const auto open = author.find('<'); open != std::string::npos) {
    name = author.substr(0, open);
    mail = author.substr(open + 1, author.find('>', open) - open - 1);
  }
  while (!name.empty() && name.back() == ' ') name.pop_back();
  GitSignature signature;
  if (const int code = git_signature_now(signature.Out(), name.c_str(), mail.c_str()); code < 0)
    return GitFail("make a signature of", "\"" + author + "\"", code,
                   "an author is \"Name\" or \"Name <mail>\"");
  return signature;
}

Result<std::vector<std::string>> Repository::DirtyPathsOfMain() {
  std::vector<std::string> paths;
  for (const Checkout& checkout : CheckoutsOf(impl_->common, impl_->bare, impl_->MainRef())) {
    CRUCIBLE_ASSIGN(GitRepository opened, OpenWorktreeAt(impl_->common, checkout.directory));
    CRUCIBLE_ASSIGN(std::vector<ChangedPath> changed, StatusOf(opened.get(), false));
    LeaveOutOwnState(changed);
    for (ChangedPath& change : changed) paths.push_back(std::move(change.path));
  }
  return paths;
}

Result<std::string> Repository::CommitAll(const fs::path& worktree, const std::string& message,
                                          const std::string& author) {
  CRUCIBLE_ASSIGN(GitRepository repository, OpenWorktreeAt(impl_->common, worktree));
  CRUCIBLE_ASSIGN(GitCommit head, FindCommit(repository.get(), "HEAD"));
  GitIndex index;
  git_oid tree_id;
  int code = git_repository_index(index.Out(), repository.get());
  if (code >= 0) code = git_index_read(index.get(), 1);
  if (code >= 0) code = git_index_add_all(index.get(), nullptr, 0, nullptr, nullptr);
  if (code >= 0) code = git_index_write(index.get());
  if (code >= 0) code = git_index_write_tree(&tree_id, index.get());
  if (code == GIT_ELOCKED)
    return GitFail("commit in", worktree.string(), code,
                   "if no git runs there, remove index.lock of that worktree and try again");
  if (code < 0) return GitFail("commit in", worktree.string(), code);
  if (git_oid_equal(&tree_id, git_commit_tree_id(head.get())) != 0)
    return Fail(ErrorKind::kConflict, "commit in", worktree.string(), "nothing to commit");
  return CreateCommit(repository.get(), "HEAD", author, message, tree_id, {head.get()});
}

Result<MergeOutcome> Repository::Merge(const std::string& onto, const std::string& commit,
                                       const std::string& message, const std::string& author) {
  git_repository* repository = impl_->repository.get();
  CRUCIBLE_ASSIGN(GitCommit ours, FindCommit(repository, onto));
  CRUCIBLE_ASSIGN(GitCommit theirs, FindCommit(repository, commit));
  CRUCIBLE_ASSIGN(const bool contained, IsAncestor(commit, onto));
  if (contained) return MergeOutcome{ToHex(*git_commit_id(ours.get())), {}};
  GitIndex index;
  git_merge_options options = GIT_MERGE_OPTIONS_INIT;
  int code = git_merge_commits(index.Out(), repository, ours.get(), theirs.get(), &options);
  if (code < 0) return GitFail("merge", commit + " onto " + onto, code);
  if (git_index_has_conflicts(index.get()) != 0)
    return MergeOutcome{"", ConflictPaths(index.get())};
  git_oid tree_id;
  code = git_index_write_tree_to(&tree_id, index.get(), repository);
  if (code < 0) return GitFail("write merged tree of", commit + " onto " + onto, code);
  CRUCIBLE_ASSIGN(std::string merged, CreateCommit(repository, nullptr, author, message, tree_id,
                                                   {ours.get(), theirs.get()}));
  return MergeOutcome{std::move(merged), {}};
}

}  // namespace crucible
