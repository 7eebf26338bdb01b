// merge.cc: commits in a worktree, merges in memory, and the compare-and-swap of main.
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

// The checkouts that have `ref` checked out and whose folder is there.
std::vector<Checkout> CheckoutsOf(const fs::path& common, bool bare, const std::string& ref) {
  std::vector<Checkout> found = Checkouts(common, bare);
  std::erase_if(found, [&](const Checkout& checkout) {
    std::error_code error;
    return checkout.head != ref || !fs::is_directory(checkout.directory, error);
  });
  return found;
}

// Crucible's own state beside the git directory is no change of the person's.
void LeaveOutOwnState(std::vector<ChangedPath>& changed) {
  std::erase_if(changed, [](const ChangedPath& c) { return c.path.starts_with(".crucible/"); });
}

// Brings the files of a clean checkout from `expected` to `commit`, whose ref has moved already.
Result<> FollowFiles(git_repository* repository, const git_oid& expected, const git_oid& commit) {
  // Looked up in this very handle: libgit2 refuses objects that another handle gave.
  CRUCIBLE_ASSIGN(GitCommit from, FindCommit(repository, ToHex(expected)));
  CRUCIBLE_ASSIGN(GitCommit to, FindCommit(repository, ToHex(commit)));
  GitTree baseline, target;
  int code = git_commit_tree(baseline.Out(), from.get());
  if (code >= 0) code = git_commit_tree(target.Out(), to.get());
  git_checkout_options options = GIT_CHECKOUT_OPTIONS_INIT;
  options.checkout_strategy = GIT_CHECKOUT_SAFE | GIT_CHECKOUT_DONT_OVERWRITE_IGNORED;
  options.baseline = baseline.get();
  if (code >= 0)
    code = git_checkout_tree(repository, reinterpret_cast<git_object*>(target.get()), &options);
  if (code < 0) return GitFail("update files of", git_repository_workdir(repository), code);
  return {};
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

Result<> Repository::MoveMain(const std::string& expected, const std::string& commit,
                              std::string* note) {
  git_repository* repository = impl_->repository.get();
  CRUCIBLE_ASSIGN(GitCommit from, FindCommit(repository, expected));
  CRUCIBLE_ASSIGN(GitCommit to, FindCommit(repository, commit));
  std::string notes;
  // Cleanness is judged before main moves: afterwards every checkout of it looks changed.
  std::vector<GitRepository> followers;
  for (const Checkout& checkout : CheckoutsOf(impl_->common, impl_->bare, impl_->MainRef())) {
    CRUCIBLE_ASSIGN(GitRepository opened, OpenWorktreeAt(impl_->common, checkout.directory));
    CRUCIBLE_ASSIGN(std::vector<ChangedPath> changed, StatusOf(opened.get(), true));
    if (changed.empty()) {
      followers.push_back(std::move(opened));
    } else {
      notes += checkout.directory.string() + " has uncommitted changes (" + changed.front().path +
               (changed.size() > 1 ? ", …" : "") + "), so its files still show " +
               expected.substr(0, 12) +
               "; bring them over with `git stash && git reset --hard && " + "git stash pop`\n";
    }
  }
  GitReference moved;
  const int code = git_reference_create_matching(moved.Out(), repository, impl_->MainRef().c_str(),
                                                 git_commit_id(to.get()), /*force=*/1,
                                                 git_commit_id(from.get()), "crucible: merge");
  if (code == GIT_EMODIFIED || code == GIT_ENOTFOUND)
    return Fail(ErrorKind::kConflict, "move " + impl_->main_branch + " to", commit,
                "it is no longer at " + expected, "merge again onto its new tip");
  if (code == GIT_ELOCKED)
    return GitFail("move " + impl_->main_branch + " to", commit, code,
                   "another git holds the branch; if none runs, remove " +
                       (impl_->common / (impl_->MainRef() + ".lock")).string());
  if (code < 0) return GitFail("move " + impl_->main_branch + " to", commit, code);
  for (const GitRepository& follower : followers)
    if (const auto followed =
            FollowFiles(follower.get(), *git_commit_id(from.get()), *git_commit_id(to.get()));
        !followed)
      notes += followed.error().text + ", so its files still show " + expected.substr(0, 12) +
               "; bring them over with `git reset --hard`\n";
  if (note != nullptr) *note = notes;
  return {};
}

}  // namespace crucible
