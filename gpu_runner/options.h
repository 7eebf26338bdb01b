// options.h: the words of `gpu_run` (and `crucible gpu run`), parsed.
//
// Pure: reads no file, environment or device. Hand-written and small, because gpu_run starts once
// for every job and must start fast.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crucible {

enum class Priority { kHigh = 0, kNormal = 1, kLow = 2 };
enum class ClockPolicy { kPin, kObserve, kOff };

struct RunOptions {
  std::string device;  // "cpu", "any", an index or a UUID; empty: any GPU, or the CPU where none is
  std::optional<std::int64_t> limit_ms;        // counted from the start of the job
  std::optional<std::int64_t> queue_limit_ms;  // counted from the call
  Priority priority = Priority::kNormal;
  ClockPolicy clocks = ClockPolicy::kObserve;
  std::optional<int> clock_mhz;  // for kPin; empty: the highest the device supports
  std::string toolchain;         // a profile's name; empty: $CRUCIBLE_TOOLCHAIN, or none
  std::string toolchain_file;
  std::string backend;         // "local" or "slurm"; empty: $CRUCIBLE_GPU_BACKEND, or local
  std::string job_id, report;  // given by --backend slurm to the gpu_run on the node
  bool log = false;            // keep a copy of the job's output
  bool share = false;          // start although others compute on the GPU
  bool quiet = false;          // no waiter lines
  bool yield = false;          // let shorter calls of the class go first; see queue.h
  std::string profile;         // where Nsight Compute's report goes; empty: no profile
  std::string profile_kernel;  // a regular expression; empty: every kernel
  int profile_launches = 20;   // at most so many are measured
  bool no_summary = false;     // the profile's summary is kept and not printed
  bool say_clocks = false;     // afterwards, what the clocks are: of RunProfiled
  bool help = false;
  std::vector<std::string> command;
};

// The words after the program's name. kUsage names the word that is wrong.
Result<RunOptions> ParseRunOptions(const std::vector<std::string>& words);

// "500ms", "10s", "10m", "1h" as milliseconds; a bare number is refused, because its unit is
// unclear.
Result<std::int64_t> ParseDurationMs(std::string_view text);

const char* PriorityName(Priority priority);
const char* RunHelp();

}  // namespace crucible
