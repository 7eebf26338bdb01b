// machine.h: what a CPU measurement was taken on, and what disturbed it.
//
// Reads /proc and /sys; what a machine does not say is left out or "unknown", never guessed.
#pragma once

#include <sched.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

// CPUs this process may use, ascending.
std::vector<int> AllowedCpus();
// Holds the process (and threads it starts from now on) on the first `count` of them.
Result<> PinToFirstCpus(int count);

// cpu, kernel, governor, clock: words for the conditions of a log entry.
std::map<std::string, std::string> MachineConditions();
// "pinned" when every CPU's frequency range is one value, else "unlocked".
std::string CpuClockPolicy();
// Bytes of the largest cache; 0 where the machine does not say.
std::int64_t LastLevelCacheBytes();

// Live threads of a process, this one by default; 0 when it is gone.
int ThreadCount(int pid = 0);
// … once those that are ending have gone: a joined one stays visible for a moment. Waits for that
// while there are more than `limit`, a tenth of a second at most.
int SettledThreadCount(int pid, int limit);

// Counters whose growth over an interval says that something else had the machine.
struct Disturbance {
  std::int64_t steal_ticks = 0;        // hypervisor ran somebody else; 1/100 s, all CPUs
  std::int64_t preemptions = 0;        // involuntary context switches of this process
  std::int64_t thermal_throttles = 0;  // core throttle events, where the kernel counts them
};
Disturbance ReadDisturbance();
Disturbance operator-(const Disturbance& after, const Disturbance& before);

// True while a thread of the process is running or could run; a thread that ends counts as gone.
bool AnyThreadRuns(int pid);
// CPU time of all threads that a process had so far, by the kernel's count; 0 when it is gone.
std::int64_t ProcessCpuNs(int pid);

// What the kernel counts for a process so far, exact while none of its threads runs.
struct ProcessTimes {
  std::int64_t cpu_ns = 0;     // of all its threads
  std::int64_t ran_ns = 0;     // of the first thread
  std::int64_t waited_ns = 0;  // … and how long that waited for a CPU when it could have run
  // Of waited_ns, what other processes certainly caused: its own threads had no CPU for so long.
  std::int64_t HinderedNs() const;
};
ProcessTimes ReadProcessTimes(int pid);
ProcessTimes operator-(const ProcessTimes& after, const ProcessTimes& before);

std::int64_t MonotonicNs();
std::int64_t ThreadCpuNs();  // CPU time of the calling thread
// For a loop that waits awake.
void CpuPause();
// The processor's own counter in nanoseconds since the first call; 0 where there is none. A second
// clock, read without any function a library could have replaced.
std::int64_t CounterNs();

}  // namespace crucible
