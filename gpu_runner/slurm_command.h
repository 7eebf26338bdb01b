// slurm_command.h: which srun a gpu_run becomes. Pure but for the environment it is given.
//
// Slurm decides who runs where and when; on the node a plain gpu_run then takes the node's own
// lock of that GPU, counts the limit (Slurm's is in minutes), records clocks and ends what the job
// leaves. So a job is `srun --gres=gpu:1 gpu_run --backend local ... -- COMMAND`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu_runner/options.h"

namespace crucible {

enum class SlurmPlace {
  kOutside,     // srun asks for an allocation
  kAllocation,  // in sbatch or salloc: srun starts a step in it
  kStep,    // in somebody's step: the same with --overlap, without which it would wait for itself
  kOwnJob,  // in a job of gpu_run's: no srun at all
};

using Environment = std::function<std::string(const char*)>;  // "" when not set
std::string ProcessEnvironment(const char* name);

SlurmPlace WhereInSlurm(const Environment& environment);

// kUsage: the options ask for what Slurm does not give, such as a GPU by its index.
Result<std::vector<std::string>> SrunWords(const RunOptions& options, SlurmPlace place,
                                           const std::string& job,
                                           const std::filesystem::path& report,
                                           const std::filesystem::path& gpu_run,
                                           const Environment& environment);

// On the node: "any" becomes the GPUs that Slurm gave to this step.
std::string DeviceOfStep(const std::string& device, const Environment& environment);

// The name of a job in Slurm: also how one is found whose id is not known yet.
std::string SlurmJobName(const std::string& job);

}  // namespace crucible
