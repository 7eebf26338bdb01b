// What is believed of a slot's times, and what is not.
#include "checks/eigh/slot_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace crucible::eigh {
namespace {

using ::testing::HasSubstr;

// Twenty honest calls of a millisecond, of 10 us to hand over.
SlotTimes Honest() {
  SlotTimes times;
  for (int i = 0; i < 20; ++i) {
    times.call_ns.push_back(1'000'000 + 1000 * i);
    times.finished_ns.push_back(times.call_ns.back() + 15'000);
    times.done_ns.push_back(times.finished_ns.back() + 5'000);
    times.copy_ns.push_back(4'000);
    times.early_cpu_ns.push_back(30'000);
    times.handover_ns.push_back(10'000);
  }
  return times;
}

TEST(SlotTimesTest, HonestTimesAreBelieved) { EXPECT_EQ(Doubt(Honest(), true), ""); }

// A slice of another process's in half of the calls, on either side of the hand-over.
TEST(SlotTimesTest, ABusyMachineIsNoLie) {
  SlotTimes times = Honest();
  for (std::size_t i = 0; i < 20; i += 2) {
    times.finished_ns[i] += 4'000'000, times.done_ns[i] += 4'000'000;
    times.early_cpu_ns[i] += 4'000'000;
  }
  EXPECT_EQ(Doubt(times, true), "");
}

TEST(SlotTimesTest, TimesShorterThanWhatWasSeenAreDoubted) {
  SlotTimes times = Honest();
  for (std::int64_t& call : times.call_ns) call -= 300'000;
  EXPECT_THAT(Doubt(times, true), HasSubstr("shorter than what was seen"));
}

// Only the half that decides the slot's value.
TEST(SlotTimesTest, LiesInTheFasterHalfAreSeen) {
  SlotTimes times = Honest();
  for (std::size_t i = 0; i < 10; ++i) times.call_ns[i] -= 300'000;
  EXPECT_THAT(Doubt(times, true), HasSubstr("shorter than what was seen"));
}

TEST(SlotTimesTest, AnAnswerLongAfterTheEndIsDoubted) {
  SlotTimes times = Honest();
  for (std::int64_t& done : times.done_ns) done += 400'000;
  EXPECT_THAT(Doubt(times, true), HasSubstr("its answers come later"));
  times.on_device = true;  // the outputs come over a bus
  EXPECT_EQ(Doubt(times, true), "");
}

TEST(SlotTimesTest, CpuTimeBeforeGoIsDoubtedWhereItSaysSomething) {
  SlotTimes times = Honest();
  for (std::int64_t& early : times.early_cpu_ns) early += 150'000;
  EXPECT_THAT(Doubt(times, true), HasSubstr("before it says that it is ready"));
  EXPECT_EQ(Doubt(times, false), "");
}

TEST(SlotTimesTest, TheValueIsThatOfUndisturbedCallsWhereTheyAreHalf) {
  SlotTimes times;
  times.call_ns = {10, 11, 12, 50, 51, 52, 53, 54};
  times.undisturbed_ns = {10, 11, 12};
  EXPECT_EQ(SlotMedianNs(times), 50.5) << "three fast calls of eight must not decide";
  times.undisturbed_ns = {10, 11, 12, 50};
  EXPECT_EQ(SlotMedianNs(times), 11.5);
  times.call_ns = {10, 50};
  times.undisturbed_ns = {10};
  EXPECT_EQ(SlotMedianNs(times), 30);
}

}  // namespace
}  // namespace crucible::eigh
