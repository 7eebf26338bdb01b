// scripted_fixture.h: a campaign whose agents are language models, played by scripted_server.
//
// On top of CampaignFixture: a transpose that does more than it must, so that every gain and loss
// is large and certain on a busy machine; the server as its own process on loopback; a made-up
// key that its requests must carry and nothing on disk may hold. Every reply comes over HTTP in
// one of the two wire formats; git, the compiler, the judge and crucible itself are the real ones.
#pragma once

#include <signal.h>

#include <optional>
#include <set>

#include "base/clock.h"
#include "tests/e2e/scripted_turns.h"
#include "tests/e2e/wasteful_fixture.h"

namespace crucible {

inline constexpr char kWastefulTuning[] =
    R"(// tuning.h: how often the kernel goes over the matrix.
#pragma once

inline constexpr int kPasses = 3;       // n up to 180

// Larger ones have a number of their own.

inline constexpr int kLargePasses = 3;  // n above 180
)";

class ScriptedFixture : public CampaignFixture {
 protected:
  void SetUp() override {
    CampaignFixture::SetUp();
    key_ = "sk-made-up-" + RandomHex(16);
    ASSERT_TRUE(WriteFileAtomically(repository_ / kKernelFile, kWastefulKernel));
    ASSERT_TRUE(WriteFileAtomically(repository_ / kTuningFile, kWastefulTuning));
    std::string target = ReadFile(repository_ / "examples/transpose/target.toml").value();
    // Three small cases; no knobs, which were another kernel's, and no cheating kernels, whose
    // proof has tests of its own.
    Cut(&target, "[[case]]", "[[check]]");
    Cut(&target, "# Kernels that cheat", "");
    // Gains and losses here are of a third and more, and end a comparison early: the times are for
    // a machine that is busy with other things, and so are the ratchet's limits.
    target +=
        "[limits]\njob_limit = \"2m\"\nslot = \"3ms\"\nscreen = \"20s\"\nclaim = \"40s\"\n"
        "ratchet_time = \"20s\"\nratchet = 0.25\nratchet_short = 0.25\n";
    for (const int n : {128, 160, 192})
      target += fmt::format("\n[[case]]\nname = \"n{0}\"\nparams = {{ n = {0} }}\n", n);
    ASSERT_TRUE(WriteFileAtomically(repository_ / "examples/transpose/target.toml", target));
    Replace("examples/transpose/harness.py", "16 << 20", "1 << 20");
    Commit("Go over the matrix in passes");
  }

  void TearDown() override {
    if (server_) {
      server_->Signal(SIGTERM);
      EXPECT_TRUE(server_->Wait(std::chrono::seconds(20))) << "the scripted server does not end";
      server_.reset();
    }
    CampaignFixture::TearDown();
  }

  static void Cut(std::string* text, const std::string& from, const std::string& to) {
    const std::size_t at = text->find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const std::size_t end = to.empty() ? text->size() : text->find(to, at);
    text->erase(at, end - at);
  }

  // Models of both formats, told apart by the flavour of the missions they take; `more` is the
  // rest of the file.
  void AddCampaign(int missions, int agents, bool unsandboxed, const std::string& mission_wall,
                   const std::string& more = "") {
    ASSERT_TRUE(WriteFileAtomically(
        repository_ / "models.toml",
        fmt::format("name = \"models\"\ntarget = \"examples/transpose/target.toml\"\n"
                    "agents = {}\n[budget]\nwall = \"10m\"\nmissions = {}\nusd = 5.0\n"
                    "[mission]\nwall = \"{}\"\nexperiments = 4\nturns = 30\n"
                    "[agent]\nkind = \"llm\"\nunsandboxed = {}\nseed = 3\n"
                    "[[model]]\nname = \"scripted-messages\"\nprovider = \"anthropic\"\n"
                    "flavours = [\"kernel\"]\nusd = {{ input = 3.0, output = 15.0 }}\n"
                    "[[model]]\nname = \"scripted-chat\"\nprovider = \"openai\"\n"
                    "flavours = [\"explorer\"]\nusd = {{ input = 1.0, output = 2.0 }}\n",
                    agents, missions, mission_wall, unsandboxed) +
            more));
    Commit("Add a campaign of scripted models");
  }

