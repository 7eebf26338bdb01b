// library_worker.h: one built copy of a kernel, in a process of its own.
//
// The harness's view: what the library is and the operations of worker_ops.h as functions. A worker
// that crashed ends the harness the same way (the judge then blames the candidate); one that was
// stopped for a forbidden call stays, as `violation`. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "checks/harness/worker_process.h"

namespace crucible::eigh {

enum class LibraryRole {
  kCandidate,  // held to the symbol policy, secluded
  kPeer,       // a known library behind the same ABI: may call what it likes
};

struct WorkerOptions {
  std::filesystem::path library;
  LibraryRole role = LibraryRole::kCandidate;
  int threads = 1;
  bool cuda = false;  // a library for the GPU, with the ABI of crucible/eigh.h
  // A cheat that shows what the defences at run time see: past the symbol policy, all else holds.
  bool admit_any = false;
};

struct SolveReply {
  int code = 0;
  std::int64_t elapsed_ns = 0, counter_ns = 0;
  // By the harness's clock, the second with the outputs' copies; see WorkerAnswer.
  std::int64_t finished_ns = 0, done_ns = 0, cpu_at_go_ns = 0;
  bool mode_changed = false;
  std::string violation;
};

class LibraryWorker {
 public:
  // kNotFound where there is no such file; kUsage where it is no such library.
  static Result<LibraryWorker> Start(const WorkerOptions& options);

  const std::string& configuration() const { return configuration_; }  // JSON text, the library's
  const std::string& conditions() const { return conditions_; }        // JSON text, the worker's
  // Before the library was loaded: a sanitizer's runtime and a GPU's driver have threads of their
  // own.
  int idle_threads() const { return idle_threads_; }
  const char* entry() const { return cuda_ ? "crucible_eigh" : "eigh_cpu_solve"; }
  const std::string& sha256() const { return sha256_; }  // of the file, before loading

  Result<std::size_t> WorkspaceBytes(std::int64_t batch, std::int64_t n);
  Result<> Touch(std::span<std::byte> region);
  // Returns what a full sweep takes, measured or (after a private one) estimated.
  Result<std::int64_t> Sweep(bool full);
  Result<SolveReply> Solve(std::initializer_list<std::int64_t> arguments);

  SharedArena& arena() { return process_.arena(); }
  pid_t pid() const { return process_.pid(); }
  std::int64_t CpuNs() const { return process_.CpuNs(); }  // of the whole process
  // A library that is judged by its process's CPU time: a peer is known, a GPU's driver works in
  // threads of its own.
  bool cpu_time_counts() const { return candidate_ && !cuda_; }
  bool on_cpu() const { return !cuda_; }
  // Returns once all its threads sleep: a pool may look for work a while after a call. Else, after
  // more CPU time than that, what to say of it.
  std::string AwaitQuiet();
  // Between requests the process is stopped, all its threads: the other arm may be timed now. A
  // device that they had left work would show as busy before the next call.
  void Pause();
  // Empty, or what to say of a process that used CPU time all the same.
  std::string Resume();
  const std::string& violation() const { return process_.violation(); }

 private:
  // A profiler's tools work in the process of a CUDA library, which is no candidate then.
  bool may_be_stopped() const { return candidate_ || !cuda_; }
  explicit LibraryWorker(WorkerProcess process) : process_(std::move(process)) {}
  Result<WorkerAnswer> Ask(std::uint32_t operation, std::initializer_list<std::int64_t> arguments,
                           const std::string& text = {}, Timed timed = Timed::kNo);

  WorkerProcess process_;
  std::string configuration_, conditions_, sha256_;
  int threads_ = 1, idle_threads_ = 1;
  bool cuda_ = false, candidate_ = false;
  std::int64_t paused_cpu_ns_ = 0;
};

// A worker awake for one request.
class Awake {
 public:
  explicit Awake(LibraryWorker& worker) : worker_(&worker), reason_(worker.Resume()) {}
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;
  ~Awake() { End(); }

  const std::string& reason() const { return reason_; }  // Resume's
  void End() {
    if (worker_ != nullptr) worker_->Pause();
    worker_ = nullptr;
  }

 private:
  LibraryWorker* worker_;
  std::string reason_;
};

}  // namespace crucible::eigh
