#include "checks/harness/handover.h"

#include <sched.h>

#include "checks/harness/machine.h"
#include "checks/harness/shared_arena.h"

namespace crucible {
namespace {
constexpr int kWaitMs = 1000;
constexpr int kSpinsBeforeYield = 1024;
}  // namespace

Handover::Handover() : echo_([this] { Echo(); }) {}

Handover::~Handover() {
  stop_ = true;
  request_.store(++turn_);
  go_.store(turn_);
  FutexWake(request_);
  FutexWake(go_);
  echo_.join();
}

std::int64_t Handover::MeasureNs() {
  request_.store(++turn_);
  FutexWake(request_);
  for (int spin = 0; ready_.load() != turn_; ++spin)
    spin < kSpinsBeforeYield ? CpuPause() : (void)::sched_yield();
  const std::int64_t start = MonotonicNs();
  go_.store(turn_);
  FutexWake(go_);
  for (std::uint32_t done; (done = done_.load()) != turn_;) FutexWait(done_, done, kWaitMs);
  return MonotonicNs() - start;
}

void Handover::Echo() {
  for (std::uint32_t turn = 0; !stop_;) {
    if (request_.load() == turn) {
      FutexWait(request_, turn, kWaitMs);
      continue;
    }
    turn = request_.load();
    ready_.store(turn);
    AwaitValue(go_, turn);
    done_.store(turn);
    FutexWake(done_);
  }
}

}  // namespace crucible
