#include "orchestrator/agents/mcp/call_queue.h"

#include <algorithm>

namespace crucible {

CallQueue::CallQueue(std::atomic<bool>* stop_call, Done done)
    : stop_call_(stop_call), done_(std::move(done)), thread_([this] { Work(); }) {}

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
    waiting_.clear();
    Stop(true);
  }
  changed_.notify_all();
  thread_.join();
}

bool CallQueue::Add(QueuedCall call) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back(std::move(call));
  }
  changed_.notify_all();
  return true;
}

void CallQueue::Cancel(const nlohmann::json& id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const QueuedCall& call) { return call.id == id; });
  if (running_ && running_->id == id) {
    running_->cancelled = true;
    Stop(true);
  }
}

std::optional<QueuedCall> CallQueue::Running() {
  const std::lock_guard lock(mutex_);
  return running_;
}

void CallQueue::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return end_ || !waiting_.empty(); });
    if (end_) return;
    running_ = std::move(waiting_.front());
    waiting_.pop_front();
    Stop(false);
    const QueuedCall call = *running_;
    lock.unlock();
    const ToolAnswer answer = call.tool->Call(call.arguments);
    lock.lock();
    const QueuedCall ended = *running_;
    running_.reset();
    lock.unlock();
    done_(ended, answer);
    lock.lock();
  }
}

}  // namespace crucible
