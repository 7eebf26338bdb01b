// read_file, list_files, search, edit_file, write_file: confined to the worktree, and what is
// written to what the mission may change.
#include <sys/stat.h>

#include "mission_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class FileTools : public MissionFixture {};

TEST_F(FileTools, ReadNumbersLinesAndSaysWhereToGoOn) {
  EXPECT_EQ(Call("read_file", {{"path", "kernel/k.cc"}}).text,
            "1\tint speed = 1;\n2\tint more = 2;\n");
  EXPECT_EQ(Call("read_file", {{"path", "kernel/k.cc"}, {"lines", 1}}).text,
            "1\tint speed = 1;\n[14 more bytes in kernel/k.cc: go on with offset 2]\n");
  EXPECT_EQ(Call("read_file", {{"path", "kernel/k.cc"}, {"offset", 2}}).text, "2\tint more = 2;\n");
  EXPECT_REFUSED(Call("read_file", {{"path", "kernel/k.cc"}, {"offset", 9}}), "it has 2 lines");
}

TEST_F(FileTools, AnAnswerStaysWithinItsBound) {
  context_.limits.answer_bytes = 500;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a line of some length\n";
  Write(order().worktree / "kernel/long.txt", text);
  const ToolAnswer answer = Call("read_file", {{"path", "kernel/long.txt"}});
  EXPECT_LT(answer.text.size(), 700u);
  EXPECT_THAT(answer.text, HasSubstr("more bytes in kernel/long.txt"));
  EXPECT_LT(Call("search", {{"pattern", "line"}}).text.size(), 700u);
}

TEST_F(FileTools, NothingOutsideTheWorktreeIsRead) {
  Write(root_ / "secret", "the key");
  fs::create_symlink(root_ / "secret", order().worktree / "kernel/link");
  fs::create_directory_symlink(root_, order().worktree / "kernel/up");
  for (const char* path : {"../../../secret", "kernel/link", "kernel/up/secret", "/etc/passwd",
                           "kernel/../../../../secret"})
    EXPECT_REFUSED(Call("read_file", {{"path", path}}), "outside the worktree");
  EXPECT_REFUSED(Call("read_file", {{"path", ".git"}}), "outside");
  EXPECT_REFUSED(Call("list_files", {{"path", "kernel/up"}}), "outside the worktree");
  EXPECT_REFUSED(Call("search", {{"pattern", "key"}, {"path", "kernel/up"}}), "outside");
  EXPECT_ANSWER(Call("search", {{"pattern", "the key"}}), "no line matches");
  EXPECT_REFUSED(Call("read_file", {{"path", (Folder() / "mission.json").string()}}), "outside");
}

TEST_F(FileTools, NothingButTheMissionsOwnIsWritten) {
  fs::create_symlink(root_ / "elsewhere", order().worktree / "kernel/link");
  fs::create_directory_symlink(root_, order().worktree / "kernel/up");
  fs::create_symlink("fixed.h", order().worktree / "kernel/alias.h");
  for (const char* path :
       {"harness.cc", "kernel/fixed.h", "kernel/../harness.cc", "../m2/k.cc", "/tmp/x", ".git",
        ".git/config", "kernel/up/x", "kernel/link", "kernel/alias.h", "kernel", ""})
    EXPECT_TRUE(Call("write_file", {{"path", path}, {"content", "x"}}).is_error) << path;
  EXPECT_FALSE(fs::exists(root_ / "elsewhere"));
  EXPECT_FALSE(fs::exists(root_ / "x"));
  EXPECT_EQ(ReadFile(order().worktree / "kernel/fixed.h").value(), "int fixed;\n");
  EXPECT_REFUSED(
      Call("edit_file", {{"path", "kernel/fixed.h"}, {"old_text", "int"}, {"new_text", "x"}}),
      "may not change it");
}

