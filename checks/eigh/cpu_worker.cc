// eigh_worker: holds one CPU library and calls it when the harness says so (worker_ops.h).
//
// It is the least that a call needs, because it shares its memory with the code under test: nothing
// here is a secret, and nothing it says is believed without a second look by the harness.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cfenv>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/json.h"
#include "checks/eigh/cpu_library.h"
#include "checks/eigh/worker_ops.h"
#include "checks/harness/cold_cache.h"
#include "checks/harness/machine.h"
#include "checks/harness/seclusion.h"
#include "checks/harness/worker_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace crucible::eigh {
namespace {

// Rounding, flush-to-zero and exception masks, without the sticky flags.
struct FloatMode {
  int rounding = std::fegetround();
#if defined(__x86_64__)
  unsigned control = _mm_getcsr() & 0xffc0u;
  void Restore() const { _mm_setcsr(control), std::fesetround(rounding); }
#else
  void Restore() const { std::fesetround(rounding); }
#endif
  bool operator==(const FloatMode&) const = default;
};

class CpuWorker {
 public:
  CpuWorker(WorkerLoop& loop, bool secluded)
      : loop_(&loop), secluded_(secluded), cold_(LastLevelCacheBytes()) {
    CounterNs();  // calibrated before any code under test is in the process
  }

  Result<> Do(std::uint32_t operation) {
    WorkerControl& control = loop_->control();
    const std::int64_t* const in = control.arguments;
    std::int64_t* const out = control.results;
    switch (operation) {
      case kLoad: {
        const std::string path = control.text;
        if (secluded_)
          layers_ = Seclude(Seclusion::kCompute, control.verdict, sizeof control.verdict);
        CRUCIBLE_ASSIGN(library_, LoadCpuLibrary(path));
        loop_->SetText(library_->configuration);
        return {};
      }
      case kConditions:
        loop_->SetText(nlohmann::json{{"isolation", layers_}}.dump());
        return {};
      case kWorkspace:
        out[1] = static_cast<std::int64_t>(
            library_->workspace_bytes(in[0], in[1], static_cast<int>(in[2])));
        return {};
      case kStart:
        return {};
      case kTouch:
        Touch(in[0], static_cast<std::size_t>(in[1]));
        return {};
      case kSweep: {
        const std::int64_t start = MonotonicNs();
        in[0] != 0 ? cold_.Sweep() : cold_.SweepPrivate();
        out[1] = MonotonicNs() - start;
        out[2] = cold_.SweepBytesRatio();
        return {};
      }
      case kSolve:
        Solve(in, out);
        return {};
    }
    return Fail(ErrorKind::kUsage, "do", fmt::format("operation {}", operation), "it is unknown");
  }

 private:
  void Touch(std::int64_t offset, std::size_t bytes) {
    volatile std::byte* const memory = loop_->arena().At(offset);
    for (std::size_t i = 0; i < bytes; i += 4096) memory[i] = memory[i];
  }

  template <class T>
  T* At(std::int64_t offset) {
    return reinterpret_cast<T*>(loop_->arena().At(offset));
  }

  void CopyOut(std::int64_t from, std::int64_t to, std::int64_t words) {
    std::memcpy(At<std::byte>(to), At<std::byte>(from), static_cast<std::size_t>(words) * 4);
  }

  void Solve(const std::int64_t* arguments, std::int64_t* out) {
    std::int64_t in[kWorkerArguments];  // a copy: the library sees the control block too
    std::memcpy(in, arguments, sizeof in);
    const std::int64_t batch = in[kBatch], n = in[kN];
    const auto scratch_bytes = static_cast<std::size_t>(in[kScratchBytes]);
    const FloatMode mode;
    loop_->AwaitGo();
    // The counter is read inside the clock's interval: however the thread is preempted, it can only
    // measure less, so a clock that shows less than the counter was tampered with.
    const std::int64_t start = MonotonicNs();
    const std::int64_t counter_start = CounterNs();
    const int code = library_->solve(batch, n, At<const float>(in[kInput]), At<float>(in[kValues]),
                                     At<float>(in[kVectors]), At<std::int32_t>(in[kInfo]),
                                     scratch_bytes > 0 ? At<void>(in[kScratch]) : nullptr,
                                     scratch_bytes, static_cast<int>(in[kThreads]));
    const std::int64_t counter_end = CounterNs();
    const std::int64_t end = MonotonicNs();
    loop_->MarkFinished();
    // First of all: what a thread still running writes later must not count.
    CopyOut(in[kValues], in[kValuesCopy], batch * n);
    CopyOut(in[kVectors], in[kVectorsCopy], batch * n * n);
    CopyOut(in[kInfo], in[kInfoCopy], batch);
    const FloatMode mode_after;
    mode.Restore();
    out[kCode] = code;
    out[kElapsedNs] = end - start;
    out[kCounterNs] = counter_end - counter_start;
    out[kModeChanged] = mode == mode_after ? 0 : 1;
    loop_->SetText("");
  }

  WorkerLoop* loop_;
  bool secluded_;
  std::string layers_ = "process";
  ColdCache cold_;
  std::optional<CpuLibrary> library_;
};

}  // namespace
}  // namespace crucible::eigh

int main(int argc, char** argv) {
  auto loop = crucible::WorkerLoop::Attach();
  if (!loop || argc != 2) {
    fmt::print(
        stderr, "eigh_worker: {}\n",
        loop ? "start it through eigh_harness: it takes one word, its role" : loop.error().text);
    return 2;
  }
  crucible::eigh::CpuWorker worker(*loop, std::strcmp(argv[1], "candidate") == 0);
  loop->Run([&](std::uint32_t operation) { return worker.Do(operation); });
  return 0;
}
