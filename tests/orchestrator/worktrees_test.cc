// Worktrees: made, reset, removed, and repaired after a death in the middle.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class Worktrees : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    directory_ = repo_ / ".crucible" / "worktrees" / "m 1";
    ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/info/exclude", "/.crucible/\n"));
  }
  Result<> Add(Repository& repository) {
    return repository.AddWorktree("m1", directory_, "crucible/m1", first_);
  }
  Result<> Remove(Repository& repository) {
    return repository.RemoveWorktree("m1", directory_, "crucible/m1");
  }
  // Nothing of the mission is left anywhere.
  void ExpectNoResidue() {
    EXPECT_FALSE(fs::exists(directory_));
    EXPECT_FALSE(fs::exists(repo_ / ".git/worktrees"));
    EXPECT_EQ(Git({"branch", "--list", "crucible/*"}), "");
    EXPECT_EQ(Git({"worktree", "list", "--porcelain"}).find("m 1"), std::string::npos);
    EXPECT_EQ(StatusOf(repo_), "");
  }
  fs::path directory_;
};

TEST_F(Worktrees, AddedAndRemovedLeaveNothing) {
  Repository repository = Open();
  ASSERT_OK(Add(repository));
  EXPECT_EQ(StatusOf(directory_), "");
  EXPECT_EQ(GitIn(directory_, {"branch", "--show-current"}).out, "crucible/m1\n");
  EXPECT_EQ(ReadFile(directory_ / "src/deep/größe und.txt").value(), "unicode\n");
  EXPECT_NE(Git({"worktree", "list", "--porcelain"}).find(directory_.string() + "\n"),
            std::string::npos);
  const auto listed = repository.Worktrees();
  ASSERT_EQ(listed.value().size(), 1u);
  EXPECT_EQ(listed->front().name, "m1");
  EXPECT_EQ(listed->front().directory, directory_);
  ASSERT_OK(Remove(repository));
  ExpectNoResidue();
  ASSERT_OK(Remove(repository));  // what is missing is fine
}

TEST_F(Worktrees, OfABareRepository) {
  GitIn(root_, {"clone", "-q", "--bare", repo_.string(), "bare.git"});
  auto repository = Repository::Open(root_ / "bare.git", "main");
  ASSERT_OK(repository);
  ASSERT_OK(repository->AddWorktree("m1", root_ / "w", "crucible/m1", "main"));
  EXPECT_EQ(StatusOf(root_ / "w"), "");
  ASSERT_OK(repository->RemoveWorktree("m1", root_ / "w", "crucible/m1"));
  EXPECT_EQ(GitIn(root_ / "bare.git", {"branch", "--list", "crucible/*"}).out, "");
}

