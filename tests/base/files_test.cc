// Whole-file writes, hashes, paths and the text of times.
#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file_lock.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/paths.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override { root_ = MakeTemporaryDirectory("files_test").value(); }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }
  fs::path root_;
};

TEST_F(Files, WritesAndReadsBack) {
  const fs::path path = root_ / "a" / "b.txt";
  ASSERT_TRUE(WriteFileAtomically(path, "one"));
  ASSERT_TRUE(WriteFileAtomically(path, "two"));
  EXPECT_EQ(ReadFile(path).value(), "two");
  ASSERT_TRUE(AppendLine(path, "three"));
  EXPECT_EQ(ReadFile(path).value(), "twothree\n");
}

TEST_F(Files, ALockIsOneHoldersUntilItGoesAndItsFileStays) {
  const fs::path path = root_ / "locks" / "a.lock";
  {
    const auto held = FileLock::Take(path);
    ASSERT_TRUE(held);
    const auto second = FileLock::TryTake(path);
    ASSERT_TRUE(second) << second.error().text;
    EXPECT_FALSE(second->has_value()) << "two hold it";
  }
  const auto again = FileLock::TryTake(path);
  ASSERT_TRUE(again && again->has_value());
  EXPECT_TRUE(fs::exists(path));
  const auto nowhere = FileLock::TryTake("/proc/none/a.lock");
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().text.find("/proc/none"), std::string::npos) << nowhere.error().text;
}

TEST_F(Files, AFailedWriteLeavesTheOldTextAndNoResidue) {
  const fs::path path = root_ / "kept.txt";
  ASSERT_TRUE(WriteFileAtomically(path, "old"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit small{10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto written = WriteFileAtomically(path, std::string(1000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kIo);
  EXPECT_EQ(ReadFile(path).value(), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator{}), 1);
}

TEST_F(Files, AMissingFileSaysWhichAndWhatNext) {
  const auto text = ReadFile(root_ / "absent");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(text.error().text.find("absent"), std::string::npos);
  EXPECT_NE(text.error().text.find("check the path"), std::string::npos);
}

TEST_F(Files, HomeIsBesideTheCommonGitDirectory) {
  ::unsetenv("CRUCIBLE_HOME");
  fs::create_directories(root_ / "repo" / ".git" / "worktrees" / "w");
  fs::create_directories(root_ / "w" / "deep");
  ASSERT_TRUE(WriteFileAtomically(root_ / "repo/.git/worktrees/w/commondir", "../..\n"));
  ASSERT_TRUE(WriteFileAtomically(root_ / "w/.git",
                                  "gitdir: " + (root_ / "repo/.git/worktrees/w").string() + "\n"));
  EXPECT_EQ(CrucibleHome(root_ / "repo").value(), root_ / "repo" / ".crucible");
  EXPECT_EQ(CrucibleHome(root_ / "w" / "deep").value(), root_ / "repo" / ".crucible");
  EXPECT_FALSE(CrucibleHome("/proc"));
}

TEST_F(Files, EveryFailureSaysWhatToDo) {
  const auto folder = ReadFile(root_);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().text.find("Is a directory; name a file in it"), std::string::npos)
      << folder.error().text;
  const auto too_long = WriteFileAtomically(root_ / std::string(300, 'x'), "");
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().text.find("; "), std::string::npos) << too_long.error().text;
}

TEST(Hash, KnownAnswer) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(RandomHex(8).size(), 16u);
  EXPECT_NE(RandomHex(8), RandomHex(8));
}

TEST(ClockText, SaysDurationsAsPeopleDo) {
  EXPECT_EQ(FormatDuration(120), "120 ms");
  EXPECT_EQ(FormatDuration(5200), "5.2 s");
  EXPECT_EQ(FormatDuration(184'000), "3 min 04 s");
  EXPECT_EQ(FormatDuration(3'720'000), "1 h 02 min");
  EXPECT_EQ(FormatUtc(0), "1970-01-01T00:00:00.000Z");
}

TEST_F(Files, ALockThatWasTakenAwayKeepsNobodyOut) {
  const fs::path path = root_ / "lock";
  auto first = FileLock::TryTake(path);
  ASSERT_TRUE(first && *first);
  EXPECT_FALSE(FileLock::TryTake(path)->has_value());
  FileLock::Remove(std::move(**first), path);
  EXPECT_FALSE(fs::exists(path));
  const auto second = FileLock::TryTake(path);
  ASSERT_TRUE(second && *second);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_FALSE(FileLock::TryTake(path)->has_value());
}

TEST_F(Files, OutputGoesToWhatThePathNames) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "real", "old"));
  fs::create_symlink("real", root_ / "link");
  fs::create_symlink("new", root_ / "dangling");
  ASSERT_TRUE(WriteOutput(root_ / "link", "one"));
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(ReadFile(root_ / "real").value(), "one");
  ASSERT_TRUE(WriteOutput(root_ / "dangling", "two"));
  EXPECT_TRUE(fs::is_symlink(root_ / "dangling"));
  EXPECT_EQ(ReadFile(root_ / "new").value(), "two");

  const fs::path pipe = root_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(WriteOutput(pipe, "three"));
  char text[8] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 5);
  EXPECT_STREQ(text, "three");
  EXPECT_TRUE(fs::is_fifo(pipe)) << "replaced by a file";

  const auto folder = WriteOutput(root_, "x");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().text, "write " + root_.string() + ": it is a folder; name a file in it");
  const auto full = WriteOutput("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().text.find("No space left"), std::string::npos) << full.error().text;
}

}  // namespace
}  // namespace crucible
