// Bad input and a machine that fails: one clear error, nothing half written, and the same command
// works when the fault is gone.
#include <signal.h>

#include "base/clock.h"
#include "tests/e2e/faults_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class Mistakes : public FaultsFixture {
 protected:
  // `words` fail with the code and those words, and no path of the repository comes or goes.
  void ExpectRefused(const std::vector<std::string>& words, int code,
                     const std::vector<std::string>& wanted) {
    SCOPED_TRACE(fmt::format("crucible {}", fmt::join(words, " ")));
    const std::string before = Files(), refs = Git({"for-each-ref"});
    ExpectOneError(Crucible(words), code, wanted);
    EXPECT_EQ(Files(), before);
    EXPECT_EQ(Git({"for-each-ref"}), refs);
  }
};

TEST_F(Mistakes, InTheFilesAreToldWithTheirLineAndStartNothing) {
  const std::string target = ReadFile(repository_ / "examples/transpose/target.toml").value();
  struct Broken {
    std::string from, to;  // in the campaign file
    std::vector<std::string> wanted;
  };
  const Broken campaigns[] = {
      {"name = \"short\"", "name = [", {"campaign.toml:", "see missions/campaigns/demo.toml"}},
      {"agents = 1", "agents = two", {"campaign.toml:3:11: expected a text in quotes, a number"}},
      {"agents = 1", "agnets = 1", {"campaign.toml:3", "unknown key 'agnets'", "'agents'?"}},
      {"agents = 1", "agents = \"two\"", {"campaign.toml:3", "'agents' is not a whole number"}},
      {"wall = \"4m\"", "wall = 4", {"campaign.toml:5", "'wall'"}},
      {"[mission]", "[mission", {"campaign.toml:"}},
      {"transpose/target", "transpose/no-such", {"campaign.toml:2", "no-such.toml"}},
      {"[\"true\"]", "[\"true\", \"{where}\"]", {"unknown placeholder {where}"}},
  };
  const Broken targets[] = {
      {"[paths]", "[paths", {"target.toml:"}},
      {"[limits]\n", "[limits]\nslott = \"1ms\"\n", {"unknown key 'slott'"}},
      {"name = \"n300\"", "name = 300", {"target.toml:", "name"}},
      {"[harness]\n", "[harness]\nno_such = 1\n", {"unknown key 'no_such'"}},
  };
  const auto mend = [&] {
    Write("campaign.toml", kCampaign);
    Write("examples/transpose/target.toml", target);
  };
  const auto expect = [&](const std::string& file, const Broken& broken) {
    SCOPED_TRACE(broken.to);
    Replace(file, broken.from, broken.to);
    Commit("Break it");
    ExpectRefused({"campaign", "launch", "campaign.toml"}, 2, broken.wanted);
    mend();
    Commit("Mend it");
  };
  for (const Broken& broken : campaigns) expect("campaign.toml", broken);
  for (const Broken& broken : targets) expect("examples/transpose/target.toml", broken);
  EXPECT_FALSE(fs::exists(repository_ / ".crucible"));

  // In the place, not in the files.
  ExpectRefused({"campaign", "launch", "missing.toml"}, 1, {"missing.toml", "No such file"});
  ExpectRefused({"campaign", "resume", "short"}, 1, {"log.sqlite", "there is none yet"});
  ExpectRefused({"campaign", "status"}, 1, {"there is none yet", "crucible init"});
  Write("examples/transpose/tuning.h", "// changed\n");
  ExpectRefused({"campaign", "launch", "campaign.toml"}, 2,
                {"1 uncommitted change, e.g.", "tuning.h", "commit or stash"});
  // In the background no less: told here, and nothing is left.
  ExpectRefused({"campaign", "launch", "--detach", "campaign.toml"}, 2,
                {"uncommitted change", "tuning.h"});
  Git({"checkout", "-q", "--", "."});
  ExpectLaunchWorks();
}

