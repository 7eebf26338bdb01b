// kill -9 of the orchestrator at random points, then resume: nothing lost, nothing doubled.
#include <signal.h>

#include <cmath>
#include <random>
#include <set>

#include "base/clock.h"
#include "tests/e2e/campaign_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr int kKills = 20, kMostKills = 30;
// The start's measurement and an experiment: with less there was nothing to lose.
constexpr std::size_t kWorthLosing = 2;

class KillTest : public CampaignFixture {
 protected:
  // The last words of a run, which say why it ended.
  static std::string Tail(const std::string& text) {
    return text.size() <= 4000 ? text : "…" + text.substr(text.size() - 4000);
  }
  // There is a log to read: not before the first launch has made its tables.
  bool HasLog() {
    const Captured run = Crucible({"log", "query", "--json"});
    const bool none = run.err.find("there is none yet") != std::string::npos ||
                      run.err.find("its making was cut off") != std::string::npos;
    EXPECT_TRUE(run.status.ok() || none) << run.err;
    return run.status.ok();
  }
  std::set<std::string> Keys() {
    std::set<std::string> keys;
    for (const json& entry : Query({"--limit", "0"})) {
      const std::string key = entry["key"];
      EXPECT_TRUE(keys.insert(key).second) << key << " is there twice";
    }
    return keys;
  }
};

TEST_F(KillTest, ResumeAfterKillAtTwentyRandomPoints) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  fmt::print("seed {}\n", seed);
  Replace("examples/transpose/campaign.toml", "wall = \"5m\"", "wall = \"20m\"");
  Replace("examples/transpose/campaign.toml", "missions = 2", "missions = 0");
  Replace("examples/transpose/campaign.toml", "wall = \"2m\"", "wall = \"20s\"");
  Commit("Let the campaign go on");
  const std::string crucible = std::string(CRUCIBLE_BIN_DIR) + "/crucible";
  const std::string start = Git({"rev-parse", "main"});
  std::set<std::string> known;
  for (int i = 0; i < kKills || (i < kMostKills && known.size() < kWorthLosing); ++i) {
    // A launch killed before it had written anything is made again.
    const bool launched = Crucible({"campaign", "status", "transpose"}).status.ok();
    SubprocessSpec spec =
        launched ? Spec({crucible, "campaign", "resume", "transpose"})
                 : Spec({crucible, "campaign", "launch", "examples/transpose/campaign.toml"});
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / "campaign.log";
    auto run = Subprocess::Start(spec);
    ASSERT_TRUE(run) << run.error().text;
    // From the first instant to deep in the work: log-uniform between 20 ms and 12 s; on a machine
    // that is too slow to have come to an experiment so, late ones.
    const double exponent = std::uniform_real_distribution<>(i < kKills ? 0 : 0.9, 1)(random);
    const auto delay = std::chrono::milliseconds(static_cast<int>(20 * std::pow(600.0, exponent)));
    const auto ended = run->Wait(delay);
    ASSERT_FALSE(ended) << fmt::format(
        "run {} ({}) was to be killed after {} ms and ended by itself with {}; it said: {}", i,
        launched ? "resume" : "launch", delay.count(), ended->Describe(),
        Tail(ReadFile(root_ / "campaign.log").value()));
    // The orchestrator alone: its children must end by themselves or be ended by the next run.
    ::kill(run->pid(), SIGKILL);
    ASSERT_TRUE(run->Wait());
    if (known.empty() && !HasLog()) continue;
    const std::set<std::string> now = Keys();
    for (const std::string& key : known)
      EXPECT_TRUE(now.contains(key)) << key << " was lost by kill " << i;
    known = now;
  }
  EXPECT_GE(known.size(), kWorthLosing) << "nothing was at stake when the kills came";
  // One last run that is told to end properly: running missions end and are merged.
  SubprocessSpec spec = Spec({crucible, "campaign", "resume", "transpose"});
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = root_ / "campaign.log";
  auto last = Subprocess::Start(spec);
  ASSERT_TRUE(last);
  for (int i = 0;
       i < 200 &&
       Crucible({"campaign", "status", "--json"}).out.find("\"alive\": true") == std::string::npos;
       ++i)
    SystemClock().SleepFor(std::chrono::milliseconds(50));
  EXPECT_TRUE(Crucible({"campaign", "pause", "transpose"}).status.ok());
  const auto ended = last->Wait(std::chrono::minutes(3));
  ASSERT_TRUE(ended) << ReadFile(root_ / "campaign.log").value();
  EXPECT_TRUE(ended->ok()) << ReadFile(root_ / "campaign.log").value();
  // No finished experiment lost or doubled.
  const std::set<std::string> all = Keys();
  for (const std::string& key : known) EXPECT_TRUE(all.contains(key)) << key;
  // main moved by verified merges alone: as many as the log says, each a merge.
  int landed = 0;
  for (const json& entry : Query({"--kind", "win"}))
    landed += entry["author"] == "orchestrator" && entry["landed"];
  EXPECT_EQ(Git({"rev-list", "--first-parent", "--count", start + "..main"}),
            std::to_string(landed));
  EXPECT_EQ(Git({"rev-list", "--first-parent", "--merges", "--count", start + "..main"}),
            std::to_string(landed));
  // Nothing is left: worktrees, branches, processes, a held lock.
  ExpectTidy();
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_E2E", mark_).empty());
  const auto free_device = RunCaptured(Spec({std::string(CRUCIBLE_BIN_DIR) + "/gpu_run", "--device",
                                             "cpu", "--queue-limit", "5s", "--", "true"}),
                                       std::chrono::seconds(20));
  ASSERT_TRUE(free_device);
  EXPECT_TRUE(free_device->status.ok()) << free_device->err;
}

}  // namespace
}  // namespace crucible
