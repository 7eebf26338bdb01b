// eigh_cuda_worker: holds one CUDA library with the ABI of crucible/eigh.h and calls it when the
// harness says so (worker_ops.h). Host code alone: it needs the CUDA runtime, no nvcc.
//
// Every buffer that the harness lends is mirrored on the device with the canaries around it, at an
// address of its own for each call, and comes back whole: what was written outside, or into the
// input, is seen by the harness as it is for a CPU library. The workspace lives on the device
// alone. A call is timed by events on the stream that the library was given; the device must be
// idle when that stream is, or work was done elsewhere, and again before the next call and right
// before the answer, after which the harness stops this process. A library may make no stream, so
// the two that are there without being made are asked, which is exact; by time only what no host is
// ever late by is refused. Outputs come back twice, some time apart, so that a late writer shows.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "checks/eigh/random.h"
#include "checks/eigh/worker_ops.h"
#include "checks/harness/guarded_buffer.h"
#include "checks/harness/machine.h"
#include "checks/harness/seclusion.h"
#include "checks/harness/worker_loop.h"

namespace crucible::eigh {
namespace {

constexpr std::size_t kLeastFlush = std::size_t{256} << 20;
constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::size_t kWorkspacePlaces = 64;
constexpr std::size_t kCanary = GuardedBuffer::kCanaryBytes;
constexpr std::size_t kPlaceRange = std::size_t{1} << 16;  // the harness places within as much
constexpr int kLateWriteMs = 10;  // in a check; an output of a timed call that is late is wrong
// The device may be found busy this much longer than the stream before it counts as work done
// elsewhere, on a stream that cannot be asked. To be told that it is idle takes some microseconds,
// but now and then a hundred.
constexpr double kElsewhereShare = 0.05;
constexpr std::int64_t kElsewhereNs = 500'000;
constexpr std::int64_t kBusyNs = 1'000'000;

using WorkspaceFunction = int (*)(std::int64_t, std::int64_t, int, std::size_t*);
using SolveFunction = int (*)(std::int64_t, std::int64_t, const float*, float*, float*,
                              std::int32_t*, void*, std::size_t, int, cudaStream_t);

Result<> Cuda(cudaError_t code, const char* doing) {
  if (code == cudaSuccess) return {};
  return Fail(ErrorKind::kUnavailable, doing, "on the GPU", cudaGetErrorString(code));
}

// Device memory that grows and is never given back: its address range is part of the conditions.
class DeviceMemory {
 public:
  Result<> Reserve(std::size_t bytes) {
    if (bytes <= bytes_) return {};
    if (memory_ != nullptr) CRUCIBLE_TRY(Cuda(cudaFree(memory_), "give memory back"));
    memory_ = nullptr;
    bytes_ = 0;
    CRUCIBLE_TRY(Cuda(cudaMalloc(&memory_, bytes), "take memory"));
    bytes_ = bytes;
    return {};
  }
  std::byte* data() { return static_cast<std::byte*>(memory_); }
  std::size_t size() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// One lent buffer and its place on the device.
struct Mirror {
  std::byte* host = nullptr;  // in the shared memory
  std::size_t bytes = 0;
  DeviceMemory memory;

  // Moves as the harness moves the buffer.
  std::byte* device() {
    return memory.data() + kCanary + (reinterpret_cast<std::uintptr_t>(host) % kPlaceRange);
  }
  Result<> Send(std::byte* at, std::size_t size) {
    host = at, bytes = size;
    CRUCIBLE_TRY(memory.Reserve(size + 2 * kCanary + kPlaceRange));
    return Cuda(
        cudaMemcpy(device() - kCanary, host - kCanary, bytes + 2 * kCanary, cudaMemcpyHostToDevice),
        "send a buffer");
  }
  Result<> Fetch() {
    return Cuda(
        cudaMemcpy(host - kCanary, device() - kCanary, bytes + 2 * kCanary, cudaMemcpyDeviceToHost),
        "fetch a buffer");
  }
  Result<> FetchTo(std::byte* to) {
    return Cuda(cudaMemcpy(to, device(), bytes, cudaMemcpyDeviceToHost), "fetch an output");
  }
};

class CudaWorker {
 public:
  CudaWorker(WorkerLoop& loop, bool secluded) : loop_(&loop), secluded_(secluded) {}

