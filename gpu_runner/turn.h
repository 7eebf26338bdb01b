// turn.h: waiting for the turn on one of several devices, and saying so.
//
// Returns when the device is this call's, when the queue limit is over, or when a signal asks to
// stop. Sleeps in poll: on the queue's wakes, on signals, and on the death of the holder it comes
// right after. Call from the main thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "gpu_runner/device.h"
#include "gpu_runner/device_folder.h"
#include "gpu_runner/job_process.h"
#include "gpu_runner/options.h"
#include "gpu_runner/queue.h"

namespace crucible {

struct TurnRequest {
  const RunOptions* options = nullptr;
  std::filesystem::path lock_directory;
  const std::vector<Device>* devices = nullptr;
  const std::vector<DeviceFolder>* folders = nullptr;  // one a device
  std::string job;
  std::int64_t since_ms = 0;  // QueueNowMs of the call: the queue limit counts from it
  RunnerSignals* signals = nullptr;
  std::function<void()> waiting;  // once, when the first try failed
};

struct Turn {
  std::size_t device = 0;
  UniqueFd lock;               // invalid: there is no turn, and no job
  int exit_code = 0;           // then, what the call ends with
  const char* outcome = "";    // … and what its row says
  std::uint64_t sequence = 0;  // the number of its ticket on that device
};

Result<Turn> WaitForTurn(const TurnRequest& request);

// Processes that compute on the GPU and are none of this queue's, by pid and name, once those that
// are just ending have had `wait_ms`; empty: none. A pid of another container has no name here.
// kUnavailable: NVML does not say. `stop` is asked meanwhile and ends the wait.
Result<std::string> ForeignProcesses(const Nvml& nvml, const std::string& uuid, int wait_ms,
                                     const std::function<bool()>& stop);

// One write to stderr, so that lines of several callers on one terminal do not mix.
void Say(const std::string& text);

UniqueFd OpenPidfd(pid_t pid);

}  // namespace crucible
