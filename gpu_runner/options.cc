#include "gpu_runner/options.h"

#include <charconv>

namespace crucible {
namespace {

constexpr char kRunHelp[] =
    R"(usage: gpu_run [OPTIONS] -- COMMAND [ARGUMENTS...]
       gpu_run status | history | cancel ID | logs ID [-f] | unpin      (each with --json)
       gpu_run broker --help

Runs COMMAND when its turn on the device comes: one job at a time, whoever asks, from whichever
worktree. Waiting is first come, first served. A call made inside a running job runs at once.

  --device D          cpu, any (any GPU), an index as in nvidia-smi or a GPU's UUID, or several
                      of these joined by commas (the first that is free)
                      (default: any GPU; the CPU where there is none); also --gpu D
  --limit T           end the job when it has run for T: 500ms, 10s, 10m, 1h (default: no limit)
  --queue-limit T     give up when the turn has not come after T (default: wait)
  --priority P        high, normal or low (default normal); nobody is overtaken after 10 minutes
  --yield             let calls of the same class with a shorter --limit go first, for at most 10
                      minutes (also CRUCIBLE_GPU_YIELD=1); nobody passes a call without it
  --clocks P          observe: record the device's clocks (default)
                      pin: lock the GPU's SM clock, again after every job (needs permission)
                      off: neither
  --clock-mhz N       the SM clock for --clocks pin (default: the highest supported)
  --toolchain NAME    run under that profile: CUDA root, host compiler, environment (default:
                      $CRUCIBLE_TOOLCHAIN, or the caller's environment as it is)
  --toolchain-file F  where profiles are (default $CRUCIBLE_TOOLCHAIN_FILE, or
                      ~/.config/crucible/toolchains.toml)
  --backend B         local: this machine's queue (default)
                      slurm: one srun per job (see docs/gpu_run.md; also CRUCIBLE_GPU_BACKEND)
  --log               keep a copy of the job's output for `gpu_run logs` (also when
                      CRUCIBLE_MISSION_DIR is set)
  --share             start although processes outside the queue compute on the GPU
  --profile REPORT    measure the kernels with Nsight Compute: REPORT.ncu-rep, and its summary
  --profile-kernel R  only kernels whose name matches the regular expression R
  --profile-launches N  at most N launches (default 20): each is repeated some twenty times
  --quiet             say nothing while waiting
  --help              this text

Exit code: the job's own; 124 run limit, 75 queue limit, 128+N ended by signal N, 2 usage,
125 gpu_run itself failed, 126 the command cannot be run, 127 there is no such command.
The job gets CRUCIBLE_JOB_ID, CRUCIBLE_JOB_NONCE, CRUCIBLE_GPU_TOKEN and, on a GPU,
CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES. Locks are in $CRUCIBLE_LOCK_DIR (default
/run/lock/crucible), history is in $CRUCIBLE_HOME/log.sqlite.
)";

tl::unexpected<Error> Wrong(std::string_view option, std::string_view cause) {
  return Fail(ErrorKind::kUsage, "gpu_run", option, cause, "see `gpu_run --help`");
}

Result<Priority> ParsePriority(const std::string& word) {
  if (word == "high") return Priority::kHigh;
  if (word == "normal") return Priority::kNormal;
  if (word == "low") return Priority::kLow;
  return Wrong("--priority " + word, "it is high, normal or low");
}

Result<ClockPolicy> ParseClocks(const std::string& word) {
  if (word == "pin") return ClockPolicy::kPin;
  if (word == "observe") return ClockPolicy::kObserve;
  if (word == "off") return ClockPolicy::kOff;
  return Wrong("--clocks " + word, "it is pin, observe or off");
}

Result<int> ParseCount(const std::string& option, const std::string& word) {
  int value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || value <= 0)
    return Wrong(option + " " + word, "it is a whole number above 0");
  return value;
}