  Result<> Do(std::uint32_t operation) {
    WorkerControl& control = loop_->control();
    switch (operation) {
      case kStart:
        return StartDriver();
      case kLoad:
        return Load(std::string(control.text));
      case kConditions:
        return Conditions();
      case kWorkspace:  // before each call, whose input is nowhere yet: the library's code runs
        scratch_code_ = workspace_(control.arguments[1], control.arguments[0], 0, &scratch_bytes_);
        control.results[1] = 0;  // none in the shared memory
        return {};
      case kTouch:
      case kSweep:  // its part of the cold start is in the call's
        control.results[1] = 0, control.results[2] = 1;
        return {};
      case kSolve: {
        std::int64_t arguments[kWorkerArguments];
        std::memcpy(arguments, control.arguments, sizeof arguments);
        return Solve(arguments);
      }
    }
    return Fail(ErrorKind::kUsage, "do", fmt::format("operation {}", operation), "it is unknown");
  }

 private:
  // Before the library is there: the driver may open devices and start helpers, which is over once
  // everything that a call does was done once. Whoever waits for the device does so awake, so that
  // the wait is CPU time of this thread, whatever else the machine does.
  Result<> StartDriver() {
    CRUCIBLE_TRY(Cuda(cudaInitDevice(0, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid),
                      "choose a device"));
    CRUCIBLE_TRY(Cuda(cudaSetDevice(0), "choose a device"));
    CRUCIBLE_TRY(Cuda(cudaFree(nullptr), "start the driver"));
    cudaDeviceProp device{};
    CRUCIBLE_TRY(Cuda(cudaGetDeviceProperties(&device, 0), "ask about the device"));
    gpu_ = device.name;
    CRUCIBLE_TRY(
        flush_.Reserve(std::max(kLeastFlush, 2 * static_cast<std::size_t>(device.l2CacheSize))));
    CRUCIBLE_TRY(Cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream"));
    for (cudaEvent_t* event : {&begin_, &end_})
      CRUCIBLE_TRY(Cuda(cudaEventCreate(event), "make an event"));
    CRUCIBLE_TRY(ColdCaches());
    CRUCIBLE_TRY(Cuda(cudaEventRecord(end_, stream_), "start the driver"));
    CRUCIBLE_TRY(Cuda(cudaEventSynchronize(end_), "start the driver"));
    std::vector<std::byte> some(kLeastFlush / 64);
    CRUCIBLE_TRY(Cuda(cudaMemcpy(flush_.data(), some.data(), some.size(), cudaMemcpyHostToDevice),
                      "start the driver"));
    CRUCIBLE_TRY(Cuda(cudaMemcpy(some.data(), flush_.data(), some.size(), cudaMemcpyDeviceToHost),
                      "start the driver"));
    return Cuda(cudaDeviceSynchronize(), "start the driver");
  }

  Result<> Load(const std::string& path) {
    if (secluded_)
      layers_ =
          Seclude(Seclusion::kDevice, loop_->control().verdict, sizeof loop_->control().verdict);
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const why = ::dlerror();
      return Fail(ErrorKind::kUsage, "load library", path,
                  why == nullptr ? "the loader refused it" : why);
    }
    workspace_ = reinterpret_cast<WorkspaceFunction>(::dlsym(handle, "crucible_eigh_workspace"));
    solve_ = reinterpret_cast<SolveFunction>(::dlsym(handle, "crucible_eigh"));
    if (workspace_ == nullptr || solve_ == nullptr)
      return Fail(ErrorKind::kUsage, "load library", path,
                  "it does not export crucible_eigh and crucible_eigh_workspace",
                  "build it against kernels/eigh/include/crucible/eigh.h");
    loop_->SetText("{}");
    return {};
  }

  Result<> Conditions() {
    int runtime = 0, driver = 0;
    CRUCIBLE_TRY(Cuda(cudaRuntimeGetVersion(&runtime), "ask the runtime's version"));
    CRUCIBLE_TRY(Cuda(cudaDriverGetVersion(&driver), "ask the driver's version"));
    const auto text = [](int version) {
      return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    };
    loop_->SetText(nlohmann::json{
        {"isolation", layers_},
        {"gpu", gpu_},
        {"cuda_runtime", text(runtime)},
        {"cuda_driver",
         text(driver)}}.dump());
    return {};
  }

