// A wrong word to any command is told in the project's own form, and nothing is done.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"

namespace crucible {
namespace {

class WrongWords : public ::testing::Test {
 protected:
  void SetUp() override { root_ = MakeTemporaryDirectory("words_test").value(); }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(root_)) << "a command that was refused wrote something";
    EXPECT_TRUE(RemoveTree(root_));
  }

  Captured Run(std::vector<std::string> words) {
    words[0] = std::string(CRUCIBLE_BIN_DIR) + "/" + words[0];
    SubprocessSpec spec;
    spec.argv = std::move(words);
    spec.directory = root_;  // no repository: whoever looks for one did not look at the words first
    auto run = RunCaptured(spec, std::chrono::minutes(1));
    EXPECT_TRUE(run) << (run ? "" : run.error().text);
    return run ? *run : Captured{};
  }

  // One line "PROGRAM: ACTION OBJECT: CAUSE; NEXT STEP", exit 2, nothing on stdout.
  void ExpectRefused(const std::vector<std::string>& words, const std::string& cause) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    const Captured run = Run(words);
    EXPECT_EQ(run.status.code, 2) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "not one line: " << run.err;
    // gpu_run speaks under its own name wherever it is called from.
    EXPECT_TRUE(run.err.starts_with(words[0] + ": ") || run.err.starts_with("gpu")) << run.err;
    const std::size_t at = run.err.find(cause);
    ASSERT_NE(at, std::string::npos) << run.err;
    const std::size_t next = run.err.find("; ", at);
    ASSERT_NE(next, std::string::npos) << "no next step: " << run.err;
    EXPECT_NE(run.err.find("--help`", next), std::string::npos) << run.err;
  }

  std::filesystem::path root_;
};

const std::vector<std::string> kCommands[] = {
    {"crucible", "init"},
    {"crucible", "doctor"},
    {"crucible", "campaign", "launch"},
    {"crucible", "campaign", "resume"},
    {"crucible", "campaign", "status"},
    {"crucible", "campaign", "pause"},
    {"crucible", "campaign", "stop"},
    {"crucible", "campaign", "note"},
    {"crucible", "mission", "list"},
    {"crucible", "mission", "show"},
    {"crucible", "mission", "add"},
    {"crucible", "mission", "attach"},
    {"crucible", "mission", "approve"},
    {"crucible", "brief"},
    {"crucible", "log", "add"},
    {"crucible", "log", "show"},
    {"crucible", "log", "query"},
    {"crucible", "log", "export"},
    {"crucible", "log", "import"},
    {"crucible", "log", "retest"},
    {"crucible", "log", "split"},
    {"crucible", "log", "records"},
    {"crucible", "check"},
    {"crucible", "compare"},
    {"crucible", "profile"},
    {"crucible", "dashboard"},
    {"crucible", "mcp"},
    {"crucible", "agent"},
    {"crucible", "plan"},
    {"crucible", "propose"},
    {"crucible", "integrate"},
    {"crucible_check", "check"},
    {"crucible_check", "gate"},
    {"eigh_harness"},
    {"crucible_decisions"},
};

TEST_F(WrongWords, AnOptionThatThereIsNotIsRefusedByEveryCommand) {
  for (std::vector<std::string> words : kCommands) {
    const std::string command = fmt::format("`{} --help`", fmt::join(words, " "));
    words.push_back("--no-such-option");
    ExpectRefused(words, "");
    EXPECT_NE(Run(words).err.find(command), std::string::npos)
        << "the next step does not name " << command << ": " << Run(words).err;
  }
}

TEST_F(WrongWords, EachCauseIsNamed) {
  ExpectRefused({"crucible", "brief", "--no-such-option"}, "--no-such-option");
  ExpectRefused({"crucible", "dashboard", "page.html"}, "page.html");
  ExpectRefused({"crucible", "brief", "--budget", "-3"}, "--budget");
  ExpectRefused({"crucible", "log", "query", "--limit", "many"}, "--limit");
  ExpectRefused({"crucible", "log", "query", "--limit"}, "--limit");
  ExpectRefused({"crucible", "log", "show"}, "ID is required");
  ExpectRefused({"crucible", "log"}, "A subcommand is required");
  ExpectRefused({"crucible", "log", "qeury"}, "qeury");
  ExpectRefused({"crucible", "campaign", "lunch", "x.toml"}, "lunch");
  ExpectRefused({"crucible", "mission", "add", "--case", "a", "--goal", "b", "--flavour", "odd"},
                "--flavour");
  ExpectRefused({"crucible", "lgo"}, "lgo");
  ExpectRefused({"crucible", "gpu", "statsu"}, "statsu");
  ExpectRefused({"crucible", "gpu", "status", "--no-such-option"}, "--no-such-option");
  ExpectRefused({"gpu_run", "--no-such-option", "--", "true"}, "--no-such-option");
  ExpectRefused({"gpu_run"}, "no command was given");
  ExpectRefused({"crucible_check", "compare"}, "is required");
  ExpectRefused({"eigh_harness", "--threads", "0"}, "--threads");
}

TEST_F(WrongWords, HelpIsAnAnswerAndNoMistake) {
  for (std::vector<std::string> words : kCommands) {
    words.push_back("--help");
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    const Captured run = Run(words);
    EXPECT_EQ(run.status.code, 0) << run.err;
    EXPECT_NE(run.out.find("--help"), std::string::npos) << run.out;
    EXPECT_EQ(run.out.find("{false}"), std::string::npos) << "the parser's own marks: " << run.out;
    EXPECT_EQ(run.err, "");
  }
  EXPECT_EQ(Run({"crucible", "gpu", "status", "--help"}).status.code, 0);
  EXPECT_EQ(Run({"gpu_run", "history", "--help"}).status.code, 0);
}

}  // namespace
}  // namespace crucible
