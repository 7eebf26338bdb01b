// `crucible compare A B`, run as a person runs it: commits, folders, built libraries, and mistakes.
#include <gmock/gmock.h>

#include "base/json.h"
#include "tests/orchestrator/merge/merge_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Compare : public MergeFixture {
 protected:
  void SetUp() override {
    MergeFixture::SetUp();
    target_ = WriteTarget("").string();
    Git({"checkout", "-q", "-b", "fast"});
    fast_ = CommitTime("90");
    Git({"checkout", "-q", "main"});
  }

  Captured Crucible(std::vector<std::string> words) {
    words.insert(words.begin(), CRUCIBLE_BIN_DIR "/crucible");
    words.insert(words.end(), {"--target", target_});
    auto run = RunCaptured({.argv = std::move(words), .directory = repo_}, std::chrono::minutes(2));
    EXPECT_TRUE(run) << run.error().text;
    return run ? *run : Captured{};
  }

  // A checkout of `commit` that belongs to nobody else.
  std::string Folder(const std::string& name, const std::string& commit) {
    Git({"worktree", "add", "-q", "--detach", (root_ / name).string(), commit});
    return (root_ / name).string();
  }

  // What the fake harness takes for a library: a plan. It is named as a real one is.
  std::string Library(const std::string& name, const std::string& us) {
    const fs::path file = root_ / (name + ".so");
    EXPECT_TRUE(WriteFileAtomically(file, "time_us " + us + "\nnoise 0.0003\n"));
    return file.string();
  }

  void ExpectFaster(const std::string& a, const std::string& b) {
    const Captured run = Crucible({"compare", a, b, "--json"});
    EXPECT_EQ(run.status.code, 0) << run.err;
    const json answer = json::parse(run.out, nullptr, false);
    ASSERT_TRUE(answer.is_object()) << run.out;
    EXPECT_EQ(answer["op"], "compare");
    EXPECT_EQ(answer["verdict"], "accepted") << answer["reason"];
    const json& row = answer["cases"].at(0);
    EXPECT_EQ(row["case"], "small");
    EXPECT_NEAR(row["ratio"].get<double>(), 0.9, 0.01);
    EXPECT_LT(row["ratio_high"].get<double>(), 1);
    EXPECT_GT(row["rounds"].get<int>(), 0);
    EXPECT_NE(answer["baseline"]["library_sha256"], answer["candidate"]["library_sha256"]);
  }

  std::string target_, fast_;
};

TEST_F(Compare, TwoCommits) { ExpectFaster(main_.substr(0, 10), "fast"); }

TEST_F(Compare, TwoWorktreeFolders) { ExpectFaster(Folder("one", main_), Folder("two", fast_)); }

TEST_F(Compare, AFolderIsTakenAsItStandsCommittedOrNot) {
  const std::string folder = Folder("edited", main_);
  ASSERT_TRUE(WriteFileAtomically(fs::path(folder) / "tuning.h", "constexpr int kTimeUs = 90;\n"));
  ExpectFaster("main", folder);
}

TEST_F(Compare, TwoLibraries) { ExpectFaster(Library("old", "100"), Library("new", "90")); }

TEST_F(Compare, AnyTwoOfThem) {
  ExpectFaster("main", Library("new", "90"));
  ExpectFaster(Library("old", "100"), Folder("two", fast_));
  ExpectFaster(Folder("one", main_), "fast");
}

TEST_F(Compare, PrintsATableWithRatioIntervalRoundsVerdictAndWhy) {
  const Captured run = Crucible({"compare", "main", "fast", "--case", "small"});
  EXPECT_EQ(run.status.code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("compare: accepted"));
  for (const char* column : {"case", "before us", "after us", "ratio", "interval", "rounds",
                             "verdict", "why", "small", "0.90", "accepted", "faster: ", "seed"})
    EXPECT_THAT(run.out, HasSubstr(column));
}

TEST_F(Compare, TheSameTwiceIsNoDifferenceAndEndsWith1) {
  const Captured run = Crucible({"compare", "main", Folder("one", main_)});
  EXPECT_EQ(run.status.code, 1);
  EXPECT_THAT(run.out, HasSubstr("no_difference"));
  EXPECT_THAT(run.out, HasSubstr("the same library, byte for byte"));
}

