// clocks.h: the clocks a job ran under, and whether they can be trusted.
//
// `pin` locks the GPU's SM clock before the job and again after it, always, because profilers drop
// the lock and there is no way to read it back; the samples prove it. `observe` sets nothing. A job
// whose clocks moved is not refused: its row says so, and who compares times decides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu_runner/device.h"
#include "gpu_runner/nvml.h"
#include "gpu_runner/options.h"

namespace crucible {

// In a job's environment: the SM clock that gpu_run locked for it; empty where it locked none.
inline constexpr char kSmClockVariable[] = "CRUCIBLE_SM_CLOCK_MHZ";
inline constexpr double kPinnedTolerance = 0.02;  // a locked clock reads within this share of it

struct ClockSample {
  int mhz = -1;  // SM clock, or the mean over CPUs; -1: not to be had
  int temperature_c = -1;
  double power_w = -1;
  double load = -1;           // CPU: one-minute load average
  std::uint64_t reasons = 0;  // NVML's clock-event bits
};

struct ClockReport {
  ClockPolicy policy = ClockPolicy::kObserve;
  int pinned_mhz = 0;         // 0: not pinned
  bool pin_refused = false;   // asked for, not permitted
  bool repin_failed = false;  // it was locked for the job and could not be locked again
  bool gone = false;          // the GPU stopped answering
  ClockSample before, after;
  ClockSample repinned;  // read once the lock was set again; empty when not pinned
  std::vector<ClockSample> during;
};

// steady | drifted | throttled | power_capped | unlocked | gone | unknown | off. Pure.
std::string DriftVerdict(const ClockReport& report);
std::string ToJson(const ClockReport& report);
// "the SM clock is locked at 1980 MHz again and reads 1980 MHz", for people. Pure.
std::string DescribeAfter(const ClockReport& report);

ClockSample SampleCpu();

// The file that says that gpu_run pinned this GPU, so that only its own setting is ever given back.
std::filesystem::path PinMark(const std::filesystem::path& lock_directory,
                              const std::string& device);

// One job's clocks on one device. Not thread-safe.
class ClockKeeper {
 public:
  ClockKeeper(const Device& device, ClockPolicy policy, std::optional<int> pin_mhz);

  // What a GPU's clocks are read with, before any other call; null: it does not answer.
  void Use(Nvml* nvml);

  // Pins when asked to. A refusal is a warning in the result's text, never an error; kUnavailable
  // when the GPU does not answer at all.
  Result<std::string> Before();
  void During();
  // Pins again, unconditionally. A GPU that vanished is noted in the report.
  void After();
  const ClockReport& report() const { return report_; }

 private:
  std::optional<ClockSample> Sample();
  Result<> Pin();
  tl::unexpected<Error> GpuIsGone() const;

  Device device_;
  const Nvml::Gpu* gpu_ = nullptr;
  Nvml* nvml_ = nullptr;
  std::optional<int> wanted_mhz_;
  ClockReport report_;
};

}  // namespace crucible
