// Opening a repository, and reading revisions, trees, files, differences and branches.
#include "orchestrator/repository.h"

#include <unistd.h>

#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using Opening = GitFixture;
using Reading = GitFixture;

TEST_F(Opening, WorksFromASubfolderAndFromAWorktree) {
  Git({"worktree", "add", "-q", (root_ / "other").string(), "-b", "other"});
  for (const fs::path& start : {repo_, repo_ / "src" / "deep", root_ / "other"}) {
    auto repository = Repository::Open(start, "main");
    ASSERT_OK(repository);
    EXPECT_EQ(repository->common_directory(), repo_ / ".git");
    EXPECT_FALSE(repository->is_bare());
    EXPECT_EQ(repository->MainTip().value(), first_);
  }
}

TEST_F(Opening, ABareRepositoryIsOne) {
  GitIn(root_, {"clone", "-q", "--bare", repo_.string(), "bare.git"});
  auto repository = Repository::Open(root_ / "bare.git", "main");
  ASSERT_OK(repository);
  EXPECT_TRUE(repository->is_bare());
  EXPECT_TRUE(repository->DirtyPathsOfMain().value().empty());
}

TEST_F(Opening, OutsideARepositoryIsNotFound) {
  const auto repository = Repository::Open(root_, "main");
  ASSERT_FALSE(repository);
  EXPECT_EQ(repository.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(repository.error().text.find("git init"), std::string::npos);
}

TEST_F(Opening, WithoutACommitOnMainIsAUsersError) {
  fs::create_directory(root_ / "empty");
  GitIn(root_ / "empty", {"init", "-q", "-b", "main"});
  for (const auto& [start, branch] :
       {std::pair{root_ / "empty", std::string("main")}, {repo_, std::string("absent")}}) {
    const auto repository = Repository::Open(start, branch);
    ASSERT_FALSE(repository);
    EXPECT_EQ(repository.error().kind, ErrorKind::kUsage);
    EXPECT_NE(repository.error().text.find("\"" + branch + "\" has no commit"), std::string::npos);
  }
}

TEST_F(Opening, WithoutANameTheBranchIsMainElseTheOneOfHead) {
  const auto branch = [&](const fs::path& start) {
    const auto repository = Repository::Open(start, "");
    return repository ? repository->main_branch() : repository.error().text;
  };
  Git({"worktree", "add", "-q", (root_ / "other").string(), "-b", "other"});
  Git({"checkout", "-q", "-b", "own"});
  EXPECT_EQ(branch(repo_), "main") << "there is one, wherever HEAD is";
  Git({"branch", "-q", "-m", "main", "trunk"});
  EXPECT_EQ(branch(repo_), "own");
  EXPECT_EQ(branch(root_ / "other"), "own") << "the repository's HEAD, not the worktree's";
  GitIn(root_, {"clone", "-q", "--bare", repo_.string(), "bare.git"});
  EXPECT_EQ(branch(root_ / "bare.git"), "own");
  Git({"checkout", "-q", "--detach"});
  EXPECT_NE(branch(repo_).find("\"main\" has no commit"), std::string::npos) << branch(repo_);
}

TEST_F(Opening, AForeignOwnersRepositoryNamesSafeDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  fs::path path = root_ / "foreign";
  GitIn(root_, {"clone", "-q", repo_.string(), path.string()});
  for (const fs::path& owned : {path, path / ".git"})
    ASSERT_EQ(::chown(owned.c_str(), 54321, 54321), 0);
  const auto repository = Repository::Open(path, "main");
  ASSERT_FALSE(repository);
  EXPECT_EQ(repository.error().kind, ErrorKind::kUsage) << repository.error().text;
  EXPECT_NE(repository.error().text.find("safe.directory"), std::string::npos);
}

TEST_F(Reading, TreeHashFollowsTheNamedPathsAndNothingElse) {
  Repository repository = Open();
  const std::vector<std::string> paths = {"kernel.txt", "src/deep/"};
  const std::string before = repository.TreeHash(first_, paths).value();
  EXPECT_EQ(repository.TreeHash("main", {"src/deep", "kernel.txt", "kernel.txt"}).value(), before);
  Write("elsewhere.txt", "x");
  const std::string second = GitCommit("elsewhere");
  EXPECT_EQ(repository.TreeHash(second, paths).value(), before);
  Write("src/deep/größe und.txt", "changed\n");
  EXPECT_NE(repository.TreeHash(GitCommit("inside"), paths).value(), before);
  EXPECT_NE(repository.TreeHash(first_, {"kernel.txt", "absent"}).value(),
            repository.TreeHash(first_, {"kernel.txt"}).value());
  fs::permissions(repo_ / "kernel.txt", fs::perms::owner_exec, fs::perm_options::add);
  Write("src/deep/größe und.txt", "unicode\n");
  EXPECT_NE(repository.TreeHash(GitCommit("mode"), paths).value(), before);
}

TEST_F(Reading, FilesOfACommit) {
  Repository repository = Open();
  EXPECT_EQ(repository.ReadFileAt("main", "src/deep/größe und.txt").value(), "unicode\n");
  EXPECT_EQ(repository.ReadFileAt("main", "absent").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(repository.ReadFileAt("main", "src").error().kind, ErrorKind::kNotFound);
}

TEST_F(Reading, ListFilesNamesWhatLiesBelowAPath) {
  Repository repository = Open();
  Write("src/deeper.txt", "x\n");
  const std::string second = GitCommit("second");
  const auto listed = repository.ListFiles(second, "src/deep/");
  ASSERT_OK(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().first, "src/deep/größe und.txt");
  EXPECT_EQ(listed->front().second, Git({"rev-parse", "HEAD:src/deep/größe und.txt"}));
  EXPECT_EQ(repository.ListFiles(second, "").value().size(), 4u);
  EXPECT_EQ(repository.ListFiles(second, "kernel.txt").value().size(), 1u);
  EXPECT_TRUE(repository.ListFiles(second, "absent").value().empty());
}

TEST_F(Reading, RevisionsAndAncestry) {
  Repository repository = Open();
  Git({"tag", "-a", "v1", "-m", "annotated"});
  EXPECT_EQ(repository.Resolve("v1").value(), first_);
  EXPECT_EQ(repository.Resolve(first_.substr(0, 8)).value(), first_);
  EXPECT_FALSE(repository.Resolve("no-such-thing"));
  EXPECT_FALSE(repository.Resolve("main:kernel.txt"));
  Write("kernel.txt", "later\n");
  const std::string second = GitCommit("second");
  EXPECT_TRUE(repository.IsAncestor(first_, second).value());
  EXPECT_TRUE(repository.IsAncestor(first_, first_).value());
  EXPECT_FALSE(repository.IsAncestor(second, first_).value());
}

TEST_F(Reading, ChangedPathsAgreeWithGit) {
  Repository repository = Open();
  Git({"mv", "kernel.txt", "moved.txt"});
  Write("new file.txt", "x");
  fs::remove(repo_ / "src/deep/größe und.txt");
  fs::create_symlink("moved.txt", repo_ / "src/deep/größe und.txt");
  const std::string second = GitCommit("second");
  std::string ours;
  const auto changed = repository.ChangedPaths(first_, second);
  ASSERT_OK(changed);
  for (const auto& [path, status] : *changed) ours += std::string(1, status) + "\t" + path + "\n";
  EXPECT_EQ(ours, GitIn(repo_, {"diff", "--name-status", "--no-renames", first_, second}).out);
}

TEST_F(Reading, DiffTextIsCutAndSaysSo) {
  Repository repository = Open();
  Write("kernel.txt", "one\nTWO\nthree\n");
  const std::string second = GitCommit("second");
  const std::string whole = repository.DiffText(first_, second, 10'000).value();
  EXPECT_NE(whole.find("+TWO"), std::string::npos);
  const std::string cut = repository.DiffText(first_, second, 20).value();
  EXPECT_TRUE(cut.starts_with(whole.substr(0, 20)));
  EXPECT_NE(cut.find(std::to_string(whole.size() - 20) + " bytes more"), std::string::npos);
}

TEST_F(Reading, BranchesByPrefixAndDeletion) {
  Repository repository = Open();
  Git({"branch", "crucible/m1"});
  Git({"branch", "crucible/m2"});
  EXPECT_EQ(repository.Branches("crucible/").value(),
            (std::vector<std::string>{"crucible/m1", "crucible/m2"}));
  ASSERT_OK(repository.DeleteBranch("crucible/m1"));
  ASSERT_OK(repository.DeleteBranch("crucible/m1"));  // what is missing is fine
  EXPECT_EQ(repository.Branches("crucible/").value(), std::vector<std::string>{"crucible/m2"});
  EXPECT_FALSE(repository.DeleteBranch("main"));
  Git({"worktree", "add", "-q", (root_ / "w").string(), "crucible/m2"});
  EXPECT_EQ(repository.DeleteBranch("crucible/m2").error().kind, ErrorKind::kConflict);
}

}  // namespace
}  // namespace crucible
