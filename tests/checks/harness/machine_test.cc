#include "checks/harness/machine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "checks/harness/cold_cache.h"

namespace crucible {
namespace {

TEST(Machine, CountsTheThreadsOfThisProcess) {
  const int before = ThreadCount();
  ASSERT_GE(before, 1);
  std::atomic<bool> stop{false};
  std::thread other([&] { stop.wait(false); });
  EXPECT_EQ(ThreadCount(), before + 1);
  stop = true;
  stop.notify_all();
  other.join();
}

TEST(Machine, AThreadThatWorksOnIsCountedAndOneThatWasJoinedIsNot) {
  const int before = ThreadCount();
  for (int i = 0; i < 50; ++i) {
    std::thread([] {}).join();
    ASSERT_EQ(SettledThreadCount(0, before), before) << "after " << i << " threads";
  }
  std::atomic<bool> stop{false};
  std::thread other([&] { stop.wait(false); });
  EXPECT_EQ(SettledThreadCount(0, before), before + 1);
  stop = true;
  stop.notify_all();
  other.join();
}

// What tells a wait for a device that is awake from a thread that had no processor.
TEST(Machine, CpuTimeOfAThreadIsThatOfItsWork) {
  const std::int64_t start = ThreadCpuNs();
  volatile unsigned work = 1;
  while (ThreadCpuNs() - start < 5'000'000) work = work * 3;
  const std::int64_t worked = ThreadCpuNs();
  std::thread([] {
    const std::int64_t own = ThreadCpuNs();
    while (ThreadCpuNs() - own < 5'000'000) continue;
  }).join();
  EXPECT_LT(ThreadCpuNs() - worked, 5'000'000);
}

TEST(Machine, ConditionsNameTheMachine) {
  const auto conditions = MachineConditions();
  for (const char* field : {"cpu", "kernel", "governor", "clock"})
    EXPECT_FALSE(conditions.at(field).empty()) << field;
  EXPECT_NE(conditions.at("kernel").find("Linux"), std::string::npos);
}

TEST(Machine, PinningKeepsTheFirstAllowedCpus) {
  const std::vector<int> before = AllowedCpus();
  std::vector<int> pinned;
  std::thread([&] {  // in a thread of its own: the pin stays with it
    ASSERT_TRUE(PinToFirstCpus(1).has_value());
    pinned = AllowedCpus();
  })
      .join();
  EXPECT_EQ(pinned, std::vector<int>{before.front()});
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(Machine, TheTwoClocksAgree) {
  (void)CounterNs();  // it counts from its first call, which may give 0 itself
  if (CounterNs() == 0) GTEST_SKIP() << "no counter on this processor";
  const std::int64_t clock = MonotonicNs(), counter = CounterNs();
  while (MonotonicNs() - clock < 20'000'000) {
  }
  const double inner = static_cast<double>(CounterNs() - counter);
  const double outer = static_cast<double>(MonotonicNs() - clock);
  EXPECT_LE(inner, 1.01 * outer);  // a preempted thread makes the inner one shorter, never longer
}

TEST(ColdCache, FlushKeepsContents) {
  std::vector<std::byte> bytes(1000, std::byte{7});
  ColdCache::Flush(bytes);
  ColdCache(1 << 20).Sweep();
  EXPECT_EQ(bytes, std::vector<std::byte>(1000, std::byte{7}));
}

}  // namespace
}  // namespace crucible
