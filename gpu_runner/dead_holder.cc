#include "gpu_runner/dead_holder.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/process_identity.h"
#include "gpu_runner/bookkeeper.h"
#include "gpu_runner/queue.h"
#include "gpu_runner/survivors.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr int kSurvivorMs = 5000;

bool IsOfADeadRunner(const std::optional<HolderRecord>& record) {
  return record && !record->released && !IsAlive(record->runner);
}

}  // namespace

Result<> CleanUpAfterDead(const DeviceFolder& folder) {
  const auto last = folder.ReadHolder();
  if (!last || last->released) return {};
  const std::vector<pid_t> left = KillSurvivors(*last, kSurvivorMs);
  if (!left.empty())
    return Fail(
        ErrorKind::kConflict, "start on", folder.device(),
        fmt::format("process {} of the job {} before it cannot be ended", left.front(), last->job),
        "end it by hand (it may be another user's), then call again");
  Bookkeeper::Lost(*last);
  return {};
}

void SweepDeadHolders(const fs::path& lock_directory) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(lock_directory, ignored)) {
    if (!fs::exists(item.path() / "holder", ignored)) continue;
    const auto folder = DeviceFolder::Open(lock_directory, item.path().filename().string());
    if (!folder || !IsOfADeadRunner(folder->ReadHolder())) continue;
    auto lock = folder->TryLock();
    if (!lock || !lock->valid()) continue;  // its holder does it
    auto record = folder->ReadHolder();     // again: it may have changed before the lock
    if (IsOfADeadRunner(record) && CleanUpAfterDead(*folder)) {
      record->released = true;
      (void)folder->WriteHolder(*record);
    }
    lock->Reset();
    WakeNext(lock_directory, *folder);
  }
}

}  // namespace crucible
