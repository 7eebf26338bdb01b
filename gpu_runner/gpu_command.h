// gpu_command.h: `crucible gpu run|status|history|cancel|logs|unpin`, with everything but the
// main().
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

// The words after `crucible gpu`. Results to stdout, messages to stderr; returns the exit code.
int GpuCommand(const std::vector<std::string>& words);

// `gpu_run broker`: serves jobs to sandboxes, see broker.h.
int BrokerCommand(const std::vector<std::string>& words);

// Devices of this machine, who holds each and who waits, in turn order.
Result<> PrintGpuStatus(bool json, std::ostream& out);
// The newest `count` jobs of this repository's history, newest first.
Result<> PrintGpuHistory(int count, bool json, std::ostream& out);
// Asks the gpu_run in charge of a waiting or running job to end it (as Ctrl-C and SIGTERM would).
Result<> CancelGpuJob(const std::string& job, bool json, std::ostream& out);
// The kept output of a job; with `follow`, until the job has ended.
Result<> PrintGpuLog(const std::string& job, bool follow, std::ostream& out);
// Gives the GPUs' SM clocks free that `--clocks pin` locked. Only for the devices it did lock.
Result<> UnpinGpuClocks(bool json, std::ostream& out);

}  // namespace crucible
