// The queue under fire: many callers, random SIGKILLs of holders, waiters and jobs.
//
// Every job writes its begin and end, with a monotonic time, to one file by single appends, and
// takes a lock of the test's own that must be free: an overlap cannot hide. Short by default; the
// full form (1,000 jobs, 64 callers) by CRUCIBLE_STRESS_FULL=1. CRUCIBLE_STRESS_SEED repeats a run.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "gpu_runner/queue.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

class Stress : public RunnerFixture {
 protected:
  // What one job does: fails if another one is inside, works a little, sometimes leaves an orphan.
  std::string Script(bool orphan) const {
    const std::string events = Path("events");
    return "exec 9>>" + Path("inside") +
           "; flock -n 9; [ $? != 1 ] || { echo overlap $CRUCIBLE_JOB_ID >>" + events +
           "; exit 99; }; " + (orphan ? "setsid sleep 300 & " : "") +
           "echo begin $CRUCIBLE_JOB_ID >>" + events +
           // Its turn, from the record of the device that it holds: class and number of its ticket.
           "; sed -n 's/.*\"priority\":\"\\([a-z]*\\)\".*\"sequence\":\\([0-9]*\\).*/\\1 \\2/p' " +
           Path("locks/cpu/holder") + " >>" + Path("turns") +
           "; sleep 0.01; echo end $CRUCIBLE_JOB_ID >>" + events;
  }
};

// Jobs that began after one of their class with a later ticket.
int OutOfTurn(const std::string& turns, int* seen) {
  std::map<std::string, std::uint64_t> latest;
  std::istringstream lines(turns);
  int wrong = 0;
  std::uint64_t number = 0;
  for (std::string priority; lines >> priority >> number; ++*seen) {
    wrong += number < latest[priority];
    latest[priority] = std::max(latest[priority], number);
  }
  return wrong;
}

