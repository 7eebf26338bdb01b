// kill -9 of the orchestrator at random points and at chosen ones, then resume: nothing lost,
// nothing doubled, and the campaign goes on to land what is faster.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/clock.h"
#include "results_log/store.h"
#include "tests/e2e/faults_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr int kKills = 18;
constexpr std::int64_t kMostWaitMs = 60'000;  // for a moment; far longer than it takes

// When the orchestrator is killed: some milliseconds after its start, or when the log says so.
enum class Moment { kAnyTime, kAfterADecision, kWhileMerging };

class KillTest : public FaultsFixture {
 protected:
  // The last words of a run, which say why it ended.
  static std::string Tail(const std::string& text) {
    return text.size() <= 4000 ? text : "…" + text.substr(text.size() - 4000);
  }
  std::string Said() { return Tail(ReadFile(root_ / "campaign.log").value_or("")); }

  void SetUp() override {
    FaultsFixture::SetUp();
    const std::string campaign = "examples/transpose/campaign.toml";
    Replace(campaign, "wall = \"5m\"", "wall = \"20m\"");
    Replace(campaign, "missions = 2", "missions = 0");
    Replace(campaign, "wall = \"2m\"", "wall = \"20s\"");
    // Short, but long enough that a gain can be shown.
    const std::string target = "examples/transpose/target.toml";
    for (const auto& [key, time] : {std::pair("claim", "8s"), {"ratchet_time", "4s"}})
      Replace(target, fmt::format("{} = \"1s\"", key), fmt::format("{} = \"{}\"", key, time));
    std::string values = "1";  // more than can be tried before the last kill
    for (int i = 2; i <= 90; ++i) values += fmt::format(", {}", i);
    Replace("examples/transpose/knobs.toml", "1, 2, 4, 8, 16, 32, 64, 96", values);
    Commit("Let the campaign go on");
  }

  Subprocess Begin(const std::vector<std::string>& words) {
    SubprocessSpec spec = Spec({std::string(CRUCIBLE_BIN_DIR) + "/crucible", "campaign"});
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / "campaign.log";
    auto run = Subprocess::Start(spec);
    EXPECT_TRUE(run) << run.error().text;
    return std::move(*run);
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

  Result<Store> Log() { return Store::OpenReadOnly(repository_ / ".crucible" / "log.sqlite"); }
  int Landed() {
    auto log = Log();
    const auto entries = log ? log->QueryEntries({}) : Result<std::vector<Entry>>();
    if (!entries) return 0;
    return static_cast<int>(std::count_if(entries->begin(), entries->end(), [](const Entry& one) {
      return one.author == "orchestrator" && one.kind == EntryKind::kWin && one.landed;
    }));
  }
  bool IsThere(Moment moment, std::size_t known) {
    auto log = Log();
    if (!log) return false;
    if (moment == Moment::kAfterADecision) {
      const auto entries = log->QueryEntries({});
      return entries && entries->size() > known;
    }
    const auto missions = log->Missions("");
    return missions && std::any_of(missions->begin(), missions->end(),
                                   [](const MissionRow& row) { return row.state == "merging"; });
  }

  // Whether the moment came, within `most_ms`, while the process ran.
  template <class Seen>
  bool Await(Subprocess* run, std::int64_t most_ms, Seen seen) {
    const std::int64_t until = SystemClock().UnixMs() + most_ms;
    while (run->running() && SystemClock().UnixMs() < until) {
      if (seen()) return true;
      SystemClock().SleepFor(std::chrono::milliseconds(5));
    }
    return false;
  }

  // main moved by verified merges alone: as many as the log says, each a merge.
  void ExpectMainMovedByMergesAlone(const std::string& start) {
    const std::string landed = std::to_string(Landed());
    EXPECT_EQ(Git({"rev-list", "--first-parent", "--count", start + "..main"}), landed);
    EXPECT_EQ(Git({"rev-list", "--first-parent", "--merges", "--count", start + "..main"}), landed);
  }
  void ExpectDeviceFree() {
    const auto run = RunCaptured(Spec({std::string(CRUCIBLE_BIN_DIR) + "/gpu_run", "--device",
                                       "cpu", "--queue-limit", "5s", "--", "true"}),
                                 std::chrono::seconds(20));
    ASSERT_TRUE(run);
    EXPECT_TRUE(run->status.ok()) << run->err;
  }
};

TEST_F(KillTest, AResumeAfterAKillLosesAndDoublesNothing) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  fmt::print("seed {}\n", seed);
  const std::string start = Git({"rev-parse", "main"});
  std::set<std::string> known;
  std::map<Moment, int> killed_at;
  for (int i = 0; i < kKills; ++i) {
    // A launch killed before it had written anything is made again.
    const bool launched = Crucible({"campaign", "status", "transpose"}).status.ok();
    Subprocess run =
        Begin(launched ? std::vector<std::string>{"resume", "transpose"}
                       : std::vector<std::string>{"launch", "examples/transpose/campaign.toml"});
    const Moment moment = static_cast<Moment>(i % 3);
    if (moment == Moment::kAnyTime) {
      // From the first instant to deep in the work: log-uniform between 20 ms and 5 s.
      const double exponent = std::uniform_real_distribution<>(0, 1)(random);
      (void)run.Wait(std::chrono::milliseconds(static_cast<int>(20 * std::pow(250.0, exponent))));
      ++killed_at[moment];
    } else {
      // Merges get rare when the gains do.
      const std::int64_t most_ms =
          moment == Moment::kWhileMerging && killed_at[moment] > 0 ? 5'000 : kMostWaitMs;
      killed_at[moment] += Await(&run, most_ms, [&] { return IsThere(moment, known.size()); });
    }
    ASSERT_TRUE(run.running()) << "run " << i << " ended by itself; it said: " << Said();
    // The orchestrator alone: its children must end by themselves or be ended by the next run.
    ::kill(run.pid(), SIGKILL);
    ASSERT_TRUE(run.Wait());
    if (known.empty() && !HasLog()) continue;
    const std::set<std::string> now = Keys();
    for (const std::string& key : known)
      EXPECT_TRUE(now.contains(key)) << key << " was lost by kill " << i;
    known = now;
  }
  EXPECT_GE(killed_at[Moment::kAfterADecision], 3);
  EXPECT_GE(killed_at[Moment::kWhileMerging], 1);
  // One last run goes on until something landed, and is told to end properly: running missions end
  // and are merged.
  Subprocess last = Begin({"resume", "transpose"});
  EXPECT_TRUE(Await(&last, 2 * kMostWaitMs, [&] {
    return Crucible({"campaign", "status", "--json"}).out.find("\"alive\": true") !=
               std::string::npos &&
           Landed() > 0;
  })) << Said();
  EXPECT_TRUE(Crucible({"campaign", "pause", "transpose"}).status.ok());
  const auto ended = last.Wait(std::chrono::minutes(3));
  ASSERT_TRUE(ended) << Said();
  EXPECT_TRUE(ended->ok()) << Said();
  // No finished experiment lost or doubled.
  const std::set<std::string> all = Keys();
  for (const std::string& key : known) EXPECT_TRUE(all.contains(key)) << key;
  EXPECT_GE(known.size(), 3u) << "too little was there to be lost";
  EXPECT_GE(Landed(), 1);
  ExpectMainMovedByMergesAlone(start);
  // Nothing is left: worktrees, branches, processes, a held lock.
  ExpectTidy();
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_E2E", mark_).empty());
  ExpectDeviceFree();
}

}  // namespace
}  // namespace crucible
