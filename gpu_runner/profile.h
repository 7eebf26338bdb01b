// profile.h: `gpu_run --profile REPORT -- CMD`: Nsight Compute in the device's queue.
//
// ncu runs the command as the job, with --clock-control none, so that it leaves the clocks to the
// queue, which sets its own again after every job; the report is kept and summarised in text beside
// it. ncu repeats each kernel some twenty times, so only so many launches are measured.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu_runner/options.h"

namespace crucible {

// "1" in the environment of a command that is profiled.
inline constexpr char kProfiledVariable[] = "CRUCIBLE_PROFILED";

struct ProfilePlan {
  std::filesystem::path report;   // REPORT.ncu-rep
  std::filesystem::path log;      // what ncu says: the report's name with .log
  std::filesystem::path summary;  // … with .txt
  std::vector<std::string> command;
};

// kNotFound where there is no ncu: on PATH, or in CUDA's usual folder.
Result<ProfilePlan> PlanProfile(const RunOptions& options);

// The text for a report, by asking ncu (which needs no device for it). kUnavailable says why there
// is none: no permission for the counters, no kernel launched, or ncu's own words.
Result<std::string> SummarizeProfile(const ProfilePlan& plan);

// `options.profile` is set. `run` gets words and options that say the same without it and returns
// the job's exit code, which is returned, or 125 when there is no profile. The summary goes to
// stderr.
int RunProfiled(const std::vector<std::string>& words, RunOptions options,
                const std::function<int(const std::vector<std::string>& words,
                                        const RunOptions& options)>& run);

}  // namespace crucible