  void StartServer(json conversations) {
    const json scenario = {{"require_key", key_},
                           {"models", {"scripted-messages", "scripted-chat", "scripted-planner"}},
                           {"piece_bytes", 97},
                           {"conversations", std::move(conversations)}};
    const std::filesystem::path file = root_ / "scenario.json", port = root_ / "port";
    ASSERT_TRUE(WriteFileAtomically(file, scenario.dump(1)));
    SubprocessSpec spec = Spec({std::string(CRUCIBLE_BIN_DIR) + "/scripted_server", file.string(),
                                "--port-file", port.string()});
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / "server.log";
    auto started = Subprocess::Start(spec);
    ASSERT_TRUE(started) << started.error().text;
    server_.emplace(std::move(*started));
    ASSERT_TRUE(Until([&] { return ReadFile(port).has_value(); }, 20'000))
        << ReadFile(spec.log_path).value_or("");
    const std::string text = ReadFile(port).value();
    address_ = "http://127.0.0.1:" + text.substr(0, text.find('\n'));
  }

  // The campaign's own process has the key and the server's address; nothing else of the test does.
  SubprocessSpec CampaignSpec(std::vector<std::string> words) {
    words.insert(words.begin(), {std::string(CRUCIBLE_BIN_DIR) + "/crucible", "campaign"});
    SubprocessSpec spec = Spec(std::move(words));
    for (const char* kind : {"ANTHROPIC", "OPENAI"}) {
      spec.environment[fmt::format("{}_API_KEY", kind)] = key_;
      spec.environment[fmt::format("{}_BASE_URL", kind)] = address_;
      std::erase(spec.unset, fmt::format("{}_API_KEY", kind));
      std::erase(spec.unset, fmt::format("{}_BASE_URL", kind));
    }
    spec.unset.push_back("CRUCIBLE_KEY_FILE");
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / "campaign.log";
    return spec;
  }

  Subprocess StartCampaign(std::vector<std::string> words) {
    auto started = Subprocess::Start(CampaignSpec(std::move(words)));
    CRUCIBLE_CHECK(started.has_value(), "crucible starts");
    return std::move(*started);
  }

  std::string CampaignLog() const { return ReadFile(root_ / "campaign.log").value_or(""); }

  // Looks every 50 ms until it is so; false when it never was.
  template <class Condition>
  static bool Until(Condition condition, std::int64_t limit_ms) {
    const std::int64_t end = SystemClock().UnixMs() + limit_ms;
    while (SystemClock().UnixMs() < end) {
      if (condition()) return true;
      SystemClock().SleepFor(std::chrono::milliseconds(50));
    }
    return condition();
  }

  json Missions() {
    const Captured run = Crucible({"mission", "list", "--json"});
    const json missions = json::parse(run.out, nullptr, false);
    return missions.is_array() ? missions : json::array();
  }

  json MissionOf(const std::string& goal) {
    for (const json& mission : Missions())
      if (mission["goal"].get<std::string>().find(goal) != std::string::npos) return mission;
    ADD_FAILURE() << "no mission has the goal " << goal << "\n" << CampaignLog();
    return json::object();
  }

  std::string Home(const std::string& path) const {
    return (repository_ / ".crucible" / path).string();
  }

  std::string Transcript(const json& mission) {
    return ReadFile(Home("missions/" + mission.value("id", "?") + "/transcript.jsonl"))
        .value_or("");
  }

  // Every regular file of the test's place: state, log, transcripts, reports, git's objects.
  void ExpectNoFileHasTheKey() {
    int looked_at = 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(root_)) {
      if (!item.is_regular_file() || item.path() == root_ / "scenario.json") continue;
      const auto text = ReadFile(item.path());
      if (!text) continue;
      ++looked_at;
      EXPECT_EQ(text->find(key_), std::string::npos) << item.path() << " holds the key";
    }
    EXPECT_GT(looked_at, 50);
    EXPECT_EQ(Git({"log", "--all", "-p", "--format=%B"}).find(key_), std::string::npos);
  }

  std::string key_, address_;
  std::optional<Subprocess> server_;
};

}  // namespace crucible
