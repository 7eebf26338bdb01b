// gpu_watch.h: whether the GPU held its clocks back, seen from outside the process that uses it.
//
// Through NVML, where the driver has it; without, nothing is said and nothing is throttled. The GPU
// is the first of CUDA_VISIBLE_DEVICES (by UUID, as gpu_run exports it), else the first there is.
#pragma once

#include <memory>
#include <string>

#include "gpu_runner/nvml.h"

namespace crucible::eigh {

struct SmClock {
  int mhz = -1;  // -1: not to be had
  bool idle = false;
};

class GpuWatch {
 public:
  GpuWatch();

  bool works() const { return gpu_ != nullptr; }
  // Heat, power brake or hardware slowdown, at this moment.
  bool Throttled() const;
  // The SM clock at this moment. Right after a call: an idle GPU clocks down, locked or not.
  SmClock Clock() const;
  // pinned: gpu_run locked it ($CRUCIBLE_SM_CLOCK_MHZ) and it reads so; unlocked: gpu_run did not
  // lock it, or it does not hold; unknown: there is nothing to read, or only an idle GPU.
  static std::string Stamp(const SmClock& clock);
  std::string driver() const { return works() ? nvml_->driver_version() : "unknown"; }

 private:
  std::unique_ptr<Nvml> nvml_;
  const Nvml::Gpu* gpu_ = nullptr;
};

}  // namespace crucible::eigh