TEST_F(Worktrees, WhatIsTakenIsAConflictAndStaysUntouched) {
  Repository repository = Open();
  Git({"branch", "crucible/m1"});
  EXPECT_EQ(Add(repository).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(Git({"branch", "--list", "crucible/*"}), "  crucible/m1");
  Git({"branch", "-D", "-q", "crucible/m1"});
  ASSERT_TRUE(WriteFileAtomically(directory_ / "precious", "x"));
  EXPECT_EQ(Add(repository).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(ReadFile(directory_ / "precious").value(), "x");
  EXPECT_EQ(Git({"branch", "--list", "crucible/*"}), "");
  EXPECT_EQ(repository.AddWorktree("a/b", directory_, "crucible/m1", first_).error().kind,
            ErrorKind::kUsage);
}

TEST_F(Worktrees, AFailedAddLeavesNothing) {
  Repository repository = Open();
  // A lock on the branch's worktree cannot be provoked from outside; an object that is gone can.
  Write("lost.txt", "this blob will be lost\n");
  const std::string broken = GitCommit("broken");
  const std::string blob = Git({"rev-parse", "HEAD:lost.txt"});
  Git({"reset", "-q", "--hard", first_});
  const fs::path object = repo_ / ".git/objects" / blob.substr(0, 2) / blob.substr(2);
  const fs::path hidden = root_ / "hidden";
  fs::rename(object, hidden);
  const auto added = repository.AddWorktree("m1", directory_, "crucible/m1", broken);
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().text.find("worktree add m1"), std::string::npos);
  ExpectNoResidue();
  fs::rename(hidden, object);
}

TEST_F(Worktrees, EveryKindOfResidueIsRemovedAndTheNameUsableAgain) {
  Repository repository = Open();
  const fs::path administration = repo_ / ".git/worktrees/m1";
  const std::vector<std::pair<const char*, std::function<void()>>> residues = {
      {"directory removed by hand", [&] { fs::remove_all(directory_); }},
      {"administrative files gone", [&] { fs::remove_all(administration); }},
      {"locked",
       [&] {
         Git({"worktree", "lock", directory_.string()});
       }},
      {"gitdir file gone", [&] { fs::remove(administration / "gitdir"); }},
      {"HEAD empty", [&] { ASSERT_TRUE(WriteFileAtomically(administration / "HEAD", "")); }},
      {"killed in the checkout",
       [&] {
         fs::remove_all(directory_ / "src");
         ASSERT_TRUE(WriteFileAtomically(administration / "index.lock", "half"));
       }},
      {"killed before the folder was made",
       [&] {
         fs::remove_all(directory_);
         fs::remove(administration / "HEAD");
       }},
      {"killed while the branch was written",
       [&] {
         ASSERT_TRUE(
             WriteFileAtomically(repo_ / ".git/refs/heads/crucible/m1.lock", first_.substr(0, 9)));
       }},
      {"branch only",
       [&] {
         fs::remove_all(directory_);
         fs::remove_all(administration);
       }},
      {"read-only files", [&] { fs::permissions(directory_ / "src", fs::perms::owner_read); }},
  };
  for (const auto& [what, damage] : residues) {
    SCOPED_TRACE(what);
    ASSERT_OK(Add(repository));
    damage();
    ASSERT_OK(Remove(repository));
    ExpectNoResidue();
  }
}

TEST_F(Worktrees, AKillDuringAddIsRepaired) {
  // A second process adds and removes the worktree over and over until it is killed; wherever that
  // was, RemoveWorktree makes the name usable again.
  for (int round = 0; round < 5; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto repository = Repository::Open(repo_, "main");
      for (;;) {
        if (!Remove(*repository)) ::_exit(1);
        if (::write(pipe_ends[1], "a", 1) != 1) ::_exit(1);
        if (!Add(*repository)) ::_exit(1);
      }
    }
    ::close(pipe_ends[1]);
    char byte;
    for (int i = 0; i <= round; ++i) ASSERT_EQ(::read(pipe_ends[0], &byte, 1), 1);
    ::usleep(static_cast<unsigned>(round) * 700);  // another point of the add each round
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(pipe_ends[0]);
    Repository repository = Open();
    ASSERT_OK(Remove(repository));
    ASSERT_OK(Add(repository));
    EXPECT_EQ(StatusOf(directory_), "");
    ASSERT_OK(Remove(repository));
    ExpectNoResidue();
  }
}

