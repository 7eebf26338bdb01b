// device.h: which devices this machine has, and which of them a caller's words mean.
//
// The CPU is a device like any other, always there: CPU benchmarks disturb each other as GPU ones
// do. GPUs come from NVML, asked only when a GPU may be meant, because its start takes time.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

class Nvml;

struct Device {
  bool is_gpu = false;
  std::string id;    // "cpu", or the GPU's UUID: names its lock folder
  int index = -1;    // as nvidia-smi counts (by PCI bus), -1 for the CPU
  std::string name;  // "NVIDIA ..." or "CPU"
};

// All devices, the CPU first. `nvml` may be null.
std::vector<Device> ListDevices(Nvml* nvml);

// Whether `words` can mean a GPU, so that NVML is needed to answer.
bool NeedsNvml(const std::string& words);

// The devices that `words` ("cpu", "any", an index, a UUID or a unique beginning of one, several of
// the last two joined by commas, empty) accept, in ascending order of id. `nvml` null: no driver
// here; `why_no_nvml` says why.
Result<std::vector<Device>> ResolveDevices(const std::string& words, Nvml* nvml,
                                           const std::string& why_no_nvml);

}  // namespace crucible
