// handover.h: what it costs to wake another thread, let it do nothing, and be woken, on this
// machine as it is now.
//
// A worker's calls are seen from outside with this on top. It is measured between two threads of
// the harness, where the code under test has no say in it. Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace crucible {

class Handover {
 public:
  Handover();  // the thread takes over the caller's CPU set
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;
  ~Handover();

  // Nanoseconds from "go" to being awake again after "done", as for a worker's timed operation.
  std::int64_t MeasureNs();

 private:
  void Echo();

  std::atomic<std::uint32_t> request_{0}, ready_{0}, go_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::uint32_t turn_ = 0;
  std::thread echo_;
};

}  // namespace crucible
