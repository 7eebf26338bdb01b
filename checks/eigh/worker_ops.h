// worker_ops.h: what the harness asks of the process that holds the library (worker_process.h).
//
// Offsets are into the shared memory. Times are nanoseconds.
#pragma once

#include <cstdint>

namespace crucible::eigh {

enum WorkerOp : std::uint32_t {
  kLoad = 1,    // text: the library's path -> text: its configuration
  kConditions,  // -> text: a JSON object of strings
  kWorkspace,   // batch, n, threads -> [1] bytes
  kTouch,       // offset, bytes: brings the pages in, so that no timed call has to
  kSweep,       // 1: everything, 0: the private caches -> [1] ns, [2] full / private cost
  kSolve,       // timed; SolveArgument -> SolveResult; text: a rule it saw broken
  kStart,       // what the process needs before it holds a library: a GPU's driver and its threads
};

enum SolveArgument {
  kBatch,
  kN,
  kThreads,
  kCold,
  kInput,
  kValues,
  kVectors,
  kInfo,
  kScratch,
  kScratchBytes,
  kValuesCopy,  // where the outputs go the moment the call returns
  kVectorsCopy,
  kInfoCopy,
  kSecret,  // a new number for each call
};

enum SolveResult { kRefused, kCode, kElapsedNs, kCounterNs, kModeChanged };

}  // namespace crucible::eigh
