// worktrees.cc: making, using and removing worktrees, and what is changed in them.
//
// libgit2 leaves residue when a worktree add fails or the process dies in it, and its prune refuses
// what it cannot read. So removal works on the files themselves, whose layout git documents: the
// worktree's folder, `worktrees/<name>/` of the common directory, and the branch.
#include <algorithm>

#include "base/files.h"
#include "orchestrator/repository_internal.h"

namespace crucible {
namespace fs = std::filesystem;

namespace {

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

// What a symbolic HEAD file points to, "" when it is detached or cannot be read.
std::string HeadOf(const fs::path& administration) {
  const auto text = ReadFile(administration / "HEAD");
  if (!text || !text->starts_with("ref: ")) return "";
  return Trimmed(text->substr(5));
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

Result<> CheckName(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos)
    return Fail(ErrorKind::kUsage, "worktree add", "\"" + name + "\"",
                "a worktree's name has no '/' and does not start with '.'", "choose another name");
  return {};
}

git_checkout_options Forced(unsigned extra = 0) {
  git_checkout_options options = GIT_CHECKOUT_OPTIONS_INIT;
  options.checkout_strategy = GIT_CHECKOUT_FORCE | GIT_CHECKOUT_RECREATE_MISSING | extra;
  return options;
}

// Removes what status still calls untracked (and ignored, when asked): libgit2's checkout leaves
// nested repositories where they are.
Result<> RemoveUntracked(git_repository* repository, const fs::path& directory, bool ignored_too) {
  git_status_options options = GIT_STATUS_OPTIONS_INIT;
  options.show = GIT_STATUS_SHOW_WORKDIR_ONLY;
  options.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED;
  if (ignored_too) options.flags |= GIT_STATUS_OPT_INCLUDE_IGNORED;
  GitStatusList list;
  if (const int code = git_status_list_new(list.Out(), repository, &options); code < 0)
    return GitFail("clean worktree", directory.string(), code);
  for (std::size_t i = 0; i < git_status_list_entrycount(list.get()); ++i) {
    const git_status_entry* entry = git_status_byindex(list.get(), i);
    if ((entry->status & (GIT_STATUS_WT_NEW | GIT_STATUS_IGNORED)) == 0) continue;
    std::string path = entry->index_to_workdir->new_file.path;
    while (!path.empty() && path.back() == '/') path.pop_back();
    if (!path.empty()) CRUCIBLE_TRY(RemoveTree(directory / path));
  }
  return {};
}

// Every file as in `commit`, the index too, and HEAD (or its branch) there.
Result<> ResetTo(git_repository* repository, const fs::path& directory, const std::string& revision,
                 bool ignored_too) {
  CRUCIBLE_ASSIGN(GitCommit commit, FindCommit(repository, revision));
  const fs::path lock = fs::path(git_repository_path(repository)) / "index.lock";
  std::error_code error;
  fs::remove(lock, error);  // this worktree is crucible's own: the lock is of a process that died
  git_repository_state_cleanup(repository);
  unsigned extra = GIT_CHECKOUT_REMOVE_UNTRACKED;
  if (ignored_too) extra |= GIT_CHECKOUT_REMOVE_IGNORED;
  git_checkout_options options = Forced(extra);
  const auto* target = reinterpret_cast<const git_object*>(commit.get());
  if (const int code = git_reset(repository, target, GIT_RESET_HARD, &options); code < 0)
    return GitFail("reset worktree", directory.string(), code);
  return RemoveUntracked(repository, directory, ignored_too);
}

}  // namespace

std::vector<Checkout> Checkouts(const fs::path& common, bool bare) {
  std::vector<Checkout> checkouts;
  if (!bare) checkouts.push_back({"", common.parent_path(), common, HeadOf(common)});
  std::error_code error;
  for (fs::directory_iterator it(common / "worktrees", error), end; !error && it != end;
       it.increment(error)) {
    const fs::path administration = it->path();
    fs::path directory;
    if (const auto text = ReadFile(administration / "gitdir"))
      directory = fs::path(Trimmed(*text)).parent_path();
    checkouts.push_back(
        {administration.filename().string(), directory, administration, HeadOf(administration)});
  }
  std::sort(checkouts.begin(), checkouts.end(),
            [](const Checkout& a, const Checkout& b) { return a.name < b.name; });
  return checkouts;
}

std::vector<Checkout> CheckoutsOf(const fs::path& common, bool bare, const std::string& ref) {
  std::vector<Checkout> found = Checkouts(common, bare);
  std::erase_if(found, [&](const Checkout& checkout) {
    std::error_code error;
    return checkout.head != ref || !fs::is_directory(checkout.directory, error);
  });
  return found;
}

Result<GitRepository> OpenWorktreeAt(const fs::path& common, const fs::path& directory) {
  GitRepository repository;
  const int code = git_repository_open_ext(repository.Out(), directory.c_str(),
                                           GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr);
  if (code < 0)
    return GitFail("open worktree", directory.string(), code,
                   "it was removed or half made: remove it and make it again");
  std::error_code error;
  if (!fs::equivalent(git_repository_commondir(repository.get()), common, error))
    return Fail(ErrorKind::kConflict, "open worktree", directory.string(),
                "it belongs to another repository than " + common.string(),
                "its .git file was changed: remove the worktree");
  return repository;
}

Result<std::vector<ChangedPath>> StatusOf(git_repository* repository, bool tracked_only) {
  git_status_options options = GIT_STATUS_OPTIONS_INIT;
  options.show = GIT_STATUS_SHOW_INDEX_AND_WORKDIR;
  if (!tracked_only)
    options.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_RECURSE_UNTRACKED_DIRS;
  GitStatusList list;
  if (const int code = git_status_list_new(list.Out(), repository, &options); code < 0)
    return GitFail("read status of", git_repository_path(repository), code);
  std::vector<ChangedPath> changed;
  for (std::size_t i = 0; i < git_status_list_entrycount(list.get()); ++i) {
    const git_status_entry* entry = git_status_byindex(list.get(), i);
    const unsigned status = entry->status;
    const git_diff_delta* delta =
        entry->head_to_index != nullptr ? entry->head_to_index : entry->index_to_workdir;
    if (delta == nullptr || (status & GIT_STATUS_IGNORED) != 0) continue;
    const bool in_head = (status & (GIT_STATUS_INDEX_NEW | GIT_STATUS_WT_NEW)) == 0 ||
                         (status & GIT_STATUS_INDEX_DELETED) != 0;
    const bool in_worktree =
        (status & GIT_STATUS_WT_DELETED) == 0 &&
        ((status & GIT_STATUS_INDEX_DELETED) == 0 || (status & GIT_STATUS_WT_NEW) != 0);
    if (!in_head && !in_worktree) continue;  // added to the index, then deleted
    char letter = !in_head ? 'A' : !in_worktree ? 'D' : 'M';
    const unsigned type_change = GIT_STATUS_INDEX_TYPECHANGE | GIT_STATUS_WT_TYPECHANGE;
    if (letter == 'M' && (status & type_change) != 0) letter = 'T';
    changed.push_back(
        {delta->new_file.path != nullptr ? delta->new_file.path : delta->old_file.path, letter});
  }
  std::sort(changed.begin(), changed.end(),
            [](const ChangedPath& a, const ChangedPath& b) { return a.path < b.path; });
  return changed;
}

Result<> Repository::AddWorktree(const std::string& name, const fs::path& directory,
                                 const std::string& branch, const std::string& commit) {
  CRUCIBLE_TRY(CheckName(name));
  const fs::path administration = impl_->common / "worktrees" / name;
  const auto taken = [&](const std::string& what) {
    return Fail(ErrorKind::kConflict, "worktree add", name, what + " is there already",
                "remove the left-over worktree first");
  };
  if (Exists(directory)) return taken("directory " + directory.string());
  if (Exists(administration)) return taken("administrative directory " + administration.string());
  git_repository* repository = impl_->repository.get();
  CRUCIBLE_ASSIGN(GitCommit base, FindCommit(repository, commit));
  const fs::path parent = fs::absolute(directory).parent_path();
  CRUCIBLE_TRY(MakeDirectories(parent));

  // The branch is made only where none is: git_reference_create without force is that check.
  GitReference ref;
  int code = git_reference_create(ref.Out(), repository, ("refs/heads/" + branch).c_str(),
                                  git_commit_id(base.get()), 0, "crucible: worktree add");
  if (code == GIT_EEXISTS) return taken("branch " + branch);
  if (code < 0) return GitFail("worktree add " + name + ": create branch", branch, code);

  git_worktree_add_options options = GIT_WORKTREE_ADD_OPTIONS_INIT;
  options.ref = ref.get();
  options.checkout_options = Forced();
  GitWorktree worktree;
  code = git_worktree_add(worktree.Out(), repository, name.c_str(),
                          (fs::canonical(parent) / directory.filename()).c_str(), &options);
  if (code >= 0) return {};
  auto failure = GitFail("worktree add", name + " at " + directory.string(), code,
                         "check that the disk is not full and the folder is writable");
  worktree.Reset();
  if (const auto removed = RemoveWorktree(name, directory, branch); !removed)
    failure.value().text += " (and cleaning up: " + removed.error().text + ")";
  return failure;
}

Result<> Repository::CheckoutDetached(const std::string& name, const fs::path& directory,
                                      const std::string& commit) {
  CRUCIBLE_ASSIGN(GitCommit found, FindCommit(impl_->repository.get(), commit));
  auto worktree = OpenWorktreeAt(impl_->common, directory);
  const fs::path administration = impl_->common / "worktrees" / name;
  std::error_code error;
  const bool usable =
      worktree && fs::equivalent(git_repository_path(worktree->get()), administration, error);
  if (!usable) {
    // libgit2 makes worktrees on branches only: one is made on a branch that is dropped at once.
    const std::string branch = "crucible/detached-" + name;
    CRUCIBLE_TRY(RemoveWorktree(name, directory, branch));
    CRUCIBLE_TRY(AddWorktree(name, directory, branch, commit));
    worktree = OpenWorktreeAt(impl_->common, directory);
    if (!worktree) return tl::unexpected(worktree.error());
  }
  // This worktree is crucible's own: a lock of its HEAD is of a process that died.
  fs::remove(administration / "HEAD.lock", error);
  const int code = git_repository_set_head_detached(worktree->get(), git_commit_id(found.get()));
  if (code < 0) return GitFail("detach worktree", directory.string(), code);
  CRUCIBLE_TRY(DeleteBranch("crucible/detached-" + name));  // of a process that died here, too
  return ResetTo(worktree->get(), directory, ToHex(*git_commit_id(found.get())),
                 /*ignored_too=*/true);
}

Result<> Repository::RemoveWorktree(const std::string& name, const fs::path& directory,
                                    const std::string& branch) {
  CRUCIBLE_TRY(CheckName(name));
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(directory), error);
  const std::string inside = fs::relative(impl_->common, absolute, error).string();
  if (!error && !inside.empty() && !inside.starts_with(".."))
    return Fail(ErrorKind::kUsage, "worktree remove", absolute.string(),
                "the repository itself lies in it", "name the worktree's own folder");
  CRUCIBLE_TRY(RemoveTree(fs::absolute(directory)));
  CRUCIBLE_TRY(RemoveTree(impl_->common / "worktrees" / name));
  fs::remove(impl_->common / "worktrees", error);  // only when empty, as git does
  if (branch.empty()) return {};
  // A lock that a killed process left on a branch of a worktree that is gone.
  fs::remove(impl_->common / "refs" / "heads" / (branch + ".lock"), error);
  return DeleteBranch(branch);
}