TEST_F(Worktrees, RemovalRefusesAFolderThatHoldsTheRepository) {
  Repository repository = Open();
  for (const fs::path& wrong : {repo_, root_, repo_ / ".git"})
    EXPECT_EQ(repository.RemoveWorktree("m1", wrong, "").error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(repository.RemoveWorktree("..", directory_, ""));
  EXPECT_TRUE(fs::exists(repo_ / "kernel.txt"));
}

TEST_F(Worktrees, ARemovedFolderIsNeverMistakenForTheRepositoryAroundIt) {
  Repository repository = Open();
  ASSERT_OK(Add(repository));
  fs::remove(directory_ / ".git");
  Write("kernel.txt", "a person's work\n");
  EXPECT_FALSE(repository.CommitAll(directory_, "wrong", "nobody"));
  EXPECT_FALSE(repository.ResetHard(directory_, first_));
  EXPECT_FALSE(repository.WorktreeChanges(directory_));
  EXPECT_EQ(ReadFile(repo_ / "kernel.txt").value(), "a person's work\n");
  EXPECT_EQ(repository.MainTip().value(), first_);
  ASSERT_OK(Remove(repository));
}

TEST_F(Worktrees, AWorktreePointedAtAnotherRepositoryIsRefused) {
  Repository repository = Open();
  ASSERT_OK(Add(repository));
  GitIn(root_, {"clone", "-q", repo_.string(), "other"});
  ASSERT_TRUE(WriteFileAtomically(directory_ / ".git",
                                  "gitdir: " + (root_ / "other" / ".git").string() + "\n"));
  EXPECT_EQ(repository.CommitAll(directory_, "wrong", "nobody").error().kind, ErrorKind::kConflict);
  ASSERT_OK(Remove(repository));
}

TEST_F(Worktrees, TheDetachedOneIsMadeThenCleanedOfEverything) {
  Repository repository = Open();
  const fs::path directory = repo_ / ".crucible" / "integration";
  ASSERT_OK(repository.CheckoutDetached("integration", directory, first_));
  EXPECT_EQ(GitIn(directory, {"rev-parse", "--abbrev-ref", "HEAD"}).out, "HEAD\n");
  EXPECT_EQ(Git({"branch", "--list", "crucible/*"}), "");
  Write("kernel.txt", "second\n");
  const std::string second = GitCommit("second");

  fs::remove(directory / ".gitignore");
  ASSERT_TRUE(WriteFileAtomically(directory / "kernel.txt", "tampered\n"));
  ASSERT_TRUE(WriteFileAtomically(directory / "build/x.o", "ignored\n"));
  ASSERT_TRUE(WriteFileAtomically(directory / "new dir/untracked", "x"));
  GitIn(directory, {"init", "-q", "nested"});
  ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/worktrees/integration/index.lock", ""));
  ASSERT_OK(repository.CheckoutDetached("integration", directory, second));
  EXPECT_EQ(ReadFile(directory / "kernel.txt").value(), "second\n");
  EXPECT_EQ(GitIn(directory, {"rev-parse", "HEAD"}).out, second + "\n");
  EXPECT_EQ(GitIn(directory, {"status", "--porcelain", "--ignored"}).out, "");
  for (const char* gone : {"build", "new dir", "nested"})
    EXPECT_FALSE(fs::exists(directory / gone));

  fs::remove_all(directory);  // by hand: made anew
  ASSERT_OK(repository.CheckoutDetached("integration", directory, first_));
  EXPECT_EQ(ReadFile(directory / "kernel.txt").value(), "one\ntwo\nthree\n");
  fs::remove_all(repo_ / ".git/worktrees/integration");
  ASSERT_OK(repository.CheckoutDetached("integration", directory, second));
  EXPECT_EQ(StatusOf(directory), "");
}

TEST_F(Worktrees, ResetGoesBackAndKeepsBuildOutputs) {
  Repository repository = Open();
  ASSERT_OK(Add(repository));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "kernel.txt", "changed\n"));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "untracked", "x"));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "build/x.o", "kept"));
  fs::remove_all(directory_ / "src");
  ASSERT_OK(repository.ResetHard(directory_, first_));
  EXPECT_EQ(StatusOf(directory_), "");
  EXPECT_FALSE(fs::exists(directory_ / "untracked"));
  EXPECT_TRUE(fs::exists(directory_ / "build/x.o"));
  EXPECT_TRUE(fs::exists(directory_ / "src/deep/größe und.txt"));
  EXPECT_EQ(repository.ResetHard(repo_, first_).error().kind, ErrorKind::kConflict);
}

TEST_F(Worktrees, ChangesAreListedWithTheirKind) {
  Repository repository = Open();
  ASSERT_OK(Add(repository));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "kernel.txt", "changed\n"));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "dir/new", "x"));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "staged", "x"));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "x.o", "ignored"));
  fs::remove(directory_ / "src/deep/größe und.txt");
  GitIn(directory_, {"add", "staged"});
  std::string text;
  const auto changed = repository.WorktreeChanges(directory_);
  ASSERT_OK(changed);
  for (const auto& [path, status] : *changed) text += std::string(1, status) + " " + path + "\n";
  EXPECT_EQ(text, "A dir/new\nM kernel.txt\nD src/deep/größe und.txt\nA staged\n");
}

TEST_F(Worktrees, LocksThatAKillLeftInTheIntegrationWorktreeHoldNothingUp) {
  Repository repository = Open();
  const fs::path integration = repo_ / ".crucible" / "worktrees" / "integration";
  ASSERT_OK(repository.CheckoutDetached("integration", integration, first_));
  Write("kernel.txt", "second\n");
  const std::string second = GitCommit("second");
  for (const char* lock : {"HEAD.lock", "index.lock"})
    ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/worktrees/integration" / lock, ""));
  ASSERT_OK(repository.CheckoutDetached("integration", integration, second));
  EXPECT_EQ(ReadFile(integration / "kernel.txt").value(), "second\n");
  EXPECT_EQ(StatusOf(integration), "");
  ASSERT_OK(repository.RemoveWorktree("integration", integration, ""));
}

}  // namespace
}  // namespace crucible
