#include "gpu_runner/turn.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"
#include "gpu_runner/nvml.h"
#include "gpu_runner/run_job.h"
#include "gpu_runner/waiter_line.h"

namespace crucible {
namespace {

constexpr std::int64_t kAnnounceEveryMs = 30'000;

std::string HolderOf(const DeviceFolder& folder) {
  std::optional<HolderRecord> record = folder.ReadHolder();
  if (record && record->released) record.reset();
  return DescribeHolder(record, SystemClock().UnixMs());
}

std::string Situation(const TurnRequest& request, const QueuePlace& place) {
  std::string names;
  for (const Device& device : *request.devices) names += (names.empty() ? "" : " or ") + device.id;
  std::string text = "waiting for " + names + ": ";
  for (std::size_t i = 0; i < request.folders->size(); ++i)
    text += fmt::format("{}{}held by {}", i == 0 ? "" : "; ",
                        request.folders->size() > 1 ? (*request.devices)[i].id + " " : "",
                        HolderOf((*request.folders)[i]));
  return text + fmt::format("; {} before this call in the queue", place.Ahead());
}

// Until a wake, a signal, the death of a holder we come right after, or the time is over. The
// signal that ended the wait, if one did.
std::optional<int> Sleep(const TurnRequest& request, QueuePlace* place, std::int64_t wait_ms) {
  std::vector<pollfd> items{{request.signals->fd(), POLLIN, 0}};
  for (const int fd : place->wake_descriptors()) items.push_back({fd, POLLIN, 0});
  std::vector<UniqueFd> holders;
  for (const std::size_t i : place->NextInLine()) {
    const auto record = (*request.folders)[i].ReadHolder();
    if (!record || record->released || !IsAlive(record->runner)) continue;
    holders.push_back(OpenPidfd(record->runner.pid));
    if (holders.back().valid()) items.push_back({holders.back().get(), POLLIN, 0});
  }
  ::poll(items.data(), items.size(), static_cast<int>(wait_ms));
  place->DrainWakes();
  return request.signals->NextStop();
}

}  // namespace

void Say(const std::string& text) {
  const std::string line = text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Result<std::string> ForeignProcesses(const Nvml& nvml, const std::string& uuid, int wait_ms,
                                     const std::function<bool()>& stop) {
  const Nvml::Gpu* gpu = nvml.Find(uuid);
  const std::int64_t until = QueueNowMs() + wait_ms;
  for (;;) {
    CRUCIBLE_ASSIGN(const std::vector<GpuProcess> processes, nvml.ComputeProcesses(*gpu));
    if (processes.empty() || stop()) return std::string();
    if (QueueNowMs() >= until) {
      std::string text;
      for (const GpuProcess& process : processes) {
        std::string name = ReadFile(fmt::format("/proc/{}/comm", process.pid)).value_or("");
        while (!name.empty() && name.back() == '\n') name.pop_back();
        text += fmt::format("{}pid {} ({})", text.empty() ? "" : ", ", process.pid,
                            name.empty() ? "not visible from here" : name);
      }
      return text;
    }
    SystemClock().SleepFor(std::chrono::milliseconds(20));
  }
}

Result<Turn> WaitForTurn(const TurnRequest& request) {
  const RunOptions& options = *request.options;
  const char* yield = std::getenv("CRUCIBLE_GPU_YIELD");
  const Claim claim{options.priority, options.limit_ms.value_or(0),
                    options.yield || (yield != nullptr && std::string_view(yield) == "1"),
                    request.job};
  CRUCIBLE_ASSIGN(QueuePlace place,
                  QueuePlace::Join(request.lock_directory, *request.folders, claim));
  std::int64_t announce_at_ms = 0;
  for (;;) {
    CRUCIBLE_ASSIGN(std::optional<Taken> taken, place.TryTake());
    if (taken) return Turn{taken->device, std::move(taken->lock), 0, "", taken->sequence};
    if (place.IsLost()) {  // somebody cleared the folder: the end of the queue, and its start again
      if (!options.quiet) Say("gpu_run: the ticket of this call has gone; it queues again");
      CRUCIBLE_ASSIGN(place, QueuePlace::Join(request.lock_directory, *request.folders, claim));
      continue;
    }
    if (announce_at_ms == 0) request.waiting();
    const std::int64_t now = QueueNowMs();
    std::int64_t wait_ms = kRecheckMs;
    if (options.queue_limit_ms) {
      const std::int64_t left = request.since_ms + *options.queue_limit_ms - now;
      if (left <= 0) {
        Say(fmt::format("gpu_run: the turn did not come within {}; {}",
                        FormatDuration(*options.queue_limit_ms), Situation(request, place)));
        return Turn{0, {}, kExitQueueLimit, "queue_limit"};
      }
      wait_ms = std::min(wait_ms, left);
    }
    if (now >= announce_at_ms) {
      if (!options.quiet) Say("gpu_run: " + Situation(request, place));
      announce_at_ms = now + kAnnounceEveryMs;
    }
    if (const auto stop = Sleep(request, &place, wait_ms))
      return Turn{0, {}, 128 + *stop, "cancelled"};
  }
}

}  // namespace crucible