TEST_F(Compare, ASlowerOneIsRejectedAndEndsWith1) {
  const Captured run = Crucible({"compare", "fast", "main"});
  EXPECT_EQ(run.status.code, 1);
  EXPECT_THAT(run.out, HasSubstr("slower: +11"));
}

TEST_F(Compare, AMistakeIsNamedWithWhatToDo) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const Captured run = Crucible(words);
    EXPECT_NE(run.status.code, 0);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(why));
  };
  refused({"compare", "main", "deadbeef"}, "measure deadbeef: it is no folder, no built library");
  refused({"compare", "main", "gone.so"}, "measure gone.so: it is no folder, no built library");
  refused({"compare", "nowhere/folder", "main"}, "measure nowhere/folder: it is no folder");
  refused({"compare", "main", "kernel.txt"}, "it is a file, and no built library (NAME.so)");
  refused({"compare", "main", "fast", "--case", "huge"}, "huge");
  refused({"compare", "main", "fast", "--rule", "guess"}, "guess");
  refused({"compare", "main"}, "B");
}

TEST_F(Compare, WhatIsNotThereEndsWith1WhateverItIs) {
  for (const char* what : {"/nonexist", "README", "deadbeef", "kernel.txt"})
    EXPECT_EQ(Crucible({"check", what}).status.code, 1) << what;
}

TEST_F(Compare, AMachineThatGivesNoVerdictEndsWith1AndSaysItOnce) {
  target_ = WriteTarget("", "mode crash_slot\\n").string();
  const Captured run = Crucible({"compare", "main", "fast"});
  EXPECT_EQ(run.status.code, 1) << run.out << run.err;
  EXPECT_THAT(run.out, StartsWith("compare: no verdict on the candidate: "));
}

TEST_F(Compare, TheCommandsThatABriefPrintsWorkAsTheyStand) {
  // The target has a name of its own here, and the log is of it.
  const fs::path file = repo_ / "missions" / "targets" / "fake.toml";
  ASSERT_TRUE(MakeDirectories(file.parent_path()));
  ASSERT_TRUE(WriteFileAtomically(file, ReadFile(target_).value()));
  SetRecord(main_, 100);
  Entry entry;
  entry.target = "fake";
  entry.cases.push_back({.name = "small"});
  ASSERT_TRUE(Log().AddEntry(entry));
  const auto shell = [&](const std::string& words) {
    auto run = RunCaptured(
        {.argv = {"sh", "-c", std::string(CRUCIBLE_BIN_DIR "/") + words}, .directory = repo_},
        std::chrono::minutes(2));
    EXPECT_TRUE(run) << run.error().text;
    return run ? *run : Captured{};
  };
  const std::string brief = shell("crucible brief small").out;
  EXPECT_THAT(brief, HasSubstr("    crucible check . --target fake\n"));
  EXPECT_THAT(brief, HasSubstr("    crucible compare main . --case small --target fake\n"));
  EXPECT_EQ(shell("crucible check . --target fake").status.code, 0);
  EXPECT_THAT(shell("crucible compare main . --case small --target fake").out,
              HasSubstr("no_difference"));
  // And without naming it: the log's only target comes before the built-in example's.
  const Captured check = shell("crucible check .");
  EXPECT_EQ(check.status.code, 0) << check.err;
}

TEST_F(Compare, TwoAtOnceKeepTheirOwnArms) {
  const auto start = [&](const std::string& a, const std::string& b, const std::string& out) {
    SubprocessSpec spec{
        .argv = {CRUCIBLE_BIN_DIR "/crucible", "compare", a, b, "--json", "--target", target_},
        .directory = repo_,
        .out = Stdio::kFile,
        .err = Stdio::kFile,
        .log_path = root_ / out};
    auto child = Subprocess::Start(spec);
    EXPECT_TRUE(child) << child.error().text;
    return std::move(*child);
  };
  const std::string slow = Library("slow", "100"), quick = Library("quick", "90");
  ExpectFaster(slow, quick);  // built and copied: from here both only wait for the device
  Subprocess one = start(slow, quick, "one"), other = start(quick, slow, "other");
  EXPECT_EQ(one.Wait()->code, 0) << ReadFile(root_ / "one").value_or("");
  EXPECT_EQ(other.Wait()->code, 1) << ReadFile(root_ / "other").value_or("");
}

}  // namespace
}  // namespace crucible
