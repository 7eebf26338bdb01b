// nvml.h: NVIDIA's management library, loaded at run time.
//
// Nothing links it, so that the same program runs where there is no driver; the toolkit ships no
// header for it, so the few declarations used are here. $CRUCIBLE_NVML_LIBRARY names another file
// on the same loading path (tests use a fake one). Not thread-safe: one user thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

// Why the clocks are not what they could be: bits of nvmlDeviceGetCurrentClocksEventReasons.
inline constexpr std::uint64_t kReasonIdle = 0x1;
inline constexpr std::uint64_t kReasonAppClocks = 0x2;
inline constexpr std::uint64_t kReasonPowerCap = 0x4;
inline constexpr std::uint64_t kReasonHwSlowdown = 0x8;
inline constexpr std::uint64_t kReasonSwThermal = 0x20;
inline constexpr std::uint64_t kReasonHwThermal = 0x40;
inline constexpr std::uint64_t kReasonPowerBrake = 0x80;

struct GpuState {
  int sm_mhz = -1, temperature_c = -1;
  double power_w = -1;
  std::uint64_t reasons = 0;
};

struct GpuProcess {
  unsigned pid = 0;
  std::uint64_t memory_bytes = 0;
};

class Nvml {
 public:
  // kUnavailable: no library, no driver or no device; the text says which.
  static Result<std::unique_ptr<Nvml>> Load();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  struct Gpu {
    void* handle = nullptr;
    int index = -1;
    std::string uuid, name;
  };
  const std::vector<Gpu>& gpus() const { return gpus_; }
  const std::string& driver_version() const { return driver_version_; }
  const Gpu* Find(const std::string& uuid) const;

  // kUnavailable: the GPU is gone (fallen off the bus) or the query is not supported.
  Result<GpuState> State(const Gpu& gpu) const;
  Result<std::vector<GpuProcess>> ComputeProcesses(const Gpu& gpu) const;
  Result<int> MaxSmClockMhz(const Gpu& gpu) const;
  std::string ComputeCapability(const Gpu& gpu) const;  // "9.0"; empty: the driver does not tell
  // kConflict: no permission.
  Result<> LockSmClock(const Gpu& gpu, int mhz);
  Result<> ResetSmClock(const Gpu& gpu);

 private:
  struct Functions;
  Nvml();
  tl::unexpected<Error> Failure(const char* action, const Gpu& gpu, int code) const;

  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
  bool initialised_ = false;
  std::vector<Gpu> gpus_;
  std::string driver_version_;
};

}  // namespace crucible
