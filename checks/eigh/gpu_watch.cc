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

int GpuWatch::SmMhz() const {
  if (!works()) return -1;
  const auto state = nvml_->State(*gpu_);
  return state ? state->sm_mhz : -1;
}

std::string GpuWatch::ClockStamp(int mhz) {
  if (mhz < 0) return "unknown";
  const char* const set = std::getenv(kSmClockVariable);
  const double locked = set == nullptr ? 0 : std::strtod(set, nullptr);
  return locked > 0 && std::abs(mhz - locked) <= kPinnedTolerance * locked ? "pinned" : "unlocked";
}

}  // namespace crucible::eigh
