// dead_holder.h: what a SIGKILLed runner left, and who removes it.
//
// Its record in the device's folder says what to look for: processes with the job's nonce, the
// job's cgroup, a row without an end. The next holder of the device removes it before its job
// starts; where there is none, the end of any other job, or a look at the status, does.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "gpu_runner/device_folder.h"

namespace crucible {

// For who holds the device's lock. kConflict: a process of the dead job cannot be ended.
Result<> CleanUpAfterDead(const DeviceFolder& folder);

// The same for every device of the folder whose holder is dead and whose lock is free. What cannot
// be cleaned up stays as it is, for the next.
void SweepDeadHolders(const std::filesystem::path& lock_directory);

}  // namespace crucible
