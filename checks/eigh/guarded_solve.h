// guarded_solve.h: one call of a library that is not trusted.
//
// The library runs in a worker process that shares with this one the buffers of the call and
// nothing else. Before each call every buffer gets another address, the outputs and the workspace
// are poisoned with NaN, canaries lie around everything. The outputs are copied the moment the call
// returns, so what is judged is what existed then; the input is compared with a copy the library
// never saw; the thread count, the CPU set and the floating-point mode must be what they were; two
// independent clocks must agree. Not thread-safe: one call at a time is the point.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checks/eigh/library_worker.h"
#include "checks/harness/guarded_buffer.h"

namespace crucible::eigh {

struct Answer {
  std::vector<float> eigenvalues, eigenvectors;
  std::vector<std::int32_t> info;
};

struct CallReport {
  std::int64_t elapsed_ns = 0;    // as the worker took it
  std::int64_t finished_ns = 0;   // as this process saw it, hand-over included
  std::int64_t done_ns = 0;       // … until the outputs were copied
  std::int64_t copy_ns = 0;       // what the same copies took this process
  std::int64_t early_cpu_ns = 0;  // the worker's CPU time from before the input was there to "go"
  std::string violation;          // empty: the library kept the rules of a call
};

class GuardedSolver {
 public:
  // `secret` drives addresses and canaries. `pool_allowance`: threads a library may keep alive
  // between calls.
  GuardedSolver(LibraryWorker worker, int threads, int pool_allowance, std::uint64_t secret);

  // What the workspace would be; kUsage when it is beyond reason (16 GiB).
  Result<std::size_t> WorkspaceBytes(std::int64_t batch, std::int64_t n);

  // Solves `a` (batch n n floats; the caller's copy is never shown to the library). `cold` flushes
  // every buffer first, from here: the worker then has nothing to do before "go".
  CallReport Solve(std::int64_t batch, std::int64_t n, const std::vector<float>& a, bool cold,
                   Answer* answer);

  // Empty while the lent outputs still hold what the last call returned; else says that they were
  // written after it. Waits up to `patience_ms` for a late write.
  std::string LateWrite(const Answer& answer, int patience_ms) const;

  LibraryWorker& worker() { return worker_; }
  int threads() const { return threads_; }

 private:
  struct Lent {
    std::int64_t batch, n;
    GuardedBuffer input, eigenvalues, eigenvectors, info, workspace;
    std::span<std::byte> values_copy, vectors_copy, info_copy;
  };
  Result<> Lend(std::int64_t batch, std::int64_t n, std::size_t workspace_bytes);
  void PlaceAndPoison(const std::vector<float>& a);
  std::string Inspect(const std::vector<float>& a, int code, const Answer& answer) const;

  LibraryWorker worker_;
  int threads_;
  int thread_limit_;  // of the worker, after any call
  cpu_set_t cpus_;
  std::uint64_t secret_;
  std::unique_ptr<Lent> lent_;
};

}  // namespace crucible::eigh
