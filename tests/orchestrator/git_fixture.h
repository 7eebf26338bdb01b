// git_fixture.h: a fresh repository per test, driven by the git program, which is the second
// opinion on everything libgit2 did: after each test `git fsck` and `git worktree list` must be
// content.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "orchestrator/repository.h"

namespace crucible {

class GitFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::canonical(MakeTemporaryDirectory("repository test ü").value());
    repo_ = root_ / "a repo";
    std::filesystem::create_directory(repo_);
    Git({"init", "-q", "-b", "main"});
    Write("kernel.txt", "one\ntwo\nthree\n");
    Write("src/deep/größe und.txt", "unicode\n");
    Write(".gitignore", "*.o\nbuild/\n");
    first_ = GitCommit("first");
  }
  void TearDown() override {
    if (std::filesystem::exists(repo_)) {
      EXPECT_EQ(GitIn(repo_, {"fsck", "--strict"}, true).status.code, 0);
      EXPECT_EQ(GitIn(repo_, {"worktree", "list"}, true).status.code, 0);
    }
    EXPECT_TRUE(RemoveTree(root_));
  }

  static Captured GitIn(const std::filesystem::path& directory, std::vector<std::string> words,
                        bool may_fail = false) {
    SubprocessSpec spec;
    spec.argv = {"git",
                 "-c",
                 "user.name=Test",
                 "-c",
                 "user.email=test@localhost",
                 "-c",
                 "core.quotePath=false"};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.directory = directory;
    spec.environment = {{"GIT_CONFIG_GLOBAL", "/dev/null"}, {"GIT_CONFIG_SYSTEM", "/dev/null"}};
    auto captured = RunCaptured(spec);
    if (!captured) {
      ADD_FAILURE() << captured.error().text;
      return {};
    }
    if (!may_fail) {
      EXPECT_TRUE(captured->status.ok()) << words[0] << ": " << captured->err;
    }
    return *captured;
  }
  std::string Git(std::vector<std::string> words) {
    std::string out = GitIn(repo_, std::move(words)).out;
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }
  std::string StatusOf(const std::filesystem::path& directory) {
    return GitIn(directory, {"status", "--porcelain"}).out;
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(repo_ / path, text));
  }
  std::string GitCommit(const std::string& message) {
    Git({"add", "-A"});
    Git({"commit", "-q", "-m", message});
    return Git({"rev-parse", "HEAD"});
  }
  Repository Open() {
    auto repository = Repository::Open(repo_, "main");
    EXPECT_TRUE(repository) << repository.error().text;
    return std::move(*repository);
  }

  std::filesystem::path root_, repo_;
  std::string first_;
};

#define ASSERT_OK(expression)                                   \
  do {                                                          \
    const auto& asserted = (expression);                        \
    ASSERT_TRUE(asserted.has_value()) << asserted.error().text; \
  } while (0)

}  // namespace crucible
