// Commits in a worktree, merges in memory, and the compare-and-swap of main.
#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class Merging : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/info/exclude", "/.crucible/\n"));
    directory_ = repo_ / ".crucible/worktrees/m1";
    repository_ = std::make_unique<Repository>(Open());
    ASSERT_OK(repository_->AddWorktree("m1", directory_, "crucible/m1", first_));
  }
  // A commit of the mission that puts `text` into `path`.
  std::string Candidate(const std::string& path, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(directory_ / path, text));
    const auto commit = repository_->CommitAll(directory_, "candidate", "proposer");
    EXPECT_TRUE(commit) << commit.error().text;
    return commit.value_or("");
  }
  std::string MergeOnMain(const std::string& commit) {
    const auto outcome = repository_->Merge("main", commit, "merge m1", "crucible");
    EXPECT_TRUE(outcome) << outcome.error().text;
    return outcome ? outcome->commit : "";
  }
  fs::path directory_;
  std::unique_ptr<Repository> repository_;
};

TEST_F(Merging, CommitAllTakesEveryKindOfChange) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "kernel.txt", "changed\n"));
  fs::permissions(directory_ / "kernel.txt", fs::perms::owner_exec, fs::perm_options::add);
  fs::remove(directory_ / "src/deep/größe und.txt");
  ASSERT_TRUE(WriteFileAtomically(directory_ / "new/ä file", "new\n"));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "x.o", "ignored\n"));
  fs::create_symlink("kernel.txt", directory_ / "link");
  const auto commit = repository_->CommitAll(directory_, "all\n\nof it", "agent:x <a@b>");
  ASSERT_OK(commit);
  EXPECT_EQ(StatusOf(directory_), "");
  EXPECT_EQ(Git({"rev-parse", "crucible/m1"}), *commit);
  EXPECT_EQ(Git({"log", "-1", "--format=%an %ae %s", *commit}), "agent:x a@b all");
  EXPECT_EQ(GitIn(repo_, {"diff", "--name-status", "--no-renames", first_, *commit}).out,
            "M\tkernel.txt\nA\tlink\nA\tnew/ä file\nD\tsrc/deep/größe und.txt\n");
  EXPECT_EQ(Git({"ls-tree", *commit, "kernel.txt"}).substr(0, 6), "100755");
  EXPECT_EQ(Git({"ls-tree", *commit, "link"}).substr(0, 6), "120000");
}

TEST_F(Merging, NothingToCommitIsSaid) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "x.o", "ignored\n"));
  const auto commit = repository_->CommitAll(directory_, "none", "proposer");
  ASSERT_FALSE(commit);
  EXPECT_EQ(commit.error().kind, ErrorKind::kConflict);
  EXPECT_NE(commit.error().text.find("nothing to commit"), std::string::npos);
}

TEST_F(Merging, ALockedIndexIsAConflictThatNamesTheLock) {
  ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/worktrees/m1/index.lock", ""));
  ASSERT_TRUE(WriteFileAtomically(directory_ / "kernel.txt", "changed\n"));
  const auto commit = repository_->CommitAll(directory_, "locked", "proposer");
  ASSERT_FALSE(commit);
  EXPECT_EQ(commit.error().kind, ErrorKind::kConflict) << commit.error().text;
  EXPECT_NE(commit.error().text.find("index.lock"), std::string::npos);
}

TEST_F(Merging, ACleanMergeHasBothChangesAndMovesNoBranch) {
  const std::string candidate = Candidate("kernel.txt", "one\ntwo\nTHREE\n");
  Write("kernel.txt", "ONE\ntwo\nthree\n");
  const std::string main_tip = GitCommit("main went on");
  const std::string merged = MergeOnMain(candidate);
  EXPECT_EQ(repository_->ReadFileAt(merged, "kernel.txt").value(), "ONE\ntwo\nTHREE\n");
  EXPECT_EQ(Git({"log", "-1", "--format=%P", merged}), main_tip + " " + candidate);
  EXPECT_EQ(Git({"rev-parse", "main"}), main_tip);
  EXPECT_EQ(StatusOf(repo_), "");
}

TEST_F(Merging, AConflictNamesThePaths) {
  const std::string candidate = Candidate("kernel.txt", "one\nmission\nthree\n");
  Write("kernel.txt", "one\nmain\nthree\n");
  GitCommit("main went on");
  const auto outcome = repository_->Merge("main", candidate, "merge m1", "crucible");
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->commit, "");
  EXPECT_EQ(outcome->conflicts, std::vector<std::string>{"kernel.txt"});
}

TEST_F(Merging, ADescendantStillGetsAMergeCommitAndAnAncestorNone) {
  const std::string candidate = Candidate("new.txt", "x\n");
  const std::string merged = MergeOnMain(candidate);
  EXPECT_EQ(Git({"log", "-1", "--format=%P", merged}), first_ + " " + candidate);
  EXPECT_EQ(Git({"diff", candidate, merged}), "");
  EXPECT_EQ(MergeOnMain(first_), first_);
}

