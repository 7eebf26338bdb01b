// Commits of main as arms: whole after a kill, built once, one process at a time.
#include "orchestrator/baseline.h"

#include <sys/wait.h>

#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class BaselineTest : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    target_.editable = {"kernel.txt"};
    target_.build_commands = {
        {"sh", "-c", "echo built >>\"{build}/count\"; cp kernel.txt src/deep/* \"{build}\""}};
    target_.build_limit_ms = 20'000;
    workspace_.home = repo_ / ".crucible";
    ASSERT_TRUE(PrepareHome(workspace_));
  }
  Result<Arm> Baseline() {
    CRUCIBLE_ASSIGN(Repository repository, Repository::Open(repo_, "main"));
    return BaselineArm({&workspace_, &target_, &repository, ""}, first_);
  }
  std::string BuildsOf(const Arm& arm) { return ReadFile(arm.build / "count").value(); }

  Workspace workspace_;
  Target target_;
};

TEST_F(BaselineTest, IsCheckedOutAndBuiltOnce) {
  const auto arm = Baseline();
  ASSERT_TRUE(arm) << arm.error().text;
  EXPECT_EQ(ReadFile(arm->build / "kernel.txt").value(), "one\ntwo\nthree\n");
  const auto again = Baseline();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->source_hash, arm->source_hash);
  EXPECT_EQ(BuildsOf(*again), "built\n");
}

TEST_F(BaselineTest, ACheckoutThatAKillLeftHalfMadeIsMadeAgain) {
  // As a kill leaves it: at each step of the making, what is there is there and the rest is not.
  const fs::path checkout = workspace_.Checkout(first_);
  const fs::path marker = checkout.string() + ".complete";
  const fs::path administration = repo_ / ".git/worktrees" / ("base-" + first_.substr(0, 12));
  const std::vector<std::vector<fs::path>> missing = {
      {checkout / "kernel.txt", marker},
      {checkout / "kernel.txt", checkout / "src", administration / "index", marker},
      {checkout / ".git", marker},
      {administration / "HEAD", marker},
      {checkout, marker},
      {administration, checkout / "src", marker}};
  for (const std::vector<fs::path>& gone : missing) {
    ASSERT_TRUE(Baseline());
    for (const fs::path& path : gone) {
      ASSERT_TRUE(fs::exists(path)) << path;
      fs::remove_all(path);
    }
    ASSERT_TRUE(RemoveTree(workspace_.Builds()));
    Git({"branch", "-f", "crucible/detached-base-" + first_.substr(0, 12), first_});
    const auto arm = Baseline();
    ASSERT_TRUE(arm) << gone.front() << ": " << arm.error().text;
    EXPECT_EQ(ReadFile(checkout / "kernel.txt").value(), "one\ntwo\nthree\n") << gone.front();
    EXPECT_EQ(ReadFile(arm->build / "größe und.txt").value(), "unicode\n") << gone.front();
    EXPECT_EQ(Git({"branch", "--list", "crucible/*"}), "") << gone.front();
  }
}

TEST_F(BaselineTest, TwoProcessesThatWantItMakeItOnce) {
  target_.build_commands = {
      {"sh", "-c", "sleep 0.2; echo built >>\"{build}/count\"; cp kernel.txt \"{build}\""}};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(Baseline() ? 0 : 1);
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto arm = Baseline();
  ASSERT_TRUE(arm) << arm.error().text;
  EXPECT_EQ(BuildsOf(*arm), "built\n");
}

TEST_F(BaselineTest, TheKnobFilesOfACaseAreThoseThatMoveIt) {
  Write("knobs.toml",
        "[[class]]\nname = \"small\"\nfile = \"small.h\"\ncases = [\"a\"]\n"
        "[[class]]\nname = \"large\"\nfile = \"large.h\"\ncases = [\"b\"]\n"
        "[[knob]]\nname = \"step\"\nconstant = \"kStep\"\nvalues = [1, 2]\n"
        "mechanism = \"rows at once\"\n");
  const std::string commit = GitCommit("knobs");
  target_.cases = {{.name = "a"}, {.name = "b"}};
  auto repository = Repository::Open(repo_, "main");
  ASSERT_TRUE(repository);
  const BaselineContext context{&workspace_, &target_, &*repository, ""};
  EXPECT_TRUE(KnobFilesOfCases(context, commit).value().empty()) << "the target names no knobs";
  target_.knobs_file = "knobs.toml";
  const auto files = KnobFilesOfCases(context, commit);
  ASSERT_TRUE(files) << files.error().text;
  EXPECT_EQ(files->at("a"), std::set<std::string>{"small.h"});
  EXPECT_EQ(files->at("b"), std::set<std::string>{"large.h"});
}

}  // namespace
}  // namespace crucible
