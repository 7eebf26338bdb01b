// Builds of a target: placeholders, limits, error texts, hashes and the cache. The "builds" are
// one-line shell scripts.
#include "orchestrator/build_arm.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class Building : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = MakeTemporaryDirectory("build arm").value();
    target_.name = "toy";
    target_.editable = {"kernel/", "single.h"};
    target_.build_limit_ms = 60'000;
    Write("src/kernel/a.c", "int a;\n");
    Write("src/single.h", "1\n");
    request_.target = &target_;
    request_.arm = {.name = "m1", .source = root_ / "src", .build = root_ / "builds/k"};
    request_.programs = root_ / "bin";
    request_.log = root_ / "logs/build.log";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(root_ / path, text));
  }
  void Script(const std::string& text) { target_.build_commands = {{"sh", "-c", text}}; }
  std::string Log() { return ReadFile(request_.log).value(); }
  std::string Hash() { return SourceHash(target_, root_ / "src").value(); }
  // How many times the build wrote into count.txt.
  std::size_t Builds() { return ReadFile(root_ / "count.txt").value_or("").size(); }

  fs::path root_;
  Target target_;
  BuildRequest request_;
};

TEST_F(Building, RunsTheCommandsInOrderInTheSource) {
  target_.build_commands = {{"sh", "-c", "pwd > '{build}/first'; echo said"},
                            {"cp", "{build}/first", "{build}/second"},
                            {"sh", "-c", "echo {bin} {lib} $COLOUR > '{build}/names'"}};
  request_.environment = {{"COLOUR", "blue"}};
  const auto arm = BuildArm(request_);
  ASSERT_TRUE(arm) << arm.error().text;
  EXPECT_EQ(arm->source_hash, Hash());
  EXPECT_EQ(ReadFile(root_ / "builds/k/second").value(),
            fs::canonical(root_ / "src").string() + "\n");
  EXPECT_EQ(ReadFile(root_ / "builds/k/names").value(),
            (root_ / "bin").string() + " " + (root_ / "lib").string() + " blue\n");
  EXPECT_NE(Log().find("said\n"), std::string::npos);
  EXPECT_NE(Log().find("$ cp "), std::string::npos);
}

TEST_F(Building, AFailureQuotesTheFirstErrorsAndNamesTheLog) {
  target_.build_commands = {
      {"sh", "-c", "echo 'a.c:3:1: error: expected ;' >&2; seq 100; exit 3"},
      {"sh", "-c", "touch '{build}/never'"}};
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_EQ(arm.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(arm.error().text.find("a.c:3:1: error: expected ;"), std::string::npos);
  EXPECT_NE(arm.error().text.find("exit code 3"), std::string::npos);
  EXPECT_NE(arm.error().text.find(request_.log.string()), std::string::npos);
  EXPECT_FALSE(fs::exists(root_ / "builds/k/never"));
}

TEST_F(Building, OnlyThisBuildsOutputIsQuoted) {
  Script("echo 'old error: from before'; exit 1");
  ASSERT_FALSE(BuildArm(request_));
  Script("echo 'plain last words'; exit 1");
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_EQ(arm.error().text.find("from before"), std::string::npos);
  EXPECT_NE(arm.error().text.find("plain last words"), std::string::npos);
}

TEST_F(Building, AHangingCommandEndsAtItsLimit) {
  Script("sleep 600");
  target_.build_limit_ms = 200;
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_EQ(arm.error().kind, ErrorKind::kTimeout);
  EXPECT_NE(arm.error().text.find("0.2 s"), std::string::npos) << arm.error().text;
}

TEST_F(Building, AMissingProgramIsNamed) {
  target_.build_commands = {{"no-such-compiler-anywhere"}};
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_EQ(arm.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(arm.error().text.find("no-such-compiler-anywhere"), std::string::npos);
}

TEST_F(Building, TheRunnerIsUsedOnlyWhereTheTargetAsksForIt) {
  request_.runner = {"sh", "-c", "echo queued; exec \"$@\"", "runner"};
  Script("echo built");
  ASSERT_TRUE(BuildArm(request_));
  EXPECT_EQ(Log().find("queued"), std::string::npos);
  target_.build_on_device = true;
  ASSERT_TRUE(BuildArm(request_));
  EXPECT_NE(Log().find("queued\nbuilt\n"), std::string::npos) << Log();
  request_.runner = {"sh", "-c", "exit 124"};
  EXPECT_EQ(BuildArm(request_).error().kind, ErrorKind::kTimeout);
}

TEST_F(Building, TheHashFollowsTheEditableFilesAlone) {
  const std::string before = Hash();
  Write("src/elsewhere.c", "x");
  EXPECT_EQ(Hash(), before);
  Write("src/kernel/b.c", "");
  const std::string added = Hash();
  EXPECT_NE(added, before);
  fs::rename(root_ / "src/kernel/b.c", root_ / "src/kernel/c.c");
  EXPECT_NE(Hash(), added);
  fs::remove(root_ / "src/kernel/c.c");
  EXPECT_EQ(Hash(), before);
  fs::remove(root_ / "src/single.h");
  const std::string missing = Hash();
  EXPECT_NE(missing, before);
  fs::create_symlink("/absent", root_ / "src/single.h");  // a dangling link is no error
  EXPECT_NE(Hash(), missing);
}

TEST_F(Building, AFinishedBuildIsNotRepeated) {
  Script("printf x >> " + ("'" + (root_ / "count.txt").string() + "'"));
  ASSERT_TRUE(BuildArmOnce(request_));
  const auto again = BuildArmOnce(request_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->source_hash, Hash());
  EXPECT_EQ(Builds(), 1u);
  Write("src/single.h", "2\n");  // other sources
  ASSERT_TRUE(BuildArmOnce(request_));
  EXPECT_EQ(Builds(), 2u);
  target_.build_commands.push_back({"true"});  // other commands
  ASSERT_TRUE(BuildArmOnce(request_));
  EXPECT_EQ(Builds(), 3u);
}

TEST_F(Building, AHalfDoneBuildIsDoneAgainFromScratch) {
  Script("printf x >> '" + (root_ / "count.txt").string() + "'; test ! -e '{build}/half'");
  Write("builds/k/half", "left by a killed build");
  ASSERT_TRUE(BuildArmOnce(request_));
  EXPECT_EQ(Builds(), 1u);
  Script("exit 1");
  ASSERT_FALSE(BuildArmOnce(request_));
  ASSERT_FALSE(BuildArmOnce(request_)) << "a failed build must not count as built";
}

TEST(FirstErrorLines, PicksWhatSaysWhatIsWrong) {
  EXPECT_EQ(FirstErrorLines("[1/2] cc -Werror a.c\n\x1b[31ma.c:1: error: no\x1b[0m\r\nnote: x\n"
                            "b.o: undefined reference to `f'\n"),
            "a.c:1: error: no\nb.o: undefined reference to `f'");
  EXPECT_EQ(FirstErrorLines("CMake Error at CMakeLists.txt:3 (find_package):\n  could not find X\n"
                            "-- Configuring incomplete\n"),
            "CMake Error at CMakeLists.txt:3 (find_package):\n  could not find X");
  EXPECT_EQ(FirstErrorLines("one\ntwo\n\nthree\n", 2), "two\nthree");
  EXPECT_EQ(FirstErrorLines("error: 1\nerror: 2\nerror: 3\n", 2), "error: 1\nerror: 2");
  EXPECT_EQ(FirstErrorLines(""), "");
}

}  // namespace
}  // namespace crucible
