// slurm.h: `gpu_run --backend slurm`: Slurm's queue instead of this machine's lock.
//
// Runs one srun to its end, tells the caller what it waits for, passes Ctrl-C and SIGTERM on to
// the job's step, and writes the job's history row from the node's report. The job itself runs
// under a gpu_run on the node (slurm_command.h). Inside a job of gpu_run's it is that job's nested
// call and no srun is started. Call once a process, from the main thread.
#pragma once

#include <string>
#include <vector>

#include "gpu_runner/options.h"

namespace crucible {

// Runs the job through what the options, else $CRUCIBLE_GPU_BACKEND, name: this machine's queue or
// Slurm's. Exit codes as RunGpuJob's.
int RunOnBackend(const RunOptions& options);

// Becomes `words` (an srun), which SIGTERM then ends with this process's parent: srun cancels its
// job on SIGTERM, and could not on SIGKILL. Returns only when it cannot.
int BecomeSrun(const std::vector<std::string>& words);

}  // namespace crucible
