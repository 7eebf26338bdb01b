#include "checks/eigh/gpu_watch.h"

#include <cstdlib>
#include <utility>

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

}  // namespace crucible::eigh
