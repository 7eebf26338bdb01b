#include "checks/harness/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "base/files.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace crucible {
namespace {

// One that works on stays for longer.
constexpr std::int64_t kThreadGraceNs = 100'000'000;

std::string Trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

// The file's text, or "" where it cannot be read.
std::string Peek(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  return Trimmed(text.str());
}

std::string CpuPath(int cpu, std::string_view rest) {
  return fmt::format("/sys/devices/system/cpu/cpu{}/{}", cpu, rest);
}

std::int64_t ToInteger(std::string_view text, std::int64_t fallback) {
  std::int64_t value = fallback;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string CpuModel() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

std::int64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

Result<> PinToFirstCpus(int count) {
  const std::vector<int> allowed = AllowedCpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < std::min<int>(count, static_cast<int>(allowed.size())); ++i)
    CPU_SET(allowed[i], &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return Fail(ErrorKind::kIo, "pin to the first CPUs", std::to_string(count), std::strerror(errno));
}

std::map<std::string, std::string> MachineConditions() {
  utsname names{};
  uname(&names);
  const std::vector<int> cpus = AllowedCpus();
  const std::string governor = Peek(CpuPath(cpus.front(), "cpufreq/scaling_governor"));
  return {{"cpu", CpuModel()},
          {"kernel", fmt::format("{} {}", names.sysname, names.release)},
          {"governor", governor.empty() ? "unknown" : governor},
          {"clock", CpuClockPolicy()}};
}

std::string CpuClockPolicy() {
  for (const int cpu : AllowedCpus()) {
    const std::string low = Peek(CpuPath(cpu, "cpufreq/scaling_min_freq"));
    if (low.empty() || low != Peek(CpuPath(cpu, "cpufreq/scaling_max_freq"))) return "unlocked";
  }
  return "pinned";
}

std::int64_t LastLevelCacheBytes() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string text = Peek(CpuPath(0, fmt::format("cache/index{}/size", index)));
    if (text.empty()) continue;
    const std::int64_t unit = text.back() == 'K' ? 1024 : text.back() == 'M' ? 1 << 20 : 1;
    largest = std::max(largest, unit * ToInteger(text, 0));
  }
  return largest;
}

int ThreadCount(int pid) {
  const std::string stat = Peek(pid == 0 ? "/proc/self/stat" : fmt::format("/proc/{}/stat", pid));
  // After the parenthesised name: field 3 is the state, field 20 the number of threads.
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 20; ++i) fields >> field;
  return static_cast<int>(ToInteger(field, 0));
}

int SettledThreadCount(int pid, int limit) {
  int count = ThreadCount(pid);
  for (const std::int64_t start = MonotonicNs();
       count > limit && MonotonicNs() - start < kThreadGraceNs; count = ThreadCount(pid))
    std::this_thread::yield();
  return count;
}

Disturbance ReadDisturbance() {
  Disturbance counters;
  std::istringstream cpu(Peek("/proc/stat"));
  std::string label;
  std::int64_t ticks = 0;
  cpu >> label;
  for (int field = 1; field <= 8 && cpu >> ticks; ++field)
    if (field == 8) counters.steal_ticks = ticks;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  counters.preemptions = usage.ru_nivcsw;
  for (const int number : AllowedCpus())
    counters.thermal_throttles +=
        ToInteger(Peek(CpuPath(number, "thermal_throttle/core_throttle_count")), 0);
  return counters;
}

Disturbance operator-(const Disturbance& after, const Disturbance& before) {
  return {after.steal_ticks - before.steal_ticks, after.preemptions - before.preemptions,
          after.thermal_throttles - before.thermal_throttles};
}

bool AnyThreadRuns(int pid) {
  std::error_code gone;
  const std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid), gone);
  if (gone) return false;
  for (const auto& task : tasks) {
    const std::string stat = Peek(task.path() / "stat");
    const auto name_end = stat.rfind(") ");
    if (name_end != std::string::npos && stat[name_end + 2] == 'R') return true;
  }
  return false;
}

std::int64_t ProcessCpuNs(int pid) {
  clockid_t clock{};
  return clock_getcpuclockid(pid, &clock) == 0 ? ClockNs(clock) : 0;
}

std::int64_t ProcessTimes::HinderedNs() const {
  return std::max<std::int64_t>(0, waited_ns - (cpu_ns - ran_ns));
}

ProcessTimes ReadProcessTimes(int pid) {
  ProcessTimes times{.cpu_ns = ProcessCpuNs(pid)};
  std::istringstream fields(Peek(fmt::format("/proc/{0}/task/{0}/schedstat", pid)));
  fields >> times.ran_ns >> times.waited_ns;
  return times;
}

ProcessTimes operator-(const ProcessTimes& after, const ProcessTimes& before) {
  return {after.cpu_ns - before.cpu_ns, after.ran_ns - before.ran_ns,
          after.waited_ns - before.waited_ns};
}

std::int64_t ThreadCpuNs() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

void CpuPause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

#if defined(__x86_64__)
namespace {

// The two clocks at one moment.
struct Moment {
  std::int64_t ns = 0;
  std::uint64_t ticks = 0;
};

// The counter is read between two readings of the clock; of several tries the narrowest counts,
// because a thread that loses its processor in between would put them milliseconds apart.
Moment ReadBothClocks() {
  constexpr int kTries = 64;
  constexpr std::int64_t kNarrowNs = 300;
  Moment best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries && least > kNarrowNs; ++i) {
    const std::int64_t before = MonotonicNs();
    const std::uint64_t ticks = __rdtsc();
    const std::int64_t after = MonotonicNs();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + least / 2, ticks};
  }
  return best;
}

}  // namespace

std::int64_t CounterNs() {
  // Calibrated once, before any library under test is loaded (the harness calls this first).
  static const struct Rate {
    Moment start = ReadBothClocks();
    double ns_per_tick = 0;
    Rate() {
      while (MonotonicNs() - start.ns < 5'000'000) continue;  // 5 ms: known to about 1e-4
      const Moment end = ReadBothClocks();
      ns_per_tick =
          static_cast<double>(end.ns - start.ns) / static_cast<double>(end.ticks - start.ticks);
    }
  } rate;
  return static_cast<std::int64_t>(static_cast<double>(__rdtsc() - rate.start.ticks) *
                                   rate.ns_per_tick);
}
#else
std::int64_t CounterNs() { return 0; }
#endif

}  // namespace crucible
