// A move of main that was killed: the state after each of its half-steps is built by hand, and
// finishing it must bring the checkout over, or leave what a person wrote alone.
#include <signal.h>

#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class MoveMain : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    Write("gone.txt", "to be deleted\n");
    first_ = GitCommit("before");
    // The new commit changes, adds and deletes; nobody has it checked out.
    Git({"checkout", "-q", "-b", "work"});
    Write("kernel.txt", "one\ntwo\nthree\nfour\n");
    Write("new dir/ü.txt", "new text\n");
    fs::remove(repo_ / "gone.txt");
    second_ = GitCommit("after");
    Git({"checkout", "-q", "main"});
    Git({"branch", "-q", "-D", "work"});
    ASSERT_EQ(StatusOf(repo_), "");
  }
  // As MoveMain writes it before it begins.
  void NoteDown(const std::string& checkouts = "checkout \n") {
    Plain(".git/crucible-move", "from " + first_ + "\nto " + second_ + "\n" + checkouts);
  }
  void MoveRef() { Git({"update-ref", "refs/heads/main", second_}); }
  void Plain(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(repo_ / path, text));
  }
  // The moved ref and the note: every later half-step starts here.
  void KilledAfterTheRef() {
    NoteDown();
    MoveRef();
    ASSERT_NE(StatusOf(repo_), "") << "else there is nothing to finish";
  }
  std::string Finish() {
    Repository repository = Open();
    std::string note;
    const auto finished = repository.FinishMove(&note);
    EXPECT_TRUE(finished) << finished.error().text;
    return note;
  }
  void ExpectBroughtOver() {
    EXPECT_EQ(Finish(), "");
    EXPECT_EQ(StatusOf(repo_), "");
    EXPECT_EQ(ReadFile(repo_ / "kernel.txt").value(), "one\ntwo\nthree\nfour\n");
    EXPECT_EQ(ReadFile(repo_ / "new dir/ü.txt").value(), "new text\n");
    EXPECT_FALSE(fs::exists(repo_ / "gone.txt"));
    ExpectNoNote();
  }
  void ExpectNoNote() {
    for (const auto& item : fs::directory_iterator(repo_ / ".git"))
      EXPECT_FALSE(item.path().filename().string().starts_with("crucible-move")) << item.path();
  }
  // Left alone, said so, and nothing of the person's changed.
  void ExpectLeftAlone(const std::string& path, const std::string& text) {
    const std::string status = StatusOf(repo_);
    const std::string note = Finish();
    EXPECT_NE(note.find(path), std::string::npos) << note;
    EXPECT_NE(note.find("git read-tree -m -u"), std::string::npos) << note;
    EXPECT_EQ(ReadFile(repo_ / path).value(), text);
    EXPECT_EQ(StatusOf(repo_), status);
    ExpectNoNote();
  }
  std::string second_;
};

TEST_F(MoveMain, NothingIsDoneWhereNoMoveWasInterrupted) {
  MoveRef();  // by a person's own hand: not ours to follow
  const std::string status = StatusOf(repo_);
  EXPECT_EQ(Finish(), "");
  EXPECT_EQ(StatusOf(repo_), status);
}

TEST_F(MoveMain, AWholeMoveLeavesNoNote) {
  Repository repository = Open();
  ASSERT_OK(repository.MoveMain(first_, second_));
  EXPECT_EQ(StatusOf(repo_), "");
  ExpectNoNote();
  EXPECT_FALSE(repository.MoveMain(first_, second_));
  ExpectNoNote();
}

TEST_F(MoveMain, KilledWhileTheNoteWasWritten) {
  Plain(".git/crucible-move.aB3xYz", "from ");
  EXPECT_EQ(Finish(), "");
  EXPECT_EQ(Git({"rev-parse", "main"}), first_);
  ExpectNoNote();
}

