// parallel.h: a loop over matrices on the harness's own threads.
//
// Threads are started and joined inside the call: outside it the process has no worker of the
// harness, so any thread found around a kernel call is the library's.
#pragma once

#include <cstdint>
#include <functional>

namespace crucible::eigh {

// Runs body(i) for i in [0, count) on up to `threads` threads (the caller is one of them).
void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

// Holds OpenBLAS at one thread (ParallelFor gives the parallelism) and puts the number back: a
// library under test may share the OpenBLAS of this process and have set its own.
class SingleThreadedBlas {
 public:
  SingleThreadedBlas();
  ~SingleThreadedBlas();
  SingleThreadedBlas(const SingleThreadedBlas&) = delete;
  SingleThreadedBlas& operator=(const SingleThreadedBlas&) = delete;

 private:
  int before_;
};

}  // namespace crucible::eigh
