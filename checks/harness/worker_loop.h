// worker_loop.h: the worker's end: takes one operation after another from the shared memory.
//
// Ends when the harness is gone. results[0] of an answer is 0, or 1 with the reason in `text`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "checks/harness/shared_arena.h"

namespace crucible {

inline constexpr int kWorkerMemoryFd = 3;

class WorkerLoop {
 public:
  // Maps the memory the harness left on kWorkerMemoryFd.
  static Result<WorkerLoop> Attach();

  // One operation: reads control().arguments and .text, fills .results from [1] on and .text; an
  // error becomes the answer.
  using Operation = std::function<Result<>(std::uint32_t operation)>;
  // Never returns while the harness lives.
  void Run(const Operation& operation);

  // Inside an operation that is timed: returns the moment the harness says "go".
  void AwaitGo();
  // … and this says that what was timed is over.
  void MarkFinished();

  SharedArena& arena() { return arena_; }
  WorkerControl& control() { return arena_.control(); }
  void SetText(const std::string& text);

 private:
  explicit WorkerLoop(SharedArena arena) : arena_(std::move(arena)) {}

  SharedArena arena_;
  std::uint32_t turn_ = 0;
};

}  // namespace crucible