int Count(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_F(Stress, NoOverlapNoneLostFirstComeFirstServedNeverStuckNothingLeft) {
  const bool full = std::getenv("CRUCIBLE_STRESS_FULL") != nullptr;
  const int jobs = full ? 1000 : 150;
  const int callers = full ? 64 : 32;
  const char* chosen = std::getenv("CRUCIBLE_STRESS_SEED");
  const unsigned seed = chosen != nullptr ? std::stoul(chosen) : std::random_device{}();
  std::printf("seed %u: %d jobs from %d callers\n", seed, jobs, callers);
  RecordProperty("seed", static_cast<int>(seed));

  std::mutex mutex;  // guards `running`: only live, unreaped children are signalled
  std::map<pid_t, int> running;
  std::atomic<int> next{0}, finished{0}, killed_runners{0}, killed_jobs{0}, odd_exits{0};
  const auto caller = [&](unsigned own_seed) {
    std::mt19937 random(own_seed);
    for (int number = next++; number < jobs; number = next++) {
      static const char* kClasses[] = {"high", "normal", "normal", "low"};
      SubprocessSpec spec =
          Spec({"--device", "cpu", "--quiet", "--limit", "60s", "--priority",
                kClasses[random() % 4], "--", "sh", "-c", Script(random() % 8 == 0)});
      spec.out = spec.err = Stdio::kNull;
      auto child = Subprocess::Start(spec);
      ASSERT_TRUE(child) << child.error().text;
      {
        const std::lock_guard lock(mutex);
        running[child->pid()] = number;
      }
      const auto ended = [&] {
        const std::lock_guard lock(mutex);
        if (child->running()) return false;
        running.erase(child->pid());
        return true;
      };
      while (!Eventually(ended)) continue;
      const int code = child->Wait()->ShellCode();
      if (code != 0 && code != 137) ++odd_exits;
      ++finished;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) threads.emplace_back(caller, seed + 1 + i);

  std::mt19937 random(seed);
  while (finished < jobs) {
    SystemClock().SleepFor(std::chrono::milliseconds(40 + random() % 120));
    if (random() % 3 == 0) {  // a job's own process
      const auto holder = Folder().ReadHolder();
      if (!holder || holder->released) continue;
      for (const pid_t pid : ProcessesWithEnvironment("CRUCIBLE_JOB_NONCE", holder->nonce)) {
        if (::kill(pid, SIGKILL) == 0) ++killed_jobs;
        break;
      }
      continue;
    }
    const std::lock_guard lock(mutex);
    // A third at most, so that on a slow machine, too, most of the jobs begin.
    if (running.empty() || killed_runners >= jobs / 3) continue;
    pid_t victim = std::next(running.begin(), random() % running.size())->first;
    if (random() % 2 == 0)  // rather the holder
      if (const auto holder = Folder().ReadHolder(); holder && running.contains(holder->runner.pid))
        victim = holder->runner.pid;
    if (::kill(victim, SIGKILL) == 0) ++killed_runners;
  }
  for (std::thread& thread : threads) thread.join();

  // Never stuck: one more runs at once. It cleans up after the last dead holder as well.
  EXPECT_EQ(Run({"--device", "cpu", "--queue-limit", "20s", "--", "true"}).status.ShellCode(), 0);
  const std::string events = ReadFile(folder_ / "events").value_or("");
  EXPECT_EQ(Count(events, "overlap"), 0);
  EXPECT_EQ(odd_exits, 0);
  // None lost: every job that began has a row, and every row an outcome.
  std::set<std::string> recorded;
  std::map<std::string, int> outcomes;
  const std::vector<JobRow> rows = Rows();
  for (const JobRow& row : rows) {
    recorded.insert(row.id);
    ++outcomes[row.outcome];
  }
  EXPECT_EQ(outcomes[""], 0) << "rows without an outcome";
  std::istringstream lines(events);
  int begun = 0;
  for (std::string word, id; lines >> word >> id;) {
    if (word != "begin") continue;
    ++begun;
    EXPECT_TRUE(recorded.contains(id)) << "job " << id << " began and has no row";
  }
  // First come, first served within a class, whoever was killed meanwhile.
  int seen = 0;
  EXPECT_EQ(OutOfTurn(ReadFile(folder_ / "turns").value_or(""), &seen), 0);
  EXPECT_GT(seen, jobs / 2);
  // Nothing left: no ticket, no process.
  EXPECT_TRUE(WaitingTickets(Folder()).empty());
  EXPECT_TRUE(
      ProcessesWithEnvironment("CRUCIBLE_LOCK_DIR", environment_["CRUCIBLE_LOCK_DIR"]).empty());
  EXPECT_GT(killed_runners, 0);
  EXPECT_GT(begun, jobs / 2);
  std::printf(
      "%d jobs began, %d in turn; SIGKILLed: %d runners, %d job processes; ok %d, lost %d, "
      "killed %d\n",
      begun, seen, killed_runners.load(), killed_jobs.load(), outcomes["ok"], outcomes["lost"],
      outcomes["killed"]);
}

// Without kills, so that the order is exactly known: callers queue one by one behind a holder.
TEST_F(Stress, ServesEachClassInTheOrderOfArrival) {
  Subprocess holder =
      Start({"--device", "cpu", "--", "sh", "-c",
             "touch " + Path("up") + "; while [ ! -e " + Path("go") + " ]; do sleep 0.02; done"});
  ASSERT_TRUE(Appears("up"));
  std::vector<Subprocess> callers;
  std::vector<std::string> expected[3];
  static const char* kClasses[] = {"high", "normal", "low"};
  for (int i = 0; i < 24; ++i) {
    const int priority = (i * 7) % 3;
    const std::string name = std::string(kClasses[priority]) + std::to_string(i);
    callers.push_back(Start({"--device", "cpu", "--priority", kClasses[priority], "--", "sh", "-c",
                             "echo " + name + " >>" + Path("order")}));
    expected[priority].push_back(name);
    ASSERT_TRUE(Eventually([&] { return WaitingTickets(Folder()).size() == std::size_t(i + 1); }));
  }
  ASSERT_TRUE(WriteFileAtomically(Path("go"), ""));
  for (Subprocess& child : callers) EXPECT_EQ(child.Wait()->ShellCode(), 0);
  std::string all;
  for (const auto& names : expected)
    for (const std::string& name : names) all += name + "\n";
  EXPECT_EQ(ReadFile(folder_ / "order").value_or(""), all);
}

}  // namespace
}  // namespace crucible
