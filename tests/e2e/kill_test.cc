// kill -9 of the orchestrator at 20 random points and in the midst of merges, then resume: nothing
// lost, nothing doubled, and main has what passed the gate alone.
#include <signal.h>

#include <cmath>
#include <random>

#include "tests/e2e/kill_fixture.h"

namespace crucible {
namespace {

constexpr int kKills = 20;
// … and more of them, each at a random point of a merge, until that many fell there.
constexpr int kKillsInAMerge = 2, kMostKills = 26;
constexpr std::int64_t kMostWaitMs = 60'000;  // for a merge to begin; far longer than it takes

class KillTest : public KillFixture {};

TEST_F(KillTest, ResumeAfterKillAtTwentyRandomPoints) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  fmt::print("seed {}\n", seed);
  std::map<std::string, std::string> known;  // key -> what the experiment was
  int in_a_merge = 0, kills = 0;
  for (; kills < kKills || (kills < kMostKills && in_a_merge < kKillsInAMerge); ++kills) {
    Subprocess run = Go();
    // From the first instant to deep in the work: log-uniform between 20 ms and 10 s.
    double wait_ms = 20 * std::pow(500.0, std::uniform_real_distribution<>(0, 1)(random));
    if (kills >= kKills) {
      EXPECT_TRUE(Await(&run, kMostWaitMs, [&] { return AMergeIsUnderWay(); })) << Said();
      wait_ms = std::uniform_real_distribution<>(0, 1500)(random);
    }
    const auto ended = run.Wait(std::chrono::milliseconds(static_cast<int>(wait_ms)));
    ASSERT_FALSE(ended) << fmt::format("run {} was to be killed and ended by itself with {}: {}",
                                       kills, ended->Describe(), Said());
    // The orchestrator alone: its children must end by themselves or be ended by the next run.
    ::kill(run.pid(), SIGKILL);
    ASSERT_TRUE(run.Wait());
    in_a_merge += AMergeIsUnderWay();
    std::map<std::string, std::string> now;
    for (const Entry& entry : Entries())
      EXPECT_TRUE(now.emplace(entry.key, entry.change + entry.summary).second) << entry.key;
    for (const auto& [key, what] : known)
      EXPECT_EQ(now[key], what) << key << " was lost or changed by kill " << kills;
    known = now;
  }
  EXPECT_GE(in_a_merge, kKillsInAMerge) << "no kill hit what moves main";
  // One last run goes on until something has landed, and is told to end properly: running missions
  // end and are merged.
  Subprocess last = Go();
  EXPECT_TRUE(Await(&last, 2 * kMostWaitMs, [&] {
    return !Landings().empty() &&
           Crucible({"campaign", "status", "--json"}).out.find("\"alive\": true") !=
               std::string::npos;
  })) << Said();
  EXPECT_TRUE(Crucible({"campaign", "pause", "passes"}).status.ok());
  const auto ended = last.Wait(std::chrono::minutes(3));
  ASSERT_TRUE(ended) << Said();
  EXPECT_TRUE(ended->ok()) << Said();
  std::map<std::string, std::string> all;
  for (const Entry& entry : Entries()) all[entry.key] = entry.change + entry.summary;
  for (const auto& [key, what] : known) EXPECT_EQ(all[key], what) << key;
  fmt::print("{} kills, {} in a merge; {} entries, {} merges landed\n", kills, in_a_merge,
             all.size(), Landings().size());
  EXPECT_GE(Landings().size(), 1u) << Said();
  ExpectEachFinishedExperimentOnce();
  ExpectMainMovedByVerifiedMergesAlone();
  // Nothing is left: worktrees, branches, processes, a held lock.
  ExpectTidy();
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_E2E", mark_).empty());
  ExpectDeviceFree();
}

}  // namespace
}  // namespace crucible
