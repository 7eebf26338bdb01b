#include "gpu_runner/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace crucible {
namespace {

constexpr int kSuccess = 0, kNoPermission = 4, kInsufficientSize = 7, kGpuIsLost = 15;
constexpr unsigned kClockSm = 1, kTemperatureGpu = 0;

// nvmlProcessInfo_t of the _v2 and _v3 calls.
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, void**) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*clock)(void*, unsigned, unsigned*) = nullptr;
  int (*max_clock)(void*, unsigned, unsigned*) = nullptr;
  int (*temperature)(void*, unsigned, unsigned*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*reasons)(void*, unsigned long long*) = nullptr;
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
  int (*capability)(void*, int*, int*) = nullptr;
  int (*lock_clocks)(void*, unsigned, unsigned) = nullptr;
  int (*reset_clocks)(void*) = nullptr;
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (initialised_) functions_->shutdown();
  // Never dlclose: the driver's library keeps threads and handlers of its own.
}

Result<std::unique_ptr<Nvml>> Nvml::Load() {
  const char* chosen = std::getenv("CRUCIBLE_NVML_LIBRARY");
  const std::string file = chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1";
  std::unique_ptr<Nvml> nvml(new Nvml());
  nvml->library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->library_ == nullptr)
    return Fail(ErrorKind::kUnavailable, "load", file, "no NVIDIA driver library on this machine",
                "install the driver, or use --device cpu");
  Functions& functions = *nvml->functions_;
  std::string missing;
  const auto bind = [&](auto* function, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
          ::dlsym(nvml->library_, name));
      if (*function != nullptr) return;
    }
    missing = *names.begin();
  };
  bind(&functions.init, {"nvmlInit_v2"});
  bind(&functions.shutdown, {"nvmlShutdown"});
  bind(&functions.error_string, {"nvmlErrorString"});
  bind(&functions.driver_version, {"nvmlSystemGetDriverVersion"});
  bind(&functions.count, {"nvmlDeviceGetCount_v2"});
  bind(&functions.handle_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
  bind(&functions.uuid, {"nvmlDeviceGetUUID"});
  bind(&functions.name, {"nvmlDeviceGetName"});
  bind(&functions.clock, {"nvmlDeviceGetClockInfo"});
  bind(&functions.max_clock, {"nvmlDeviceGetMaxClockInfo"});
  bind(&functions.temperature, {"nvmlDeviceGetTemperature"});
  bind(&functions.power, {"nvmlDeviceGetPowerUsage"});
  bind(&functions.reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  bind(&functions.processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  bind(&functions.capability, {"nvmlDeviceGetCudaComputeCapability"});
  bind(&functions.lock_clocks, {"nvmlDeviceSetGpuLockedClocks"});
  bind(&functions.reset_clocks, {"nvmlDeviceResetGpuLockedClocks"});
  if (!missing.empty())
    return Fail(ErrorKind::kUnavailable, "load", file, "it has no " + missing,
                "update the NVIDIA driver, or use --device cpu");
  if (const int code = functions.init(); code != kSuccess)
    return Fail(ErrorKind::kUnavailable, "start NVML from", file, functions.error_string(code),
                "check the driver with nvidia-smi, or use --device cpu");
  nvml->initialised_ = true;
  char text[128] = {};
  if (functions.driver_version(text, sizeof text) == kSuccess) nvml->driver_version_ = text;
  unsigned count = 0;
  if (functions.count(&count) != kSuccess) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu;
    gpu.index = static_cast<int>(i);
    if (functions.handle_by_index(i, &gpu.handle) != kSuccess) continue;  // lost: not offered
    if (functions.uuid(gpu.handle, text, sizeof text) != kSuccess) continue;
    gpu.uuid = text;
    if (functions.name(gpu.handle, text, sizeof text) == kSuccess) gpu.name = text;
    nvml->gpus_.push_back(std::move(gpu));
  }
  return nvml;
}

const Nvml::Gpu* Nvml::Find(const std::string& uuid) const {
  for (const Gpu& gpu : gpus_)
    if (gpu.uuid == uuid) return &gpu;
  return nullptr;
}

tl::unexpected<Error> Nvml::Failure(const char* action, const Gpu& gpu, int code) const {
  if (code == kNoPermission)
    return Fail(ErrorKind::kConflict, action, gpu.uuid, functions_->error_string(code),
                "run as root (a container needs SYS_ADMIN), or use --clocks observe");
  if (code == kGpuIsLost)
    return Fail(ErrorKind::kUnavailable, action, gpu.uuid, functions_->error_string(code),
                "look at dmesg; the GPU needs a reset or the machine a restart");
  return Fail(ErrorKind::kUnavailable, action, gpu.uuid, functions_->error_string(code),
              "check the GPU with nvidia-smi");
}

Result<GpuState> Nvml::State(const Gpu& gpu) const {
  GpuState state;
  unsigned value = 0;
  if (const int code = functions_->clock(gpu.handle, kClockSm, &value); code != kSuccess)
    return Failure("read the SM clock of", gpu, code);
  state.sm_mhz = static_cast<int>(value);
  if (functions_->temperature(gpu.handle, kTemperatureGpu, &value) == kSuccess)
    state.temperature_c = static_cast<int>(value);
  if (functions_->power(gpu.handle, &value) == kSuccess) state.power_w = value / 1000.0;
  unsigned long long reasons = 0;
  if (functions_->reasons(gpu.handle, &reasons) == kSuccess) state.reasons = reasons;
  return state;
}

Result<std::vector<GpuProcess>> Nvml::ComputeProcesses(const Gpu& gpu) const {
  for (unsigned room = 32;; room *= 4) {
    std::vector<ProcessInfo> items(room);
    unsigned count = room;
    const int code = functions_->processes(gpu.handle, &count, items.data());
    if (code == kInsufficientSize && room < 10'000) continue;
    if (code != kSuccess) return Failure("list the processes of", gpu, code);
    std::vector<GpuProcess> result;
    for (unsigned i = 0; i < count; ++i) result.push_back({items[i].pid, items[i].memory_bytes});
    return result;
  }
}

Result<int> Nvml::MaxSmClockMhz(const Gpu& gpu) const {
  unsigned value = 0;
  if (const int code = functions_->max_clock(gpu.handle, kClockSm, &value); code != kSuccess)
    return Failure("read the highest SM clock of", gpu, code);
  return static_cast<int>(value);
}

std::string Nvml::ComputeCapability(const Gpu& gpu) const {
  int major = 0, minor = 0;
  if (functions_->capability(gpu.handle, &major, &minor) != kSuccess) return "";
  return fmt::format("{}.{}", major, minor);
}

Result<> Nvml::LockSmClock(const Gpu& gpu, int mhz) {
  const auto value = static_cast<unsigned>(mhz);
  if (const int code = functions_->lock_clocks(gpu.handle, value, value); code != kSuccess)
    return Failure("pin the SM clock of", gpu, code);
  return {};
}

Result<> Nvml::ResetSmClock(const Gpu& gpu) {
  if (const int code = functions_->reset_clocks(gpu.handle); code != kSuccess)
    return Failure("reset the SM clock of", gpu, code);
  return {};
}

}  // namespace crucible
