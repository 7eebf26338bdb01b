// stop_watch.h: ends what a tool waits for when the mission is stopped or its time is over.
//
// A build or a judgement waits for its child (gpu_run) wherever it was started. While a StopWatch
// lives, a thread asks `stop` five times a second and, once it says so, sends SIGTERM to this
// process's children, which end their jobs in order. Private to this folder.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace crucible {

class StopWatch {
 public:
  explicit StopWatch(std::function<bool()> stop);
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  bool stopped() const { return stopped_; }

 private:
  void Watch();

  std::function<bool()> stop_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace crucible