  std::byte* At(std::int64_t offset) { return loop_->arena().At(offset); }

  // Poison, a new place, and canaries of the call's secret behind it.
  Result<std::byte*> PlaceScratch(std::size_t bytes, Random random) {
    const std::size_t whole =
        (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    CRUCIBLE_TRY(scratch_.Reserve(whole + 2 * kCanary + kWorkspacePlaces * kWorkspaceAlignment));
    CRUCIBLE_TRY(Cuda(cudaMemset(scratch_.data(), 0xff, scratch_.size()), "poison the workspace"));
    std::byte* const place =
        scratch_.data() + kCanary +
        static_cast<std::size_t>(random.Below(kWorkspacePlaces)) * kWorkspaceAlignment;
    canary_.resize(kCanary);
    for (std::byte& byte : canary_) byte = static_cast<std::byte>(random.Below(256));
    for (std::byte* edge : {place - kCanary, place + bytes})
      CRUCIBLE_TRY(
          Cuda(cudaMemcpy(edge, canary_.data(), kCanary, cudaMemcpyHostToDevice), "lay a canary"));
    return place;
  }

  Result<std::string> ScratchDamage(std::byte* place, std::size_t bytes) {
    std::vector<std::byte> seen(kCanary);
    for (const auto& [edge, where] : {std::pair(place + bytes, "past the end of"),
                                      std::pair(place - kCanary, "before the start of")}) {
      CRUCIBLE_TRY(
          Cuda(cudaMemcpy(seen.data(), edge, kCanary, cudaMemcpyDeviceToHost), "read a canary"));
      if (seen != canary_) return fmt::format("wrote {} the workspace ({} bytes)", where, bytes);
    }
    return std::string();
  }

  // Whether a stream that nobody has to make has something to do.
  static bool WorksElsewhere() {
    return cudaStreamQuery(cudaStreamLegacy) == cudaErrorNotReady ||
           cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady;
  }

  // Waits until the device is idle; returns the CPU time that it took this thread.
  static std::int64_t WaitForDeviceNs(cudaError_t* error) {
    const std::int64_t start = ThreadCpuNs();
    *error = cudaDeviceSynchronize();
    return ThreadCpuNs() - start;
  }
  static Result<std::string> BusyDevice(const char* what) {
    cudaError_t error = cudaSuccess;
    const bool works = WorksElsewhere();
    const std::int64_t busy_ns = WaitForDeviceNs(&error);
    CRUCIBLE_TRY(Cuda(error, "wait for the device"));
    if (!works && busy_ns <= kBusyNs) return std::string();
    return fmt::format("the device was busy for {} us {}", busy_ns / 1000, what);
  }

  // Writes over all of the second-level cache, then reads, so that neither the inputs nor dirty
  // lines of an earlier call are in it.
  Result<> ColdCaches() {
    const std::size_t half = flush_.size() / 2;
    CRUCIBLE_TRY(Cuda(cudaMemsetAsync(flush_.data(), ++flush_value_, flush_.size()), "flush"));
    return Cuda(
        cudaMemcpyAsync(flush_.data(), flush_.data() + half, half, cudaMemcpyDeviceToDevice),
        "sweep");
  }

  Result<> Solve(const std::int64_t* in) {
    const std::int64_t batch = in[kBatch], n = in[kN];
    const auto floats = [](std::int64_t count) { return static_cast<std::size_t>(count) * 4; };
    if (scratch_code_ != 0)
      return Answer(scratch_code_, 0,
                    fmt::format("crucible_eigh_workspace returned {}", scratch_code_));
    const std::size_t scratch_bytes = scratch_bytes_;
    CRUCIBLE_ASSIGN(const std::string before,
                    BusyDevice("before the call: it works while it is not called"));
    CRUCIBLE_TRY(input_.Send(At(in[kInput]), floats(batch * n * n)));
    CRUCIBLE_TRY(values_.Send(At(in[kValues]), floats(batch * n)));
    CRUCIBLE_TRY(vectors_.Send(At(in[kVectors]), floats(batch * n * n)));
    CRUCIBLE_TRY(info_.Send(At(in[kInfo]), floats(batch)));
    CRUCIBLE_ASSIGN(std::byte* const scratch,
                    PlaceScratch(scratch_bytes, Random(static_cast<std::uint64_t>(in[kSecret]))));
    if (in[kCold] != 0) CRUCIBLE_TRY(ColdCaches());
    CRUCIBLE_TRY(Cuda(cudaDeviceSynchronize(), "get ready"));
    (void)cudaGetLastError();

    loop_->AwaitGo();
    const std::int64_t start = MonotonicNs();
    (void)cudaEventRecord(begin_, stream_);
    const int code = solve_(n, batch, reinterpret_cast<const float*>(input_.device()),
                            reinterpret_cast<float*>(values_.device()),
                            reinterpret_cast<float*>(vectors_.device()),
                            reinterpret_cast<std::int32_t*>(info_.device()),
                            scratch_bytes > 0 ? scratch : nullptr, scratch_bytes, 0, stream_);
    const cudaError_t launched = cudaGetLastError();
    (void)cudaEventRecord(end_, stream_);
    const cudaError_t streamed = cudaEventSynchronize(end_);
    const std::int64_t stream_end = MonotonicNs();
    const bool elsewhere = WorksElsewhere();
    const cudaError_t finished = cudaDeviceSynchronize();
    const std::int64_t end = MonotonicNs();
    loop_->MarkFinished();

    for (const cudaError_t error : {launched, streamed, finished})
      if (error != cudaSuccess)
        return Answer(code, end - start,
                      fmt::format("left a CUDA error behind: {}", cudaGetErrorString(error)));
    float milliseconds = 0;
    CRUCIBLE_TRY(Cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "read the events"));
    const auto elapsed = static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
    std::string violation = before;
    if (elsewhere || static_cast<double>(end - stream_end) >
                         kElsewhereShare * static_cast<double>(elapsed) + kElsewhereNs)
      violation = fmt::format(
          "the device worked on for {} ns after the call's stream had finished: work on another "
          "stream",
          end - stream_end);
    CRUCIBLE_TRY(values_.FetchTo(At(in[kValuesCopy])));
    CRUCIBLE_TRY(vectors_.FetchTo(At(in[kVectorsCopy])));
    CRUCIBLE_TRY(info_.FetchTo(At(in[kInfoCopy])));
    if (in[kCold] == 0) std::this_thread::sleep_for(std::chrono::milliseconds(kLateWriteMs));
    for (Mirror* mirror : {&input_, &values_, &vectors_, &info_}) CRUCIBLE_TRY(mirror->Fetch());
    if (violation.empty()) {
      CRUCIBLE_ASSIGN(violation, ScratchDamage(scratch, scratch_bytes));
    }
    if (violation.empty()) {
      CRUCIBLE_ASSIGN(violation, BusyDevice("after the call: it works on after returning"));
    }
    return Answer(code, elapsed, violation);
  }

