#include "checks/harness/worker_loop.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace crucible {
namespace {

constexpr int kWakeEveryMs = 1000;  // only to notice a harness that is gone

}  // namespace

Result<WorkerLoop> WorkerLoop::Attach() {
  CRUCIBLE_ASSIGN(SharedArena arena, SharedArena::Attach(UniqueFd(kWorkerMemoryFd)));
  return WorkerLoop(std::move(arena));
}

void WorkerLoop::SetText(const std::string& text) {
  const std::size_t bytes = std::min(text.size(), sizeof control().text - 1);
  std::memcpy(control().text, text.data(), bytes);
  control().text[bytes] = '\0';
}

void WorkerLoop::Run(const Operation& operation) {
  const pid_t harness = ::getppid();
  while (::getppid() == harness) {
    if (control().request.load(std::memory_order_acquire) == turn_) {
      FutexWait(control().request, turn_, kWakeEveryMs);
      continue;
    }
    turn_ = control().request.load(std::memory_order_acquire);
    const Result<> outcome = operation(control().operation);
    if (!outcome) SetText(outcome.error().text);
    control().results[0] = outcome ? 0 : 1;
    control().done.store(turn_, std::memory_order_release);
    FutexWake(control().done);
  }
}

void WorkerLoop::MarkFinished() {
  control().finished.store(turn_, std::memory_order_release);
  FutexWake(control().finished);
}

void WorkerLoop::AwaitGo() {
  control().ready.store(turn_, std::memory_order_release);
  AwaitValue(control().go, turn_);
}

}  // namespace crucible
