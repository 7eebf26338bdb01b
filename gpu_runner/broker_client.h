// broker_client.h: gpu_run where the device is out of reach and CRUCIBLE_BROKER names a socket.
#pragma once

#include <string>
#include <vector>

#include "gpu_runner/options.h"

namespace crucible {

// Has the broker run the job with this process's stdin, stdout and stderr, hands signals on, and
// returns its exit code. `words` are gpu_run's as they were typed, `options` what they mean. Inside
// a job of that broker the command is run here. Call once a process, from the main thread.
int RunThroughBroker(const std::string& socket, const std::vector<std::string>& words,
                     const RunOptions& options);

}  // namespace crucible
