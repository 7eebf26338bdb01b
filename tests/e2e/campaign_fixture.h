// campaign_fixture.h: a throw-away repository with the transpose example and the real programs.
//
// Nothing is faked: git, the compiler, gpu_run, the judge and `crucible` itself run as a person
// would run them; only the place is temporary (repository, state, device locks).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/process_identity.h"
#include "base/subprocess.h"

namespace crucible {

class CampaignFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = MakeTemporaryDirectory("crucible_e2e_").value();
    repository_ = root_ / "repo";
    mark_ = RandomHex(8);
    std::filesystem::create_directories(repository_ / "examples");
    std::filesystem::copy(std::filesystem::path(CRUCIBLE_SOURCE_DIR) / "examples/transpose",
                          repository_ / "examples/transpose",
                          std::filesystem::copy_options::recursive);
    Git({"init", "-q", "-b", "main"});
    Git({"config", "user.name", "test"});
    Git({"config", "user.email", "test@localhost"});
    Commit("Start");
  }

  void TearDown() override {
    EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_E2E", mark_).empty())
        << "processes were left behind";
    KillByEnvironment("CRUCIBLE_E2E", mark_, 5000);
    EXPECT_TRUE(RemoveTree(root_));
  }

  SubprocessSpec Spec(std::vector<std::string> words) {
    SubprocessSpec spec;
    spec.argv = std::move(words);
    spec.directory = repository_;
    if (!enter_.empty()) {
      std::vector<std::string> inside = enter_;
      inside.insert(inside.end(), {"sh", "-c", "cd \"$0\" && exec \"$@\"", repository_.string()});
      inside.insert(inside.end(), spec.argv.begin(), spec.argv.end());
      spec.argv = std::move(inside);
      spec.directory = root_;
    }
    // The system's own programs first: a version manager's wrapper of python3 costs each start of a
    // harness a third of a second.
    const char* const mine = std::getenv("PATH");
    spec.environment = {
        {"CRUCIBLE_LOCK_DIR", (root_ / "locks").string()},
        {"CRUCIBLE_E2E", mark_},
        {"PATH", path_.empty() ? std::string("/usr/bin:/bin:") + (mine ? mine : "") : path_}};
    spec.unset = {"CRUCIBLE_HOME",  "CRUCIBLE_GPU_TOKEN", "ANTHROPIC_API_KEY",
                  "OPENAI_API_KEY", "OPENAI_BASE_URL",    "ANTHROPIC_BASE_URL",
                  "GEMINI_API_KEY", "GOOGLE_API_KEY",     "CRUCIBLE_KEY_FILE"};
    return spec;
  }

  // `crucible WORDS…` in the repository, at most five minutes.
  Captured Crucible(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(CRUCIBLE_BIN_DIR) + "/crucible");
    auto run = RunCaptured(Spec(std::move(words)), std::chrono::minutes(5));
    EXPECT_TRUE(run) << (run ? "" : run.error().text);
    EXPECT_FALSE(run->timed_out) << run->err;
    return run ? *run : Captured{};
  }

  std::string Git(std::vector<std::string> words) {
    words.insert(words.begin(), "git");
    const auto run = RunCaptured(Spec(std::move(words)), std::chrono::minutes(1));
    EXPECT_TRUE(run && run->status.ok()) << (run ? run->err : run.error().text);
    std::string text = run ? run->out : "";
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  void Commit(const std::string& message) {
    Git({"add", "-A"});
    Git({"commit", "-q", "-m", message});
  }

  nlohmann::json Query(std::vector<std::string> words) {
    words.insert(words.begin(), {"log", "query", "--json"});
    const Captured run = Crucible(std::move(words));
    EXPECT_TRUE(run.status.ok()) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  // Changes a line of a file of the repository.
  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = ReadFile(repository_ / file).value();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << file << " has no " << from;
    text.replace(at, from.size(), to);
    ASSERT_TRUE(WriteFileAtomically(repository_ / file, text));
  }

  void Write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(repository_ / file, text));
  }

  // For campaigns that are not about the proof of the harness or about gains that a busy machine
  // could hide: no cheating kernels, and each comparison is over in a second or two.
  void MakeTargetQuick(const std::string& claim = "1s") {
    const std::string target = "examples/transpose/target.toml";
    const std::string text = ReadFile(repository_ / target).value();
    const std::size_t cheats = text.find("# Kernels that cheat");
    const std::size_t limits = text.find("[limits]");
    ASSERT_LT(cheats, limits);
    Write(target, text.substr(0, cheats) +
                      fmt::format("[limits]\njob_limit = \"1m\"\nslot = \"1ms\"\n"
                                  "screen = \"1s\"\nclaim = \"{}\"\nratchet_time = \"1s\"\n",
                                  claim) +
                      text.substr(text.find("\n[knobs]")));
  }

  // A campaign whose agent is a shell script, run once per mission in its worktree.
  void UseScriptAgent(const std::string& script, int missions = 1) {
    ASSERT_TRUE(WriteFileAtomically(root_ / "agent.sh", script));
    ASSERT_TRUE(WriteFileAtomically(
        repository_ / "scripted.toml",
        fmt::format("name = \"scripted\"\ntarget = \"examples/transpose/target.toml\"\n"
                    "agents = 1\n[budget]\nwall = \"4m\"\nmissions = {}\n"
                    "[mission]\nwall = \"8s\"\nexperiments = 1\n"
                    "[agent]\nkind = \"command\"\ncommand = [\"sh\", \"{}\", \"{{mission}}\"]\n",
                    missions, (root_ / "agent.sh").string())));
    Commit("Add a scripted campaign");
  }

  nlohmann::json OnlyMission() {
    const Captured run = Crucible({"mission", "list", "--json"});
    EXPECT_TRUE(run.status.ok()) << run.err;
    const auto missions = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_EQ(missions.size(), 1u) << run.out;
    return missions.empty() ? nlohmann::json::object() : missions[0];
  }

  // Nothing of the campaign's own is left in git, and the repository is sound.
  void ExpectTidy() {
    EXPECT_EQ(Git({"worktree", "list", "--porcelain"}).find(".crucible"), std::string::npos)
        << Git({"worktree", "list"});
    EXPECT_EQ(Git({"branch", "--list", "crucible/*"}), "");
    EXPECT_EQ(Git({"status", "--porcelain"}), "");
    Git({"fsck", "--no-dangling"});
  }

  std::filesystem::path root_, repository_;
  std::string mark_;
  std::string path_;                // $PATH of the programs, when it is not this process's own
  std::vector<std::string> enter_;  // words in front of every command: into another mount namespace
};

}  // namespace crucible