TEST_F(FileTools, ANewFileInANewFolderIsWritten) {
  EXPECT_ANSWER(Call("write_file", {{"path", "kernel/new/a b.cc"}, {"content", "x\n"}}), "wrote");
  EXPECT_EQ(ReadFile(order().worktree / "kernel/new/a b.cc").value(), "x\n");
  EXPECT_ANSWER(Call("list_files", {{"path", "kernel"}}), "kernel/new/a b.cc  2 bytes  editable");
  EXPECT_THAT(Call("list_files", {{"path", "kernel"}}).text,
              HasSubstr("kernel/fixed.h  11 bytes\n"));
}

TEST_F(FileTools, AnEditIsExactAndUnique) {
  fs::permissions(order().worktree / "kernel/k.cc", fs::perms(0755));
  EXPECT_REFUSED(
      Call("edit_file", {{"path", "kernel/k.cc"}, {"old_text", "int "}, {"new_text", "x"}}),
      "occurs 2 times (lines 1, 2)");
  EXPECT_REFUSED(
      Call("edit_file", {{"path", "kernel/k.cc"}, {"old_text", "absent"}, {"new_text", "x"}}),
      "does not occur");
  EXPECT_REFUSED(Call("edit_file",
                      {{"path", "kernel/k.cc"}, {"old_text", "int  speed=1;"}, {"new_text", "x"}}),
                 "other blanks or tabs only");
  EXPECT_ANSWER(Call("edit_file",
                     {{"path", "kernel/k.cc"}, {"old_text", "more = 2"}, {"new_text", "more = 3"}}),
                "at line 2");
  EXPECT_EQ(ReadFile(order().worktree / "kernel/k.cc").value(), "int speed = 1;\nint more = 3;\n");
  EXPECT_EQ(fs::status(order().worktree / "kernel/k.cc").permissions(), fs::perms(0755));
}

// Sparse: it takes no disk, and all of the memory of whoever reads it.
TEST_F(FileTools, AHugeFileIsRefusedAndNotReadIntoMemory) {
  Write(order().worktree / "kernel/huge", "x");
  fs::resize_file(order().worktree / "kernel/huge", std::uintmax_t{1} << 40);
  EXPECT_REFUSED(Call("edit_file", {{"path", "kernel/huge"}, {"old_text", "x"}, {"new_text", "y"}}),
                 "more than 1048576");
  EXPECT_REFUSED(Call("read_file", {{"path", "kernel/huge"}}), "larger than 64 MiB");
  for (const char* tool : {"build", "compare"})
    EXPECT_REFUSED(Call(tool, nlohmann::json::object()), "kernel/huge");
  fs::remove(order().worktree / "kernel/huge");
  ASSERT_EQ(::mkfifo((order().worktree / "kernel/pipe").c_str(), 0600), 0);
  EXPECT_REFUSED(Call("build", nlohmann::json::object()), "kernel/pipe");  // nor waited for
}

TEST_F(FileTools, SearchFindsLinesAndRefusesABadPattern) {
  EXPECT_EQ(Call("search", {{"pattern", "speed = [0-9]"}}).text, "kernel/k.cc:1:int speed = 1;\n");
  EXPECT_EQ(Call("search", {{"pattern", "-int"}, {"path", "kernel"}}).text,
            "no line matches in kernel\n");
  EXPECT_THAT(Call("search", {{"pattern", "INT"}, {"ignore_case", true}, {"files", "*.h"}}).text,
              Not(HasSubstr("k.cc")));
  EXPECT_REFUSED(Call("search", {{"pattern", "("}}), "extended regular expression");
  EXPECT_ANSWER(Call("search", {{"pattern", "int"}, {"most", 1}}), "3 more lines");
}

TEST_F(FileTools, BinaryFilesAreNamedAsSuch) {
  Write(order().worktree / "kernel/b", std::string("a\0b", 3));
  EXPECT_REFUSED(Call("read_file", {{"path", "kernel/b"}}), "it is binary (3 bytes)");
}

}  // namespace
}  // namespace crucible
