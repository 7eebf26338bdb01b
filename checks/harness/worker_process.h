// worker_process.h: a harness's end of the process that runs the code under test.
//
// The code under test never shares a process with what judges it: it has no descriptor to write a
// result to, it cannot read the seed, the expected answers or the other arm, and it cannot reach
// the clock that its own is compared with. Calls are made one at a time through a SharedArena.
// A worker that ends is the library's end: what it was stopped for is `violation`, a crash is an
// error, and nothing is restarted. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "checks/harness/machine.h"
#include "checks/harness/shared_arena.h"

namespace crucible {

struct WorkerAnswer {
  std::int64_t results[kWorkerArguments] = {};
  std::string text;
  // Of a timed operation, by the harness's clock: from "go" to "finished", and to the answer, for
  // which the outputs must be there. Waits for a CPU are in both: the worker's own threads can
  // cause them.
  std::int64_t finished_ns = 0, done_ns = 0;
  // CPU time that the worker's process had had by "go", by the kernel's count.
  std::int64_t cpu_at_go_ns = 0;
};

// How the harness waits for the end of a timed operation: asleep, so that every CPU is the worker's,
// or awake, where the work is a device's: being woken after a sleep as long as that can take a
// hundred microseconds, and would show as time that the worker keeps to itself.
enum class Timed { kNo, kAsleep, kAwake };

class WorkerProcess {
 public:
  // Starts `command`, which ends in a call of RunWorker (worker_loop.h).
  static Result<WorkerProcess> Start(std::vector<std::string> command, std::size_t arena_bytes);

  // One operation. kUsage with the worker's own words when it refused; kInternal when it ended:
  // then `violation` says whether it was stopped for a forbidden call.
  Result<WorkerAnswer> Call(std::uint32_t operation, std::initializer_list<std::int64_t> arguments,
                            const std::string& text = {}, Timed timed = Timed::kNo);

  SharedArena& arena() { return arena_; }
  pid_t pid() const { return process_.pid(); }
  std::int64_t CpuNs() const { return ProcessCpuNs(pid()); }
  // Holds all its threads where they are, whatever they do; returns once they are held.
  void Pause();
  void Resume();
  // What a secluded worker was stopped for; empty while there is nothing.
  const std::string& violation() const { return violation_; }
  // How a worker ended that was not stopped; empty while it runs.
  const std::optional<ExitStatus>& crash() const { return crash_; }

 private:
  WorkerProcess(Subprocess process, SharedArena arena)
      : process_(std::move(process)), arena_(std::move(arena)) {}
  bool Ended();
  tl::unexpected<Error> Gone(std::uint32_t operation);

  Subprocess process_;
  SharedArena arena_;
  std::uint32_t sequence_ = 0;
  std::string violation_;
  std::optional<ExitStatus> crash_;
};

// The program of that name beside the running one.
std::string WorkerProgram(const std::string& name);

}  // namespace crucible