TEST_F(Mistakes, InWhatTheProposerTurnsAreToldBeforeAnythingStarts) {
  const std::string target = "examples/transpose/target.toml",
                    tuning = "examples/transpose/tuning.h", knobs = "examples/transpose/knobs.toml";
  struct Broken {
    std::string file, from, to;
    std::vector<std::string> wanted;
  };
  const Broken mistakes[] = {
      {target,
       "file = \"examples/transpose/knobs.toml\"",
       "file = \"nope.toml\"",
       {"no file nope.toml", "target.toml"}},
      {knobs, "values = [0, 1]", "values = [", {"knobs.toml:"}},
      {knobs, "\"kBlock\"", "\"kBlok\"", {"0 definitions 'constexpr int kBlok = N;'"}},
      {knobs, "transpose/tuning.h", "transpose/gone.h", {"no file examples/transpose/gone.h"}},
      {tuning, "inline constexpr int kReadRows", "inline const int kReadRows", {"kReadRows"}},
  };
  Replace("campaign.toml", "kind = \"command\"\ncommand = [\"true\"]", "kind = \"proposer\"");
  Commit("Let the proposer work");
  for (const Broken& broken : mistakes) {
    SCOPED_TRACE(broken.to);
    const std::string whole = ReadFile(repository_ / broken.file).value();
    Replace(broken.file, broken.from, broken.to);
    Commit("Break it");
    ExpectRefused({"campaign", "launch", "campaign.toml"}, 2, broken.wanted);
    Write(broken.file, whole);
    Commit("Mend it");
  }
}

TEST_F(Mistakes, UnknownCasesMissionsAndCampaignsAreNamed) {
  ExpectLaunchWorks();
  const std::string target = "examples/transpose/target.toml";
  ExpectRefused({"compare", "main", "main", "--case", "n7", "--target", target}, 2, {"n7", "n300"});
  ExpectRefused({"check", ".", "--target", "none"}, 2, {"none", "missions/targets"});
  ExpectRefused({"brief", "n7"}, 2, {"n7", "n300"});
  ExpectRefused({"mission", "add", "--case", "n7", "--goal", "x"}, 2, {"n7", "n300"});
  ExpectRefused({"mission", "add", "--case", "n300", "--goal", "x", "--campaign", "none"}, 2,
                {"none"});
  ExpectRefused({"mission", "show", "m99"}, 1, {"m99", "mission list"});
  ExpectRefused({"mission", "approve", "m99"}, 1, {"m99"});
  ExpectRefused({"mission", "approve", "m1"}, 2, {"m1", "no commit"});
  ExpectRefused({"campaign", "pause", "short"}, 1, {"short", "not running"});
  ExpectRefused({"campaign", "stop", "none"}, 1, {"none"});
  ExpectRefused({"campaign", "resume", "none"}, 1, {"none", "no such campaign"});
  ExpectRefused({"campaign", "note", "text", "--campaign", "none"}, 1, {"none"});
  ExpectRefused({"campaign", "launch", "campaign.toml"}, 1, {"short", "campaign resume short"});
  ExpectRefused({"log", "show", "e999"}, 1, {"e999"});
  ExpectRefused({"log", "query", "--kind", "nonsense"}, 2, {"nonsense", "win"});
}

TEST_F(Mistakes, OutsideAGitRepositoryNothingIsMade) {
  repository_ = root_ / "plain";
  fs::create_directories(repository_);
  Write("campaign.toml", "name = \"short\"\ntarget = \"target.toml\"\n");
  Write("target.toml", "");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"campaign", "launch", "campaign.toml"},
        {"init"},
        {"campaign", "status"},
        {"mission", "list"},
        {"brief", "n300"},
        {"check", "."}}) {
    const std::string before = Files();
    ExpectOneError(Crucible(words), 1, {"git repository", "git init"});
    EXPECT_EQ(Files(), before);
  }
}

