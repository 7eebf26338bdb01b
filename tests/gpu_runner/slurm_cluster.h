// slurm_cluster.h: a real Slurm of one node with one GPU that is not there, for tests.
//
// munged, slurmctld and slurmd from Debian's packages, as root, on loopback, on ports that were
// free, with everything they write in one folder. They are children of the test and die with it.
// The GPU is a device file; NVML is the fake one. share/slurm's prolog and epilog are installed,
// with an nvidia-smi that writes down how it was called.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/subprocess.h"

namespace crucible {

class SlurmCluster {
 public:
  // Empty when a cluster can be started here; else the reason why not.
  static std::string WhyNot();
  // kUnavailable, with the daemons' logs, when it does not come up in 30 s.
  static Result<std::unique_ptr<SlurmCluster>> Start();
  ~SlurmCluster();

  // For everything that talks to it: SLURM_CONF and a PATH.
  const std::map<std::string, std::string>& environment() const { return environment_; }
  // One of Slurm's commands; its output, or "error: ...".
  std::string Command(std::vector<std::string> words) const;
  bool IsIdle() const;  // no job waits, runs or is being cleaned up
  // Whether the controller has written that job to its disk, so that it outlives the controller.
  bool HasSaved(const std::string& job_name) const;
  std::string SmiCalls() const;
  std::string Logs() const;
  // SIGKILLs the daemon ("slurmctld" or "slurmd") and starts it again.
  Result<> KillAndRestart(const std::string& daemon);

 private:
  explicit SlurmCluster(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Result<> Configure();
  Result<> StartDaemon(const std::string& name);
  bool IsUp() const;

  std::filesystem::path folder_;
  std::string host_;
  std::map<std::string, std::string> environment_;
  std::map<std::string, Subprocess> daemons_;
};

}  // namespace crucible
