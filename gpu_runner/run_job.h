// run_job.h: what `gpu_run` does, from the queue to the exit code.
//
// It reads like its steps: find the device, see whether this call is made inside a job, wait for
// the turn, clean up after a dead holder, run, leave the device clean, let the next one in, and
// only then finish the bookkeeping. Call once a process, from the main thread, before any other.
#pragma once

#include "gpu_runner/options.h"

namespace crucible {

inline constexpr int kExitRunLimit = 124, kExitQueueLimit = 75;
inline constexpr int kExitRunnerFailed = 125, kExitCannotRun = 126, kExitNoCommand = 127;

// Messages go to stderr, the job's output where the caller's goes. Returns the exit code.
int RunGpuJob(const RunOptions& options);

}  // namespace crucible