Result<> SetOption(const std::string& name, const std::string& value, RunOptions* options) {
  if (name == "--device" || name == "--gpu") {
    if (value.empty()) return Wrong(name, "it is empty");
    options->device = value;
  } else if (name == "--limit") {
    CRUCIBLE_ASSIGN(options->limit_ms, ParseDurationMs(value));
  } else if (name == "--queue-limit") {
    CRUCIBLE_ASSIGN(options->queue_limit_ms, ParseDurationMs(value));
  } else if (name == "--priority") {
    CRUCIBLE_ASSIGN(options->priority, ParsePriority(value));
  } else if (name == "--clocks") {
    CRUCIBLE_ASSIGN(options->clocks, ParseClocks(value));
  } else if (name == "--clock-mhz") {
    CRUCIBLE_ASSIGN(options->clock_mhz, ParseCount(name, value));
  } else if (name == "--profile") {
    if (value.empty()) return Wrong(name, "it is empty");
    options->profile = value;
  } else if (name == "--profile-kernel") {
    options->profile_kernel = value;
  } else if (name == "--profile-launches") {
    CRUCIBLE_ASSIGN(options->profile_launches, ParseCount(name, value));
  } else if (name == "--toolchain") {
    if (value.empty()) return Wrong(name, "it is empty");
    options->toolchain = value;
  } else if (name == "--toolchain-file") {
    if (value.empty()) return Wrong(name, "it is empty");
    options->toolchain_file = value;
  } else if (name == "--backend") {
    if (value != "local" && value != "slurm")
      return Wrong(name + " " + value, "it is local or slurm");
    options->backend = value;
  } else if (name == "--job-id") {
    options->job_id = value;
  } else if (name == "--report") {
    options->report = value;
  } else {
    return Wrong(name, "there is no such option");
  }
  return {};
}

}  // namespace

Result<std::int64_t> ParseDurationMs(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  double factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  const double result_ms = value * factor;
  if (parsed.ec != std::errc() || factor == 0 || !(result_ms >= 1) || result_ms > 1e12)
    return Wrong("time " + std::string(text),
                 "it is not a number above 0 with a unit ms, s, m or h");
  return static_cast<std::int64_t>(result_ms);
}

const char* PriorityName(Priority priority) {
  switch (priority) {
    case Priority::kHigh:
      return "high";
    case Priority::kNormal:
      return "normal";
    case Priority::kLow:
      return "low";
  }
  return "normal";
}

const char* RunHelp() { return kRunHelp; }

Result<RunOptions> ParseRunOptions(const std::vector<std::string>& words) {
  RunOptions options;
  std::size_t next = 0;
  for (; next < words.size(); ++next) {
    const std::string& word = words[next];
    if (word == "--") {
      ++next;
      break;
    }
    if (!word.starts_with("-")) break;  // the command, with no "--" before it
    if (word == "--help" || word == "-h") {
      options.help = true;
      return options;
    }
    if (word == "--log") {
      options.log = true;
      continue;
    }
    if (word == "--share") {
      options.share = true;
      continue;
    }
    if (word == "--quiet") {
      options.quiet = true;
      continue;
    }
    if (word == "--yield") {
      options.yield = true;
      continue;
    }
    if (word == "--say-clocks") {
      options.say_clocks = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      CRUCIBLE_TRY(SetOption(word.substr(0, equals), word.substr(equals + 1), &options));
      continue;
    }
    if (next + 1 == words.size()) {
      // Whether it is the value that is missing or the option: what a value would have done tells.
      const auto with_value = SetOption(word, "", &options);
      const bool known = with_value || with_value.error().text.find("no such") == std::string::npos;
      return Wrong(word, known ? "it needs a value" : "there is no such option");
    }
    CRUCIBLE_TRY(SetOption(word, words[++next], &options));
  }
  options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  if (options.command.empty() || options.command.front().empty())
    return Wrong("", "no command was given after --");
  return options;
}

}  // namespace crucible
