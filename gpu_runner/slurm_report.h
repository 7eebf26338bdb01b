// slurm_report.h: how the gpu_run on a Slurm node tells the one that called srun what happened.
//
// One small JSON file in the history's folder, on a file system that both see. The caller makes it
// empty, the node writes the job's row into it at every step (waiting there, started, ended), and
// the caller alone writes the history: a database must not be shared over a network. The exit code
// of srun says less: it cannot tell a limit that ran out from a job that ended with 124.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "gpu_runner/history.h"

namespace crucible {

struct SlurmReport {
  bool arrived = false;    // the gpu_run on the node has spoken
  JobRow row;              // its runner is a process of the node
  std::string node, step;  // "node1", "12.0"
};

Result<> CreateReport(const std::filesystem::path& file);
// On the node. kUnavailable when the file is not there: the folder is not shared.
Result<> CheckReport(const std::filesystem::path& file);
// In place, so that a reader's network file system never keeps a removed file in mind.
Result<> WriteReport(const std::filesystem::path& file, const JobRow& row);
// Half written or not there: not arrived. Read again.
SlurmReport ReadReport(const std::filesystem::path& file);

}  // namespace crucible
