#include "orchestrator/agents/tools/stop_watch.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/process_identity.h"

namespace crucible {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(200);

std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return children;
  const pid_t own = ::getpid();
  while (const dirent* item = ::readdir(folder)) {
    const pid_t pid = std::atoi(item->d_name);
    if (pid > 0 && ParentOf(pid) == own) children.push_back(pid);
  }
  ::closedir(folder);
  return children;
}

}  // namespace

StopWatch::StopWatch(std::function<bool()> stop)
    : stop_(std::move(stop)), thread_([this] { Watch(); }) {}

StopWatch::~StopWatch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void StopWatch::Watch() {
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (stop_()) {
      stopped_ = true;
      // Again each time: a tool that goes on to its next step starts another child.
      for (const pid_t child : Children()) ::kill(child, SIGTERM);
    }
    ended_.wait_for(lock, kAskEvery, [this] { return end_; });
  }
}

}  // namespace crucible
