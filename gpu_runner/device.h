// device.h: which devices this machine has, and which of them a caller's words mean.
//
// The CPU is a device like any other, always there: CPU benchmarks disturb each other as GPU ones
// do. GPUs are asked for only when one may be meant, because NVML takes time to start.
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

// NVML's GPUs in nvidia-smi's order; none where `nvml` is null.
std::vector<Device> GpusOf(const Nvml* nvml);
// All devices, the CPU first.
std::vector<Device> ListDevices(const Nvml* nvml);

// Whether `words` can mean a GPU, so that it takes the list of GPUs to answer.
bool MayMeanGpu(const std::string& words);

// The devices among the CPU and `gpus` that `words` ("cpu", "any", an index, a UUID or a unique
// beginning of one, several of the last two joined by commas, empty) accept, in ascending order of
// id. `why_none` says why there are no GPUs; empty: the driver lists none.
Result<std::vector<Device>> ResolveDevices(const std::string& words, std::vector<Device> gpus,
                                           const std::string& why_none);

}  // namespace crucible