TEST_F(MoveMain, KilledBeforeTheRefMovedChangesNothingAndFreesTheBranch) {
  for (const std::string& lock : {std::string(), second_ + "\n"}) {
    NoteDown();
    Plain(".git/refs/heads/main.lock", lock);
    EXPECT_EQ(Finish(), "");
    EXPECT_EQ(Git({"rev-parse", "main"}), first_);
    EXPECT_EQ(StatusOf(repo_), "");
    EXPECT_FALSE(fs::exists(repo_ / ".git/refs/heads/main.lock"));
    ExpectNoNote();
  }
}

TEST_F(MoveMain, AForeignLockOfTheBranchStays) {
  NoteDown();
  Plain(".git/refs/heads/main.lock", std::string(40, 'a') + "\n");
  EXPECT_EQ(Finish(), "");
  EXPECT_TRUE(fs::exists(repo_ / ".git/refs/heads/main.lock"));
  fs::remove(repo_ / ".git/refs/heads/main.lock");
}

TEST_F(MoveMain, KilledBeforeAnyFileFollowed) {
  KilledAfterTheRef();
  ExpectBroughtOver();
}

TEST_F(MoveMain, KilledWithSomeFilesOldAndSomeNew) {
  KilledAfterTheRef();
  Plain("kernel.txt", "one\ntwo\nthree\nfour\n");
  fs::remove(repo_ / "gone.txt");
  ExpectBroughtOver();
}

TEST_F(MoveMain, KilledWhileAFileWasReplaced) {
  for (const std::string& beginning : {std::string("one\ntw"), std::string()}) {
    KilledAfterTheRef();
    Plain("kernel.txt", beginning);
    Plain("new dir/ü.txt", "");
    ExpectBroughtOver();
    Git({"update-ref", "refs/heads/main", first_});
    Git({"reset", "-q", "--hard"});
  }
  KilledAfterTheRef();
  fs::remove(repo_ / "kernel.txt");
  ExpectBroughtOver();
}

TEST_F(MoveMain, KilledWithTheFilesNewAndTheIndexOldAndLocked) {
  KilledAfterTheRef();
  Plain("kernel.txt", "one\ntwo\nthree\nfour\n");
  Plain("new dir/ü.txt", "new text\n");
  fs::remove(repo_ / "gone.txt");
  Plain(".git/index.lock", "DIRC half");
  ExpectBroughtOver();
  EXPECT_FALSE(fs::exists(repo_ / ".git/index.lock"));
}

TEST_F(MoveMain, KilledWithEverythingDoneButTheNote) {
  NoteDown();
  MoveRef();
  Git({"reset", "-q", "--hard"});
  ExpectBroughtOver();
}

TEST_F(MoveMain, WhatAPersonWroteIsNeverOverwritten) {
  const std::pair<const char*, const char*> writings[] = {
      {"kernel.txt", "one\ntwo\nmine\n"},                // a file of the merge
      {"src/deep/größe und.txt", "unicode and mine\n"},  // another one
      {"new dir/ü.txt", "mine, never added\n"},          // in the way of a new one
      {"gone.txt", "deleted by the merge, changed by me\n"}};
  for (const auto& [path, text] : writings) {
    SCOPED_TRACE(path);
    KilledAfterTheRef();
    Plain(path, text);
    ExpectLeftAlone(path, text);
    Git({"update-ref", "refs/heads/main", first_});
    Git({"reset", "-q", "--hard"});
    fs::remove_all(repo_ / "new dir");
  }
}

TEST_F(MoveMain, WhatAPersonStagedIsNeverLost) {
  KilledAfterTheRef();
  Plain("kernel.txt", "staged\n");
  Git({"add", "kernel.txt"});
  Plain("kernel.txt", "one\ntwo\nthree\n");  // the file itself is the old one again
  ExpectLeftAlone("kernel.txt", "one\ntwo\nthree\n");
  EXPECT_EQ(Git({"show", ":kernel.txt"}), "staged");
}