TEST_F(Mistakes, AMissingCompilerIsToldInItsToolsWords) {
  // A machine whose PATH has everything but a compiler.
  const fs::path programs = root_ / "programs";
  fs::create_directories(programs);
  for (const char* name : {"cmake", "env", "find", "git", "make", "mkdir", "ninja", "python3",
                           "setsid", "sh", "sort", "true"})
    if (const auto found = FindExecutable(name)) fs::create_symlink(*found, programs / name);
  const std::string target = "examples/transpose/target.toml";
  const auto without_compiler = [&] {
    path_ = programs.string();
    const Captured run = Launch();
    path_.clear();
    return run;
  };
  const std::string before = State();
  ExpectOneError(without_compiler(), 1, {"build", "c++", "see ", ".log"});
  EXPECT_EQ(State(), before);
  EXPECT_FALSE(fs::exists(repository_ / ".crucible" / "campaign-short.lock"));

  // The same of a target that is built by CMake: CMake's own words are in the error.
  Replace(target, "[\"c++\", \"-O2\"",
          "[\"cmake\", \"-S\", \"{source}\", \"-B\", \"{build}\"],\n"
          "            [\"c++\", \"-O2\"");
  Write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)\nproject(x CXX)\n");
  Commit("Build with CMake");
  const std::string before_cmake = State();
  ExpectOneError(without_compiler(), 1, {"No CMAKE_CXX_COMPILER could be found"});
  EXPECT_EQ(State(), before_cmake);

  path_ = programs.string();
  const Captured doctor = Crucible({"doctor"});
  path_.clear();
  EXPECT_EQ(doctor.status.code, 1);
  EXPECT_NE(doctor.out.find("compiler"), std::string::npos);
  EXPECT_NE(doctor.out.find("install g++"), std::string::npos) << doctor.out;
  ExpectLaunchWorks();
}

// A repository on a disk of its own, in a mount namespace that ends with the test: no root needed.
class Disk : public FaultsFixture {
 protected:
  void SetUp() override {
    FaultsFixture::SetUp();
    fs::create_directories(root_ / "disk");
    SubprocessSpec spec;
    spec.argv = {"unshare",
                 "--user",
                 "--map-root-user",
                 "--mount",
                 "sh",
                 "-c",
                 "mount -t tmpfs -o size=2g none \"$0\" && cp -a \"$1\" \"$0/repo\" && echo ready "
                 "&& exec sleep 1000",
                 (root_ / "disk").string(),
                 repository_.string()};
    spec.out = Stdio::kPipe;
    spec.err = Stdio::kNull;
    auto started = Subprocess::Start(spec);
    if (!started) GTEST_SKIP() << "no mount namespace here: " << started.error().text;
    keeper_.emplace(std::move(*started));
    const UniqueFd out = keeper_->TakeStdout();
    char word = 0;
    if (::read(out.get(), &word, 1) != 1) GTEST_SKIP() << "no mount namespace without root here";
    enter_ = {"nsenter", "--target", std::to_string(keeper_->pid()),
              "--user",  "--mount",  "--preserve-credentials"};
    repository_ = root_ / "disk" / "repo";
  }
  void TearDown() override {
    if (keeper_) {
      keeper_->Signal(SIGKILL);
      EXPECT_TRUE(keeper_->Wait());
    }
    FaultsFixture::TearDown();
  }
  void Remount(const std::string& options) {
    Output({"mount", "-o", "remount," + options, (root_ / "disk").string()});
  }
  int UsedInodes() { return std::stoi(Output({"sh", "-c", "df --output=iused . | tail -1"})); }
  std::optional<Subprocess> keeper_;
};

TEST_F(Disk, TooFullForACampaignIsSeenBeforeAnythingIsWritten) {
  Remount("size=64m");
  const std::string before = Files();
  ExpectOneError(Launch(), 1, {"MiB are free", "free at least 512 MiB"});
  EXPECT_EQ(Files(), before);
  Remount("size=2g");
  ExpectLaunchWorks();
}

TEST_F(Disk, ThatRunsFullDuringALaunchLeavesNothingOfIt) {
  // Full at another step each time: no file can be made after so many.
  const std::string before = State();
  for (const int more : {0, 1, 2, 4, 6, 9, 13, 18, 25}) {
    SCOPED_TRACE(fmt::format("{} more files", more));
    Remount(fmt::format("nr_inodes={}", UsedInodes() + more));
    const Captured run = Launch();
    Remount("nr_inodes=1000000");
    ExpectOneError(run, 1, {"No space left"});
    EXPECT_EQ(State(), before);
    Git({"fsck", "--no-dangling"});
  }
  ExpectLaunchWorks();
}

