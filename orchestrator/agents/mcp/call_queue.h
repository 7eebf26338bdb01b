// call_queue.h: the calls of an MCP client, run one after the other on one thread. Private to this
// folder. Every method may be called from any thread; `done` runs on the queue's own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/json.h"
#include "orchestrator/agents/tools/tool.h"

namespace crucible {

struct QueuedCall {
  nlohmann::json id, progress_token;  // the token: null where none was given
  Tool* tool = nullptr;
  std::string arguments;
  bool cancelled = false;
};

class CallQueue {
 public:
  using Done = std::function<void(const QueuedCall& call, const ToolAnswer& answer)>;

  CallQueue(std::atomic<bool>* stop_call, Done done);
  ~CallQueue();  // stops the running call and forgets the others
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // False when so many wait that this one is not taken: a client must not fill our memory.
  bool Add(QueuedCall call);
  static constexpr std::size_t kMostWaiting = 32;
  void Cancel(const nlohmann::json& id);
  // What is running, and wants to be told of.
  std::optional<QueuedCall> Running();

 private:
  void Work();
  void Stop(bool stop) {
    if (stop_call_ != nullptr) *stop_call_ = stop;
  }

  std::atomic<bool>* stop_call_;
  Done done_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedCall> waiting_;
  std::optional<QueuedCall> running_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace crucible