Result<std::vector<Repository::WorktreeInfo>> Repository::Worktrees() {
  std::vector<WorktreeInfo> worktrees;
  for (const Checkout& checkout : Checkouts(impl_->common, /*bare=*/true))
    worktrees.push_back({checkout.name, checkout.directory});
  return worktrees;
}

Result<> Repository::DeleteBranch(const std::string& branch) {
  const std::string ref_name = "refs/heads/" + branch;
  if (branch == impl_->main_branch)
    return Fail(ErrorKind::kUsage, "delete branch", branch, "it is the branch that merges move");
  for (const Checkout& checkout : Checkouts(impl_->common, impl_->bare))
    if (checkout.head == ref_name)
      return Fail(ErrorKind::kConflict, "delete branch", branch,
                  "it is checked out in " + checkout.directory.string(),
                  "remove that worktree first");
  GitReference ref;
  int code = git_reference_lookup(ref.Out(), impl_->repository.get(), ref_name.c_str());
  if (code >= 0) code = git_reference_delete(ref.get());
  if (code < 0 && code != GIT_ENOTFOUND) return GitFail("delete branch", branch, code);
  return {};
}

Result<> Repository::ResetHard(const fs::path& worktree, const std::string& commit) {
  CRUCIBLE_ASSIGN(GitRepository repository, OpenWorktreeAt(impl_->common, worktree));
  if (HeadOf(git_repository_path(repository.get())) == impl_->MainRef())
    return Fail(ErrorKind::kConflict, "reset worktree", worktree.string(),
                impl_->main_branch + " is checked out there",
                "crucible never resets a person's checkout: name a mission's worktree");
  return ResetTo(repository.get(), worktree, commit.empty() ? std::string("HEAD") : commit,
                 /*ignored_too=*/false);
}

Result<std::vector<ChangedPath>> Repository::WorktreeChanges(const fs::path& worktree) {
  CRUCIBLE_ASSIGN(GitRepository repository, OpenWorktreeAt(impl_->common, worktree));
  return StatusOf(repository.get(), /*tracked_only=*/false);
}

}  // namespace crucible
