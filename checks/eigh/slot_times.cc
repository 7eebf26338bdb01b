#include "checks/eigh/slot_times.h"

#include <fmt/format.h>

#include <algorithm>

namespace crucible::eigh {
namespace {

// What a call may be seen to take beyond its time: a share of it, and what handing over nothing
// took, some times over, because a busy machine wakes a process late.
constexpr double kTolerance = 0.05;
constexpr double kHandovers = 4;
constexpr double kSeenResolutionNs = 20'000;
constexpr double kDeviceResolutionNs = 50'000;  // launches and events are between as well
// The same for the answer, which waits for the copies of the outputs: so many times as long as the
// harness's own, and two more hand-overs' worth of patience.
constexpr double kCopies = 4;
constexpr double kAnswerPatience = 3;
// What waking up, reading a request and waiting awake for "go" takes of CPU time, twice over.
constexpr double kReadyNs = 80'000;
// A quarter of the calls must be seen in order: others have the CPUs as well on a busy machine.
constexpr double kSeenShare = 0.25;
constexpr std::size_t kFewestUndisturbed = 3;

double Patience(const SlotTimes& times) {
  return kHandovers * Median(times.handover_ns) +
         (times.on_device ? kDeviceResolutionNs : kSeenResolutionNs);
}

double Share(const SlotTimes& times) { return kTolerance * Median(times.call_ns); }

// What at least three quarters of the faster half show beyond `given`.
double UsualBeyond(const SlotTimes& times, const std::vector<std::int64_t>& seen,
                   const std::vector<std::int64_t>* given) {
  const double median = Median(times.call_ns);
  std::vector<std::int64_t> beyond;
  for (std::size_t i = 0; i < times.call_ns.size(); ++i)
    if (static_cast<double>(times.call_ns[i]) <= median)
      beyond.push_back(seen[i] - (given != nullptr ? (*given)[i] : 0));
  if (beyond.empty()) return 0;
  std::sort(beyond.begin(), beyond.end());
  return static_cast<double>(
      beyond[static_cast<std::size_t>(kSeenShare * static_cast<double>(beyond.size()))]);
}

}  // namespace

double Median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? static_cast<double>(values[half])
                                : .5 * static_cast<double>(values[half - 1] + values[half]);
}

Excess MissingTime(const SlotTimes& times) {
  return {UsualBeyond(times, times.finished_ns, &times.call_ns) / 1e3,
          (Share(times) + Patience(times)) / 1e3};
}

Excess LateAnswer(const SlotTimes& times) {
  return {
      UsualBeyond(times, times.done_ns, &times.call_ns) / 1e3,
      (Share(times) + kAnswerPatience * Patience(times) + kCopies * Median(times.copy_ns)) / 1e3};
}

Excess EarlyWork(const SlotTimes& times) {
  return {UsualBeyond(times, times.early_cpu_ns, nullptr) / 1e3, (Share(times) + kReadyNs) / 1e3};
}

std::string Doubt(const SlotTimes& times, bool by_cpu_time) {
  if (const Excess missing = MissingTime(times); missing.TooMuch())
    return fmt::format(
        "its times are shorter than what was seen: {:.1f} us a call are missing, {:.1f} us at most "
        "are the hand-over's",
        missing.us, missing.limit_us);
  // A device's outputs come over a bus after the call: its events tell the time.
  if (const Excess late = LateAnswer(times); !times.on_device && late.TooMuch())
    return fmt::format(
        "its answers come later than its times say: {:.1f} us after them, at most {:.1f} us of it "
        "the copies' and the hand-over's",
        late.us, late.limit_us);
  if (const Excess early = EarlyWork(times); by_cpu_time && early.TooMuch())
    return fmt::format(
        "it computes before it says that it is ready: {:.1f} us of CPU time a call, at most "
        "{:.1f} us of it to get ready",
        early.us, early.limit_us);
  return "";
}

double SlotMedianNs(const SlotTimes& times) {
  const bool enough = times.undisturbed_ns.size() >= kFewestUndisturbed &&
                      2 * times.undisturbed_ns.size() >= times.call_ns.size();
  return Median(enough ? times.undisturbed_ns : times.call_ns);
}

}  // namespace crucible::eigh
