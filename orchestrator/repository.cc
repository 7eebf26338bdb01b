// repository.cc: opening, reading revisions, trees, differences and branches.
#include "orchestrator/repository.h"

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"
#include "orchestrator/repository_internal.h"

namespace crucible {
namespace fs = std::filesystem;

namespace {

ErrorKind KindOf(int code, int error_class) {
  switch (code) {
    case GIT_ENOTFOUND:
    case GIT_EUNBORNBRANCH:
      return ErrorKind::kNotFound;
    case GIT_EEXISTS:
    case GIT_ECONFLICT:
    case GIT_EMODIFIED:
    case GIT_ELOCKED:
    case GIT_EUNCOMMITTED:
      return ErrorKind::kConflict;
    case GIT_EAMBIGUOUS:
    case GIT_EINVALIDSPEC:
    case GIT_EOWNER:
      return ErrorKind::kUsage;
    default:
      return error_class == GIT_ERROR_OS ? ErrorKind::kIo : ErrorKind::kInternal;
  }
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// "mode id" of what lies at `path` in a tree, or "missing".
Result<std::string> EntryAt(const git_tree* tree, const std::string& path) {
  if (path.empty() || path == "." || path == "/") return "40000 " + ToHex(*git_tree_id(tree));
  GitTreeEntry entry;
  const int code = git_tree_entry_bypath(entry.Out(), tree, WithoutSlash(path).c_str());
  if (code == GIT_ENOTFOUND) return std::string("missing");
  if (code < 0) return GitFail("hash tree path", path, code);
  return std::to_string(static_cast<int>(git_tree_entry_filemode(entry.get()))) + " " +
         ToHex(*git_tree_entry_id(entry.get()));
}

Result<GitTree> TreeOf(const git_commit* commit) {
  GitTree tree;
  if (const int code = git_commit_tree(tree.Out(), commit); code < 0)
    return GitFail("read tree of commit", ToHex(*git_commit_id(commit)), code);
  return tree;
}

// `main` where there is one, else the branch of HEAD: the repository's own choice.
std::string ChooseMain(git_repository* repository) {
  GitReference found;
  if (git_reference_lookup(found.Out(), repository, "refs/heads/main") >= 0) return "main";
  GitReference head;  // read, not resolved: it may name a branch without a commit
  if (git_reference_lookup(head.Out(), repository, "HEAD") < 0) return "main";
  const char* branch = git_reference_symbolic_target(head.get());
  constexpr std::string_view kHeads = "refs/heads/";
  if (branch == nullptr || !std::string_view(branch).starts_with(kHeads)) return "main";
  return branch + kHeads.size();
}

Result<GitDiff> DiffOf(git_repository* repository, const std::string& from, const std::string& to) {
  CRUCIBLE_ASSIGN(GitCommit from_commit, FindCommit(repository, from));
  CRUCIBLE_ASSIGN(GitCommit to_commit, FindCommit(repository, to));
  CRUCIBLE_ASSIGN(GitTree from_tree, TreeOf(from_commit.get()));
  CRUCIBLE_ASSIGN(GitTree to_tree, TreeOf(to_commit.get()));
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_INCLUDE_TYPECHANGE;
  GitDiff diff;
  if (const int code =
          git_diff_tree_to_tree(diff.Out(), repository, from_tree.get(), to_tree.get(), &options);
      code < 0)
    return GitFail("compare commits", from + " and " + to, code);
  return diff;
}

}  // namespace

tl::unexpected<Error> GitFail(std::string_view action, std::string_view object, int code,
                              std::string_view next_step) {
  const git_error* last = git_error_last();
  std::string cause =
      last != nullptr && last->message != nullptr ? last->message : "no reason given";
  if (next_step.empty() && cause.find("No space left") != std::string::npos)
    next_step = "free space on that disk and run the command again";
  if (next_step.empty() && (cause.find("ermission denied") != std::string::npos ||
                            cause.find("Read-only") != std::string::npos))
    next_step = "check the permissions of that path";
  cause += " (libgit2 " + std::to_string(code) + ")";
  return Fail(KindOf(code, last != nullptr ? last->klass : 0), action, object, cause, next_step);
}

std::string ToHex(const git_oid& id) {
  char text[GIT_OID_HEXSZ + 1];
  return git_oid_tostr(text, sizeof text, &id);
}

Result<GitCommit> FindCommit(git_repository* repository, const std::string& revision) {
  GitObject object, commit;
  int code = git_revparse_single(object.Out(), repository, revision.c_str());
  if (code >= 0) code = git_object_peel(commit.Out(), object.get(), GIT_OBJECT_COMMIT);
  if (code < 0)
    return GitFail("find commit", revision, code, "name a branch, a tag or a commit id");
  return GitCommit(reinterpret_cast<git_commit*>(commit.Release()));
}

Repository::Repository(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Repository::Repository(Repository&&) noexcept = default;
Repository& Repository::operator=(Repository&&) noexcept = default;
Repository::~Repository() = default;

Result<Repository> Repository::Open(const fs::path& start, const std::string& main_branch) {
  static const int initialised = git_libgit2_init();  // never shut down: handles may outlive main()
  CRUCIBLE_CHECK(initialised > 0, "libgit2 does not start");
  std::error_code ignored;
  const std::string where = fs::absolute(start, ignored).string();
  auto impl = std::make_unique<Impl>();
  git_error_clear();
  int code = git_repository_open_ext(impl->repository.Out(), where.c_str(), 0, nullptr);
  if (code >= 0) {
    // Reopened at the common directory: the same repository from each of its worktrees.
    const std::string common = git_repository_commondir(impl->repository.get());
    impl->common = fs::weakly_canonical(WithoutSlash(common), ignored);
    code = git_repository_open(impl->repository.Out(), common.c_str());
  }
  if (code < 0) {
    const git_error* last = git_error_last();
    // 1.5.1 answers "not found" for a foreign owner; only the text tells (of its safe.directory).
    const std::string why = last != nullptr && last->message != nullptr ? last->message : "";
    const bool foreign = code == GIT_EOWNER || why.find("owned by") != std::string::npos ||
                         why.find("safe.directory") != std::string::npos;
    if (foreign)
      return Fail(ErrorKind::kUsage, "open repository", where, "it belongs to another user",
                  "run `git config --global --add safe.directory DIRECTORY` with that repository's "
                  "folder if you trust it");
    if (code == GIT_ENOTFOUND)
      return Fail(ErrorKind::kNotFound, "open repository", where, "no git repository here or above",
                  "run inside one, or make one: git init && git add -A && git commit");
    return GitFail("open repository", where, code);
  }
  impl->bare = git_repository_is_bare(impl->repository.get()) != 0;
  impl->main_branch = main_branch.empty() ? ChooseMain(impl->repository.get()) : main_branch;
  Repository repository(std::move(impl));
  if (!repository.MainTip())
    return Fail(ErrorKind::kUsage, "open repository", where,
                "branch \"" + repository.main_branch() + "\" has no commit",
                "commit to it first, or name the branch that merges shall move (`branch` in a "
                "campaign file, --branch of a command)");
  return repository;
}

const fs::path& Repository::common_directory() const { return impl_->common; }
const std::string& Repository::main_branch() const { return impl_->main_branch; }
bool Repository::is_bare() const { return impl_->bare; }

Result<std::string> Repository::MainTip() {
  git_oid id;
  const std::string ref = impl_->MainRef();
  if (const int code = git_reference_name_to_id(&id, impl_->repository.get(), ref.c_str());
      code < 0)
    return GitFail("read branch", impl_->main_branch, code);
  return ToHex(id);
}

Result<std::string> Repository::Resolve(const std::string& revision) {
  CRUCIBLE_ASSIGN(GitCommit commit, FindCommit(impl_->repository.get(), revision));
  return ToHex(*git_commit_id(commit.get()));
}

Result<std::string> Repository::TreeHash(const std::string& commit,
                                         const std::vector<std::string>& paths) {
  CRUCIBLE_ASSIGN(GitCommit found, FindCommit(impl_->repository.get(), commit));
  CRUCIBLE_ASSIGN(GitTree tree, TreeOf(found.get()));
  std::vector<std::string> sorted = paths;
  for (std::string& path : sorted) path = WithoutSlash(path);
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string text;
  for (const std::string& path : sorted) {
    CRUCIBLE_ASSIGN(const std::string entry, EntryAt(tree.get(), path));
    text.append(path).append(1, '\0').append(entry).append(1, '\n');
  }
  return Sha256Hex(text);
}

Result<std::string> Repository::ReadFileAt(const std::string& commit, const std::string& path) {
  CRUCIBLE_ASSIGN(GitCommit found, FindCommit(impl_->repository.get(), commit));
  CRUCIBLE_ASSIGN(GitTree tree, TreeOf(found.get()));
  GitTreeEntry entry;
  int code = git_tree_entry_bypath(entry.Out(), tree.get(), path.c_str());
  GitBlob blob;
  if (code >= 0 && git_tree_entry_type(entry.get()) != GIT_OBJECT_BLOB)
    return Fail(ErrorKind::kNotFound, "read " + path + " of commit", commit, "it is not a file");
  if (code >= 0)
    code = git_blob_lookup(blob.Out(), impl_->repository.get(), git_tree_entry_id(entry.get()));
  if (code < 0) return GitFail("read " + path + " of commit", commit, code);
  return std::string(static_cast<const char*>(git_blob_rawcontent(blob.get())),
                     static_cast<std::size_t>(git_blob_rawsize(blob.get())));
}

Result<bool> Repository::IsAncestor(const std::string& ancestor, const std::string& commit) {
  CRUCIBLE_ASSIGN(GitCommit old_commit, FindCommit(impl_->repository.get(), ancestor));
  CRUCIBLE_ASSIGN(GitCommit new_commit, FindCommit(impl_->repository.get(), commit));
  const git_oid* old_id = git_commit_id(old_commit.get());
  const git_oid* new_id = git_commit_id(new_commit.get());
  if (git_oid_equal(old_id, new_id) != 0) return true;
  const int answer = git_graph_descendant_of(impl_->repository.get(), new_id, old_id);
  if (answer < 0) return GitFail("compare history of", ancestor + " and " + commit, answer);
  return answer == 1;
}

Result<std::vector<std::string>> Repository::Branches(const std::string& prefix) {
  GitBranchIterator iterator;
  int code = git_branch_iterator_new(iterator.Out(), impl_->repository.get(), GIT_BRANCH_LOCAL);
  std::vector<std::string> names;
  while (code >= 0) {
    GitReference branch;
    git_branch_t type;
    code = git_branch_next(branch.Out(), &type, iterator.get());
    if (code < 0) break;
    const std::string name = git_reference_shorthand(branch.get());
    if (name.starts_with(prefix)) names.push_back(name);
  }
  if (code != GIT_ITEROVER) return GitFail("list branches", prefix, code);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<ChangedPath>> Repository::ChangedPaths(const std::string& from,
                                                          const std::string& to) {
  CRUCIBLE_ASSIGN(GitDiff diff, DiffOf(impl_->repository.get(), from, to));
  std::vector<ChangedPath> changed;
  for (std::size_t i = 0; i < git_diff_num_deltas(diff.get()); ++i) {
    const git_diff_delta* delta = git_diff_get_delta(diff.get(), i);
    const bool deleted = delta->status == GIT_DELTA_DELETED;
    changed.push_back({deleted ? delta->old_file.path : delta->new_file.path,
                       git_diff_status_char(delta->status)});
  }
  return changed;
}

Result<std::string> Repository::DiffText(const std::string& from, const std::string& to,
                                         std::size_t max_bytes) {
  CRUCIBLE_ASSIGN(GitDiff diff, DiffOf(impl_->repository.get(), from, to));
  git_buf buffer = GIT_BUF_INIT;
  const int code = git_diff_to_buf(&buffer, diff.get(), GIT_DIFF_FORMAT_PATCH);
  if (code < 0) return GitFail("print difference of", from + " and " + to, code);
  std::string text(buffer.ptr, buffer.size);
  git_buf_dispose(&buffer);
  if (text.size() <= max_bytes) return text;
  const std::size_t left_out = text.size() - max_bytes;
  text.resize(max_bytes);
  return text + "\n[" + std::to_string(left_out) + " bytes more]\n";
}

}  // namespace crucible
