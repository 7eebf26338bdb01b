// driver_files.h: what the NVIDIA kernel driver tells in files, without its library.
//
// NVML takes about 20 ms to start; reading these takes none. They name the GPUs, and tell for
// certain when nobody computes on any of them; who does, only NVML tells. So a job that comes to a
// free device need not wait for NVML. Where the files are not to be had (a container, a sandbox,
// another system) the functions say so and the caller asks NVML. $CRUCIBLE_DRIVER_FILES names
// another folder in place of /; with a stand-in for NVML, only that one is read. Any thread.
#pragma once

#include <string>
#include <vector>

#include "gpu_runner/device.h"

namespace crucible {

// The GPUs that this process may open and that answer on their bus, in nvidia-smi's order; empty:
// ask NVML.
std::vector<Device> GpusInDriverFiles();

// "580.159.04"; empty: not to be had.
std::string DriverVersionInFiles();

// Whether NVIDIA's kernel driver is loaded at all.
bool HasNvidiaDriver();

// No process on the machine, in whatever container, has a GPU open for CUDA; false: ask NVML.
bool NobodyUsesCuda();

}  // namespace crucible
