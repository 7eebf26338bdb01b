// slot_times.h: what a slot's calls took as the worker says, as the harness saw them, and what that
// leaves to be believed.
//
// A worker takes its own times, in the process of the code under test. So they are held against
// what that code has no say in: the harness's clock, waits for a CPU included (a library's own
// threads can cause those), and the kernel's count of the worker's CPU time. Each is asked of the
// calls said to be the faster half, because those decide the slot's value. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crucible::eigh {

struct SlotTimes {
  bool on_device = false;                    // a GPU's: its events tell the time
  std::vector<std::int64_t> call_ns;         // as the worker took them
  std::vector<std::int64_t> undisturbed_ns;  // of those, the ones that had their CPU throughout
  std::vector<std::int64_t> finished_ns;     // from "go" to "finished", by the harness's clock
  std::vector<std::int64_t> done_ns;         // … to the answer, for which the outputs were copied
  std::vector<std::int64_t> copy_ns;         // of the same outputs, by the harness
  std::vector<std::int64_t>
      early_cpu_ns;                       // the worker's CPU time before "go", with the input there
  std::vector<std::int64_t> handover_ns;  // of nothing, while the worker was stopped
};

// What a call shows beyond the time it gives, and how much of that is believed.
struct Excess {
  double us = 0, limit_us = 0;
  bool TooMuch() const { return us > limit_us; }
};
Excess MissingTime(const SlotTimes& times);  // until "finished"
Excess LateAnswer(const SlotTimes& times);   // until the answer
Excess EarlyWork(const SlotTimes& times);    // CPU time before "go"

// What speaks against the times of a slot, or "". `by_cpu_time`: the worker's says something.
std::string Doubt(const SlotTimes& times, bool by_cpu_time);

// The slot's value: the median of the calls that did not wait for a CPU, where they are at least
// three and half of all, so that a library cannot choose them by making its slow calls wait.
double SlotMedianNs(const SlotTimes& times);

double Median(std::vector<std::int64_t> values);  // 0 of none

}  // namespace crucible::eigh
