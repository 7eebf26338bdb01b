#include "gpu_runner/slurm_command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "gpu_runner/token.h"

namespace crucible {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;
constexpr int kLowNice = 1000;  // behind the thousand next callers, where Slurm counts them

void Add(std::vector<std::string>* words, std::initializer_list<std::string> more) {
  words->insert(words->end(), more);
}

const char* PolicyName(ClockPolicy policy) {
  switch (policy) {
    case ClockPolicy::kPin:
      return "pin";
    case ClockPolicy::kObserve:
      return "observe";
    case ClockPolicy::kOff:
      return "off";
  }
  return "observe";
}

// The options of the gpu_run on the node.
void AddNodeWords(const RunOptions& options, std::vector<std::string>* words) {
  Add(words, {"--device", options.device == "cpu" ? "cpu" : "any"});
  if (options.limit_ms) Add(words, {"--limit", fmt::format("{}ms", *options.limit_ms)});
  if (options.queue_limit_ms)
    Add(words, {"--queue-limit", fmt::format("{}ms", *options.queue_limit_ms)});
  Add(words, {"--priority", PriorityName(options.priority)});
  Add(words, {"--clocks", PolicyName(options.clocks)});
  if (options.clock_mhz) Add(words, {"--clock-mhz", std::to_string(*options.clock_mhz)});
  if (!options.toolchain.empty()) Add(words, {"--toolchain", options.toolchain});
  if (!options.toolchain_file.empty())
    Add(words, {"--toolchain-file", std::filesystem::absolute(options.toolchain_file).string()});
  if (options.log) Add(words, {"--log"});
  if (options.share) Add(words, {"--share"});
  if (options.quiet) Add(words, {"--quiet"});
  if (options.say_clocks) Add(words, {"--say-clocks"});
}

}  // namespace

std::string ProcessEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

SlurmPlace WhereInSlurm(const Environment& environment) {
  if (environment("SLURM_JOB_ID").empty()) return SlurmPlace::kOutside;
  if (environment("SLURM_STEP_ID").empty()) return SlurmPlace::kAllocation;
  // The token is proved where the job runs; a bad one waits at the node's lock like everybody.
  return environment(kTokenVariable).empty() ? SlurmPlace::kStep : SlurmPlace::kOwnJob;
}

std::string SlurmJobName(const std::string& job) { return "gpu_run-" + job; }

Result<std::vector<std::string>> SrunWords(const RunOptions& options, SlurmPlace place,
                                           const std::string& job,
                                           const std::filesystem::path& report,
                                           const std::filesystem::path& gpu_run,
                                           const Environment& environment) {
  if (!options.device.empty() && options.device != "any" && options.device != "cpu")
    return Fail(ErrorKind::kUsage, "gpu_run --backend slurm --device", options.device,
                "Slurm chooses the GPU",
                "use any or cpu, or a kind of GPU by CRUCIBLE_SLURM_OPTIONS=--gres=gpu:TYPE:1");
  std::vector<std::string> words = {"srun",       "--quiet",    "--nodes=1",
                                    "--ntasks=1", "--mpi=none", "--job-name=" + SlurmJobName(job)};
  // A CPU job is for timing: nobody else on that node meanwhile.
  if (options.device != "cpu")
    Add(&words, {"--gres=gpu:1"});
  else if (place == SlurmPlace::kOutside)
    Add(&words, {"--exclusive"});
  if (place == SlurmPlace::kStep) Add(&words, {"--overlap"});
  if (place == SlurmPlace::kOutside) {
    // For the case that everything of ours is killed: Slurm ends the job some minutes later.
    if (options.limit_ms)
      Add(&words, {fmt::format("--time={}", (*options.limit_ms + kMinuteMs - 1) / kMinuteMs + 2)});
    // Only an administrator can raise a job's priority, so high is as normal here.
    if (options.priority == Priority::kLow) Add(&words, {fmt::format("--nice={}", kLowNice)});
  }
  std::istringstream more(environment("CRUCIBLE_SLURM_OPTIONS"));
  for (std::string word; more >> word;) words.push_back(word);
  Add(&words,
      {gpu_run.string(), "--backend", "local", "--job-id", job, "--report", report.string()});
  AddNodeWords(options, &words);
  Add(&words, {"--"});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

std::string DeviceOfStep(const std::string& device, const Environment& environment) {
  const std::string given = environment("CUDA_VISIBLE_DEVICES");
  if (device == "cpu" || given.empty() || given == "NoDevFiles") return device;
  return given;
}

}  // namespace crucible