TEST_F(MoveMain, AFolderThatBecameALinkIsNotWrittenThrough) {
  KilledAfterTheRef();
  fs::create_directory(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", repo_ / "new dir");
  const std::string note = Finish();
  EXPECT_NE(note.find("new dir"), std::string::npos) << note;
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
  fs::remove(repo_ / "new dir");
}

TEST_F(MoveMain, ALockThatARunningGitMayHoldStays) {
  KilledAfterTheRef();
  Plain(".git/index.lock", "");
  SubprocessSpec spec;
  spec.argv = {"git", "cat-file", "--batch"};  // waits for its input
  spec.directory = repo_;
  spec.in = Stdio::kPipe;
  auto git = Subprocess::Start(spec);
  ASSERT_OK(git);
  const std::string note = Finish();
  EXPECT_NE(note.find("index.lock"), std::string::npos) << note;
  EXPECT_TRUE(fs::exists(repo_ / ".git/index.lock"));
  git->Signal(SIGKILL);
  ASSERT_OK(git->Wait());
  fs::remove(repo_ / ".git/index.lock");
}

TEST_F(MoveMain, ACheckoutThatWasDirtyBeforeIsLeftAsItIs) {
  KilledAfterTheRef();
  NoteDown("");  // nobody was clean
  fs::remove(repo_ / "kernel.txt");
  const std::string status = StatusOf(repo_);
  EXPECT_EQ(Finish(), "");
  EXPECT_EQ(StatusOf(repo_), status);
}

TEST_F(MoveMain, WhereMainWentOnTheCheckoutIsLeftAlone) {
  KilledAfterTheRef();
  Git({"update-ref", "refs/heads/main",
       Git({"commit-tree", second_ + "^{tree}", "-p", second_, "-m", "further"})});
  const std::string status = StatusOf(repo_);
  Finish();
  EXPECT_EQ(StatusOf(repo_), status);
  ExpectNoNote();
}

TEST_F(MoveMain, ALinkedCheckoutIsBroughtOverToo) {
  Git({"checkout", "-q", "-b", "elsewhere"});
  const fs::path linked = root_ / "main_checkout";
  Git({"worktree", "add", "-q", linked.string(), "main"});
  NoteDown("checkout main_checkout\n");
  MoveRef();
  ASSERT_TRUE(WriteFileAtomically(repo_ / ".git/worktrees/main_checkout/index.lock", ""));
  EXPECT_EQ(Finish(), "");
  EXPECT_EQ(StatusOf(linked), "");
  EXPECT_EQ(ReadFile(linked / "new dir/ü.txt").value(), "new text\n");
}

TEST_F(MoveMain, TheNextMoveFinishesTheInterruptedOne) {
  KilledAfterTheRef();
  const std::string third = Git({"commit-tree", first_ + "^{tree}", "-p", second_, "-m", "third"});
  Repository repository = Open();
  std::string note;
  ASSERT_OK(repository.MoveMain(second_, third, &note));
  EXPECT_EQ(note, "");
  EXPECT_EQ(StatusOf(repo_), "");
  EXPECT_EQ(ReadFile(repo_ / "gone.txt").value(), "to be deleted\n");
}

TEST_F(MoveMain, TheAdvisedCommandBringsADirtyCheckoutOver) {
  Plain("src/deep/größe und.txt", "a person's work\n");
  Repository repository = Open();
  std::string note;
  ASSERT_OK(repository.MoveMain(first_, second_, &note));
  EXPECT_NE(note.find("git read-tree -m -u " + first_.substr(0, 12)), std::string::npos) << note;
  Git({"read-tree", "-m", "-u", first_.substr(0, 12), second_.substr(0, 12)});
  EXPECT_EQ(StatusOf(repo_), " M \"src/deep/größe und.txt\"\n");
  EXPECT_EQ(ReadFile(repo_ / "new dir/ü.txt").value(), "new text\n");
}

}  // namespace
}  // namespace crucible
