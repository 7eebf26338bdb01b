// A GPU driver's library without a GPU: the symbols that gpu_run uses, told what to do by a file.
//
// $FAKE_NVML_STATE names a text file of "NAME VALUE" lines, read anew at each call, so that a test
// (or a job) can change the GPU under a running runner: gpus N, permission 0|1, mhz N, reasons N,
// foreign PID, foreign.UUID PID, lost 0|1, drop_pins 0|1, capability 90, driver 999.
// Every change of clocks is appended to $FAKE_NVML_CALLS.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

long Setting(const char* name, long otherwise) {
  const char* path = std::getenv("FAKE_NVML_STATE");
  std::FILE* file = path != nullptr ? std::fopen(path, "re") : nullptr;
  if (file == nullptr) return otherwise;
  char key[64];
  long value = 0;
  while (std::fscanf(file, "%63s %ld", key, &value) == 2)
    if (std::strcmp(key, name) == 0) otherwise = value;
  std::fclose(file);
  return otherwise;
}

void Record(const char* text) {
  const char* path = std::getenv("FAKE_NVML_CALLS");
  std::FILE* file = path != nullptr ? std::fopen(path, "ae") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", text);
  std::fclose(file);
}

// The locked clock as the device would keep it: the last "lock" of the calls, unless dropped.
long LockedMhz() {
  if (Setting("drop_pins", 0) != 0) return 0;
  const char* path = std::getenv("FAKE_NVML_CALLS");
  std::FILE* file = path != nullptr ? std::fopen(path, "re") : nullptr;
  if (file == nullptr) return 0;
  char line[128];
  long mhz = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "lock ", 5) == 0) mhz = std::atol(line + 5);
    if (std::strncmp(line, "reset", 5) == 0 || std::strncmp(line, "dropped", 7) == 0) mhz = 0;
  }
  std::fclose(file);
  return mhz;
}

constexpr int kOk = 0, kUninitialized = 1, kInvalid = 2, kNoPermission = 4, kLost = 15;
bool initialised = false;  // as with the real one, nothing works before nvmlInit
int Alive() { return !initialised ? kUninitialized : Setting("lost", 0) != 0 ? kLost : kOk; }

}  // namespace

extern "C" {

int nvmlInit_v2() {
  initialised = true;
  return kOk;
}
int nvmlShutdown() {
  initialised = false;
  return kOk;
}
const char* nvmlErrorString(int code) {
  return code == kNoPermission ? "Insufficient Permissions"
         : code == kLost       ? "GPU is lost"
                               : "Error";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "%ld.1", Setting("driver", 999));
  return initialised ? kOk : kUninitialized;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(Setting("gpus", 1));
  return initialised ? kOk : kUninitialized;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char handles[16];
  *device = &handles[index % 16];
  return kOk;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  void* first = nullptr;
  nvmlDeviceGetHandleByIndex_v2(0, &first);
  const auto index = static_cast<char*>(device) - static_cast<char*>(first);
  std::snprintf(text, size, "GPU-fake-%ld", static_cast<long>(index));
  return kOk;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  const long capability = Setting("capability", 90);  // another kind has another name
  std::snprintf(text, size, capability == 90 ? "Fake GPU" : "Fake GPU %ld", capability);
  return kOk;
}
int nvmlDeviceGetClockInfo(void*, unsigned, unsigned* mhz) {
  if (Alive() != kOk) return kLost;
  const long locked = LockedMhz();
  *mhz = static_cast<unsigned>(Setting("mhz", locked > 0 ? locked : 1200));
  return kOk;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned, unsigned* mhz) {
  *mhz = 1980;
  return Alive();
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = static_cast<int>(Setting("capability", 90)) / 10;
  *minor = static_cast<int>(Setting("capability", 90)) % 10;
  return Alive();
}
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* celsius) {
  *celsius = 41;
  return Alive();
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 123'000;
  return Alive();
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  *reasons = static_cast<unsigned long long>(Setting("reasons", 0));
  return Alive();
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* items) {
  char uuid[32];
  nvmlDeviceGetUUID(device, uuid, sizeof uuid);
  const std::string own = std::string("foreign.") + uuid;
  const long pid = Setting(own.c_str(), Setting("foreign", 0));
  *count = pid != 0 ? 1 : 0;
  if (pid != 0) {
    std::memset(items, 0, 24);
    *static_cast<unsigned*>(items) = static_cast<unsigned>(pid);
  }
  return Alive();
}
int nvmlDeviceSetGpuLockedClocks(void*, unsigned low, unsigned high) {
  if (low != high || low == 0 || !initialised) return kInvalid;  // gpu_run locks one clock
  if (Setting("permission", 1) == 0) {
    Record("refused");
    return kNoPermission;
  }
  Record(("lock " + std::to_string(low)).c_str());
  return Alive();
}
int nvmlDeviceResetGpuLockedClocks(void*) {
  Record("reset");
  return Alive();
}

}  // extern "C"
