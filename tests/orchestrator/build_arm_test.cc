// Builds of arms: limits, the compiler's own words, and no trust in half a build.
#include "orchestrator/build_arm.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace crucible {
namespace {

class BuildArmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = MakeTemporaryDirectory("build_arm_test").value();
    ASSERT_TRUE(WriteFileAtomically(root_ / "source/kernel/a.txt", "one"));
    target_.editable = {"kernel/"};
    target_.build_commands = {{"sh", "-c", "echo run >> {build}/count; cp kernel/a.txt {build}/a"}};
    target_.build_limit_ms = 5000;
    request_.target = &target_;
    request_.arm.name = "arm";
    request_.arm.source = root_ / "source";
    request_.arm.main = root_ / "source";
    request_.arm.build = root_ / "build";
    request_.log = root_ / "build.log";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(root_)); }

  std::filesystem::path root_;
  Target target_;
  BuildRequest request_;
};

TEST_F(BuildArmTest, BuildsOutOfSourceAndBindsTheArmToItsSource) {
  const auto arm = BuildArm(request_);
  ASSERT_TRUE(arm) << arm.error().text;
  EXPECT_EQ(ReadFile(root_ / "build/a").value(), "one");
  ASSERT_TRUE(WriteFileAtomically(root_ / "source/kernel/a.txt", "two"));
  const auto other = BuildArm(request_);
  ASSERT_TRUE(other);
  EXPECT_NE(arm->source_hash, other->source_hash);
}

TEST_F(BuildArmTest, FilesOutsideTheEditablePathsDoNotCount) {
  const std::string before = SourceHash(target_, root_ / "source").value();
  ASSERT_TRUE(WriteFileAtomically(root_ / "source/readme", "x"));
  EXPECT_EQ(SourceHash(target_, root_ / "source").value(), before);
  ASSERT_TRUE(WriteFileAtomically(root_ / "source/kernel/b.txt", ""));
  EXPECT_NE(SourceHash(target_, root_ / "source").value(), before);
}

TEST_F(BuildArmTest, AFinishedBuildIsNotRepeatedAndAHalfOneIs) {
  ASSERT_TRUE(BuildArmOnce(request_));
  ASSERT_TRUE(BuildArmOnce(request_));
  EXPECT_EQ(ReadFile(root_ / "build/count").value(), "run\n");
  std::filesystem::remove(root_ / "build/.crucible-built");  // as a kill would have left it
  ASSERT_TRUE(WriteFileAtomically(root_ / "build/a", "half"));
  ASSERT_TRUE(BuildArmOnce(request_));
  EXPECT_EQ(ReadFile(root_ / "build/a").value(), "one");
}

TEST_F(BuildArmTest, AFailureQuotesTheErrorAndNamesTheLog) {
  target_.build_commands = {
      {"sh", "-c", "printf 'fi%s\n' ne; echo 'k.cc:3: error: no such thing' >&2; exit 2"}};
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_NE(arm.error().text.find("k.cc:3: error: no such thing"), std::string::npos)
      << arm.error().text;
  EXPECT_EQ(arm.error().text.find("fine"), std::string::npos) << arm.error().text;
  EXPECT_NE(arm.error().text.find((root_ / "build.log").string()), std::string::npos);
  EXPECT_NE(ReadFile(root_ / "build.log").value().find("fine"), std::string::npos);
}

TEST_F(BuildArmTest, ABuildThatHangsEndsAtItsLimit) {
  target_.build_limit_ms = 200;
  target_.build_commands = {{"sleep", "1000"}};
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_EQ(arm.error().kind, ErrorKind::kTimeout);
}

TEST_F(BuildArmTest, AMissingCompilerIsNamed) {
  target_.build_commands = {{"no-such-compiler-here", "x"}};
  const auto arm = BuildArm(request_);
  ASSERT_FALSE(arm);
  EXPECT_NE(arm.error().text.find("no-such-compiler-here"), std::string::npos);
}

TEST(FirstErrorLines, HoldWhatCMakeSaysBelowItsError) {
  const std::string output =
      "-- The CXX compiler identification is unknown\n"
      "CMake Error at CMakeLists.txt:2 (project):\n"
      "  No CMAKE_CXX_COMPILER could be found.\n\n"
      "  Tell CMake where to find the compiler\n\n\n"
      "-- Configuring incomplete\n";
  EXPECT_EQ(FirstErrorLines(output, 2),
            "CMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_CXX_COMPILER could be found.");
  EXPECT_EQ(FirstErrorLines(output).find("incomplete"), std::string::npos);
}

TEST(FirstErrorLines, FallBackToTheEndOfTheOutput) {
  EXPECT_EQ(FirstErrorLines("a\nb\nc\n", 2), "b\nc");
  EXPECT_EQ(FirstErrorLines("a\nx: error: 1\nb\ny: error: 2\n", 1), "x: error: 1");
  EXPECT_EQ(FirstErrorLines(""), "");
}

}  // namespace
}  // namespace crucible
