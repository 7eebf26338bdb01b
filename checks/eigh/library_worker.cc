#include "checks/eigh/library_worker.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/hash.h"
#include "checks/eigh/code_scan.h"
#include "checks/eigh/symbol_policy.h"
#include "checks/eigh/worker_ops.h"
#include "checks/harness/machine.h"

namespace crucible::eigh {
namespace {

// Address space: the largest case, twice (outputs and their copies), and the largest workspace.
constexpr std::size_t kArenaBytes = std::size_t{48} << 30;
// CPU time a thread's share of a pool may take to go to sleep after a call: libgomp's wait for
// about 10 ms awake.
constexpr std::int64_t kPoolQuietNs = 50'000'000;
constexpr std::chrono::microseconds kQuietLook{50};
// A stopped process uses none at all.
constexpr std::int64_t kPausedNs = 1'000'000;

// As the library would have ended the harness, had it run in it.
[[noreturn]] void EndLike(const ExitStatus& status, std::uint32_t operation) {
  fmt::print(stderr, "the library's process ended with {} in operation {}\n", status.Describe(),
             operation);
  std::fflush(stderr);
  if (status.signal != 0) {
    ::signal(status.signal, SIG_DFL);
    ::raise(status.signal);
  }
  std::_Exit(status.code == 0 ? 1 : status.code);
}

}  // namespace

Result<WorkerAnswer> LibraryWorker::Ask(std::uint32_t operation,
                                        std::initializer_list<std::int64_t> arguments,
                                        const std::string& text, Timed timed) {
  auto answer = process_.Call(operation, arguments, text, timed);
  if (!answer && process_.crash()) EndLike(*process_.crash(), operation);
  return answer;
}

Result<LibraryWorker> LibraryWorker::Start(const WorkerOptions& options) {
  const std::filesystem::path& path = options.library;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return Fail(ErrorKind::kNotFound, "load library", path.string(), "there is no such file",
                "build the arm first");
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  CRUCIBLE_ASSIGN(const std::string sha256, Sha256HexOfFile(absolute));
  const bool candidate = options.role == LibraryRole::kCandidate;
  if (candidate && !options.admit_any) {
    CRUCIBLE_TRY(CheckSymbols(absolute, options.cuda ? KernelKind::kCuda : KernelKind::kCpu));
    CRUCIBLE_TRY(CheckCode(absolute));
  }
  CRUCIBLE_ASSIGN(
      WorkerProcess process,
      WorkerProcess::Start({WorkerProgram(options.cuda ? "eigh_cuda_worker" : "eigh_worker"),
                            candidate ? "candidate" : "peer"},
                           kArenaBytes));
  LibraryWorker worker(std::move(process));
  worker.threads_ = options.threads;
  worker.cuda_ = options.cuda;
  worker.candidate_ = candidate;
  worker.sha256_ = sha256;
  CRUCIBLE_TRY(worker.Ask(kStart, {}));
  worker.idle_threads_ = std::max(1, ThreadCount(worker.pid()));
  CRUCIBLE_ASSIGN(WorkerAnswer loaded, worker.Ask(kLoad, {}, absolute.string()));
  if (const int own = worker.idle_threads_; candidate && options.cuda)
    if (const int threads = SettledThreadCount(worker.pid(), own); threads > own)
      return Fail(ErrorKind::kUsage, "load library", path.string(),
                  fmt::format("it left threads behind: the process has {}, {} of them the driver's",
                              threads, own),
                  "a kernel for a GPU queues work and starts no thread");
  worker.configuration_ = std::move(loaded.text);
  CRUCIBLE_ASSIGN(WorkerAnswer conditions, worker.Ask(kConditions, {}));
  worker.conditions_ = std::move(conditions.text);
  return worker;
}

Result<std::size_t> LibraryWorker::WorkspaceBytes(std::int64_t batch, std::int64_t n) {
  CRUCIBLE_ASSIGN(const WorkerAnswer answer, Ask(kWorkspace, {batch, n, threads_}));
  return static_cast<std::size_t>(answer.results[1]);
}

Result<> LibraryWorker::Touch(std::span<std::byte> region) {
  CRUCIBLE_TRY(
      Ask(kTouch, {arena().OffsetOf(region.data()), static_cast<std::int64_t>(region.size())}));
  return {};
}

Result<std::int64_t> LibraryWorker::Sweep(bool full) {
  CRUCIBLE_ASSIGN(const WorkerAnswer answer, Ask(kSweep, {full ? 1 : 0}));
  return full ? answer.results[1] : answer.results[1] * answer.results[2];
}

Result<SolveReply> LibraryWorker::Solve(std::initializer_list<std::int64_t> arguments) {
  const Timed how = cuda_ ? Timed::kAwake : Timed::kAsleep;
  CRUCIBLE_ASSIGN(WorkerAnswer answer, Ask(kSolve, arguments, "", how));
  return SolveReply{.code = static_cast<int>(answer.results[kCode]),
                    .elapsed_ns = answer.results[kElapsedNs],
                    .counter_ns = answer.results[kCounterNs],
                    .finished_ns = answer.finished_ns,
                    .done_ns = answer.done_ns,
                    .cpu_at_go_ns = answer.cpu_at_go_ns,
                    .mode_changed = answer.results[kModeChanged] != 0,
                    .violation = std::move(answer.text)};
}

std::string LibraryWorker::AwaitQuiet() {
  if (cuda_) return "";
  const std::int64_t start_ns = CpuNs();
  while (AnyThreadRuns(pid())) {
    const std::int64_t used_ns = CpuNs() - start_ns;
    if (candidate_ && used_ns > kPoolQuietNs * threads_)
      return fmt::format(
          "it works while it is not called: {:.0f} ms of CPU time after a call, and its threads "
          "still run",
          static_cast<double>(used_ns) / 1e6);
    if (used_ns > kPoolQuietNs * threads_) return "";
    std::this_thread::sleep_for(kQuietLook);
  }
  return "";
}

void LibraryWorker::Pause() {
  if (!may_be_stopped()) return;
  process_.Pause();
  paused_cpu_ns_ = CpuNs();
}

std::string LibraryWorker::Resume() {
  if (!may_be_stopped()) return "";
  const std::int64_t used_ns = CpuNs() - paused_cpu_ns_;
  process_.Resume();
  if (!candidate_ || paused_cpu_ns_ == 0 || used_ns <= kPausedNs) return "";
  return fmt::format("it works while it is not called: {:.1f} ms of CPU time between two requests",
                     static_cast<double>(used_ns) / 1e6);
}

}  // namespace crucible::eigh