TEST_F(Merging, MainMovesAndACleanCheckoutFollows) {
  const std::string merged = MergeOnMain(Candidate("new dir/ü.txt", "x\n"));
  Write("untracked.txt", "a person's\n");
  std::string note = "unset";
  ASSERT_OK(repository_->MoveMain(first_, merged, &note));
  EXPECT_EQ(note, "");
  EXPECT_EQ(repository_->MainTip().value(), merged);
  EXPECT_EQ(ReadFile(repo_ / "new dir/ü.txt").value(), "x\n");
  EXPECT_EQ(StatusOf(repo_), "?? untracked.txt\n");
}

TEST_F(Merging, AFollowingCheckoutLosesDeletedFiles) {
  fs::remove(directory_ / "src/deep/größe und.txt");
  const std::string merged = MergeOnMain(Candidate("kernel.txt", "new\n"));
  ASSERT_OK(repository_->MoveMain(first_, merged));
  EXPECT_FALSE(fs::exists(repo_ / "src"));
  EXPECT_EQ(StatusOf(repo_), "");
}

TEST_F(Merging, ADirtyCheckoutIsLeftAloneWithANote) {
  const std::string merged = MergeOnMain(Candidate("new.txt", "x\n"));
  Write("kernel.txt", "a person's work\n");
  EXPECT_EQ(repository_->DirtyPathsOfMain().value(), std::vector<std::string>{"kernel.txt"});
  std::string note;
  ASSERT_OK(repository_->MoveMain(first_, merged, &note));
  EXPECT_EQ(repository_->MainTip().value(), merged);
  EXPECT_NE(note.find("kernel.txt"), std::string::npos) << note;
  EXPECT_FALSE(fs::exists(repo_ / "new.txt"));
  EXPECT_EQ(ReadFile(repo_ / "kernel.txt").value(), "a person's work\n");
}

TEST_F(Merging, AnUntrackedFileInTheWayIsNeverOverwritten) {
  for (const char* path : {"taken.txt", "ignored.o"}) {
    SCOPED_TRACE(path);
    const std::string main_tip = repository_->MainTip().value();
    ASSERT_TRUE(WriteFileAtomically(directory_ / path, "the mission's\n"));
    GitIn(directory_, {"add", "-f", path});
    const std::string merged = MergeOnMain(Candidate(path, "the mission's\n"));
    Write(path, "a person's\n");
    std::string note;
    ASSERT_OK(repository_->MoveMain(main_tip, merged, &note));
    EXPECT_NE(note.find("git read-tree -m -u"), std::string::npos) << note;
    EXPECT_EQ(ReadFile(repo_ / path).value(), "a person's\n");
    fs::remove(repo_ / path);
    Git({"reset", "-q", "--hard"});
  }
}

TEST_F(Merging, MainDoesNotMoveWhenSomebodyMovedIt) {
  const std::string merged = MergeOnMain(Candidate("new.txt", "x\n"));
  Write("kernel.txt", "a person's commit\n");
  const std::string theirs = GitCommit("a person's commit");
  const auto moved = repository_->MoveMain(first_, merged);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(Git({"rev-parse", "main"}), theirs);
  EXPECT_EQ(StatusOf(repo_), "");
}

TEST_F(Merging, AHeldBranchLockIsNamed) {
  const std::string merged = MergeOnMain(Candidate("new.txt", "x\n"));
  ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/refs/heads/main.lock", ""));
  const auto moved = repository_->MoveMain(first_, merged);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().kind, ErrorKind::kConflict);
  EXPECT_NE(moved.error().text.find("main.lock"), std::string::npos) << moved.error().text;
  EXPECT_EQ(repository_->MainTip().value(), first_);
  fs::remove(repo_ / ".git/refs/heads/main.lock");
}

TEST_F(Merging, MainMovesWhereNobodyHasItCheckedOut) {
  Git({"checkout", "-q", "-b", "elsewhere"});
  const std::string merged = MergeOnMain(Candidate("new.txt", "x\n"));
  Write("kernel.txt", "dirty, but not main\n");
  EXPECT_TRUE(repository_->DirtyPathsOfMain().value().empty());
  std::string note;
  ASSERT_OK(repository_->MoveMain(first_, merged, &note));
  EXPECT_EQ(note, "");
  EXPECT_EQ(Git({"rev-parse", "main"}), merged);
  EXPECT_FALSE(fs::exists(repo_ / "new.txt"));
}

TEST_F(Merging, ALinkedCheckoutOfMainFollowsToo) {
  Git({"checkout", "-q", "-b", "elsewhere"});
  Git({"worktree", "add", "-q", (root_ / "main checkout").string(), "main"});
  const std::string merged = MergeOnMain(Candidate("new.txt", "x\n"));
  ASSERT_OK(repository_->MoveMain(first_, merged));
  EXPECT_EQ(ReadFile(root_ / "main checkout/new.txt").value(), "x\n");
  EXPECT_EQ(StatusOf(root_ / "main checkout"), "");
  Write("kernel.txt", "x");
  ASSERT_TRUE(WriteFileAtomically(root_ / "main checkout/untracked", "x"));
  EXPECT_EQ(repository_->DirtyPathsOfMain().value(), std::vector<std::string>{"untracked"});
}

}  // namespace
}  // namespace crucible
