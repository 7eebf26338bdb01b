#include "checks/eigh/gpu_watch.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "gpu_runner/clocks.h"

namespace crucible::eigh {

GpuWatch::GpuWatch() {
  auto nvml = Nvml::Load();
  if (!nvml || (*nvml)->gpus().empty()) return;
  nvml_ = std::move(*nvml);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string first =
      visible == nullptr ? "" : std::string(visible).substr(0, std::string(visible).find(','));
  gpu_ = nvml_->Find(first);
  if (gpu_ == nullptr) gpu_ = &nvml_->gpus().front();
}

bool GpuWatch::Throttled() const {
  if (!works()) return false;
  constexpr std::uint64_t kHeldBack =
      kReasonHwSlowdown | kReasonSwThermal | kReasonHwThermal | kReasonPowerBrake;
  const auto state = nvml_->State(*gpu_);
  return state.has_value() && (state->reasons & kHeldBack) != 0;
}

SmClock GpuWatch::Clock() const {
  if (!works()) return {};
  const auto state = nvml_->State(*gpu_);
  if (!state) return {};
  return {state->sm_mhz, (state->reasons & kReasonIdle) != 0};
}

std::string GpuWatch::Stamp(const SmClock& clock) {
  if (clock.mhz < 0) return "unknown";
  const char* const set = std::getenv(kSmClockVariable);
  const double locked = set == nullptr ? 0 : std::strtod(set, nullptr);
  if (locked <= 0) return "unlocked";
  if (std::abs(clock.mhz - locked) <= kPinnedTolerance * locked) return "pinned";
  return clock.idle ? "unknown" : "unlocked";
}

}  // namespace crucible::eigh