  Result<> Answer(int code, std::int64_t elapsed_ns, const std::string& violation) {
    std::int64_t* const out = loop_->control().results;
    out[kCode] = code;
    out[kElapsedNs] = elapsed_ns;
    out[kCounterNs] = elapsed_ns;  // a device has one clock; the harness has its own
    out[kModeChanged] = 0;
    loop_->SetText(violation);
    return {};
  }

  WorkerLoop* loop_;
  bool secluded_;
  std::string layers_ = "process", gpu_;
  WorkspaceFunction workspace_ = nullptr;
  SolveFunction solve_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  int scratch_code_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  DeviceMemory flush_, scratch_;
  Mirror input_, values_, vectors_, info_;
  std::vector<std::byte> canary_;
  int flush_value_ = 0;
};

}  // namespace
}  // namespace crucible::eigh

int main(int argc, char** argv) {
  auto loop = crucible::WorkerLoop::Attach();
  if (!loop || argc != 2) {
    fmt::print(
        stderr, "eigh_cuda_worker: {}\n",
        loop ? "start it through eigh_harness: it takes one word, its role" : loop.error().text);
    return 2;
  }
  crucible::eigh::CudaWorker worker(*loop, std::strcmp(argv[1], "candidate") == 0);
  loop->Run([&](std::uint32_t operation) { return worker.Do(operation); });
  return 0;
}