TEST_F(Disk, ThatRunsFullAfterTheFirstMeasurementLeavesACampaignToResume) {
  Remount(fmt::format("nr_inodes={}", UsedInodes() + 40));
  const Captured run = Launch();
  Remount("nr_inodes=1000000");
  ExpectOneError(run, 1, {"No space left"});
  ExpectTidy();
  const Captured again = Query({}).empty() ? Launch() : Crucible({"campaign", "resume", "short"});
  EXPECT_TRUE(again.status.ok()) << again.err;
  EXPECT_NE(again.out.find("campaign short finished"), std::string::npos) << again.out;
  EXPECT_EQ(Query({"--author", "orchestrator"}).size(), 1u) << "main was measured once";
  ExpectTidy();
}

TEST_F(Disk, AReadOnlyStateFolderIsToldAsSuch) {
  ASSERT_TRUE(Crucible({"init"}).status.ok());
  const std::string folder = (repository_ / ".crucible").string();
  Output({"mount", "--bind", folder, folder});
  Output({"mount", "-o", "remount,bind,ro", folder});
  const std::string before = Files();
  ExpectOneError(Launch(), 1, {".crucible", "permissions"});
  ExpectOneError(Crucible({"campaign", "note", "x"}), 1, {".crucible"});
  EXPECT_EQ(Files(), before);
  Output({"umount", folder});
  ExpectLaunchWorks();
}

using Stopping = FaultsFixture;

TEST_F(Stopping, WhatAMissionHadKeptIsJudgedAfterAResume) {
  ASSERT_TRUE(WriteFileAtomically(root_ / "agent.sh",
                                  "echo '// kept' >> examples/transpose/transpose.cc\n"
                                  "git -c user.name=a -c user.email=a@b commit -qam kept\n"
                                  "exec sleep 1000\n"));
  Replace("campaign.toml", "[\"true\"]", "[\"sh\", \"" + (root_ / "agent.sh").string() + "\"]");
  Replace("campaign.toml", "wall = \"8s\"", "wall = \"2m\"");
  Commit("An agent that keeps something and goes on");
  const std::string start = Git({"rev-parse", "main"});
  SubprocessSpec spec =
      Spec({std::string(CRUCIBLE_BIN_DIR) + "/crucible", "campaign", "launch", "campaign.toml"});
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = root_ / "campaign.log";
  auto run = Subprocess::Start(spec);
  ASSERT_TRUE(run) << run.error().text;
  const auto kept = [&] {
    const std::string branch =
        Git({"for-each-ref", "--format=%(objectname)", "refs/heads/crucible/m1"});
    return !branch.empty() && branch != start;
  };
  while (!kept() && run->running()) SystemClock().SleepFor(std::chrono::milliseconds(50));
  ASSERT_TRUE(run->running()) << ReadFile(root_ / "campaign.log").value();
  EXPECT_TRUE(Crucible({"campaign", "stop"}).status.ok());
  ASSERT_TRUE(run->Wait(std::chrono::minutes(1))) << ReadFile(root_ / "campaign.log").value();
  const auto mission = [&] {
    return nlohmann::json::parse(Crucible({"mission", "list", "--json"}).out).at(0);
  };
  EXPECT_EQ(mission()["state"], "ended");
  const Captured resumed = Crucible({"campaign", "resume"});
  EXPECT_TRUE(resumed.status.ok()) << resumed.err;
  EXPECT_EQ(mission()["state"], "done");
  const std::string verdict = mission()["merge_outcome"];
  EXPECT_TRUE(verdict == "not_faster" || verdict == "inconclusive" || verdict == "ratchet_failed")
      << verdict << resumed.err;
  EXPECT_EQ(Git({"rev-parse", "main"}), start);
  ExpectTidy();
}

}  // namespace
}  // namespace crucible
