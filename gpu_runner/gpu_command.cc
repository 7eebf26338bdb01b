#include "gpu_runner/gpu_command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "gpu_runner/broker_client.h"
#include "gpu_runner/broker_message.h"
#include "gpu_runner/profile.h"
#include "gpu_runner/run_job.h"
#include "gpu_runner/slurm.h"

namespace crucible {
namespace {

constexpr char kGpuHelp[] = R"(usage: crucible gpu COMMAND

  run [OPTIONS] -- CMD   run CMD when its turn comes (the same as gpu_run; see its --help)
  status [--json]        each device: who holds it, who waits
  history [-n N] [--json]  the newest jobs, newest first (default 20)
  cancel ID [--json]     end a waiting or running job
  logs ID [-f]           the kept output of a job; -f: until it ends
  unpin [--json]         give back the clocks that --clocks pin locked
)";

// `gpu_run status` is `crucible gpu status`, for who has gpu_run alone. `gpu_run -- status` runs a
// command of that name.
bool IsView(const std::string& word) {
  constexpr std::string_view kViews[] = {"status", "history", "cancel", "logs", "unpin"};
  return std::find(std::begin(kViews), std::end(kViews), word) != std::end(kViews);
}

int Run(const std::vector<std::string>& words) {
  if (!words.empty() && IsView(words[0])) return GpuCommand(words);
  if (!words.empty() && words[0] == "broker")
    return BrokerCommand({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "--srun") return BecomeSrun({words.begin() + 1, words.end()});
  const auto options = ParseRunOptions(words);
  if (!options) {
    std::fprintf(stderr, "%s\n", options.error().text.c_str());
    return ExitCode(options.error());
  }
  if (options->help) {
    std::fputs(RunHelp(), stdout);
    return 0;
  }
  const char* broker = std::getenv(kBrokerVariable);
  const auto run = [&](const std::vector<std::string>& plain, const RunOptions& meant) {
    if (broker != nullptr && *broker != '\0') return RunThroughBroker(broker, plain, meant);
    return RunOnBackend(meant);
  };
  return options->profile.empty() ? run(words, *options) : RunProfiled(words, *options, run);
}

struct Words {
  bool json = false, follow = false;
  int count = 20;
  std::string job;
};

Result<Words> Parse(const std::vector<std::string>& words) {
  Words parsed;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--json") {
      parsed.json = true;
    } else if (word == "-f" && words[0] == "logs") {
      parsed.follow = true;
    } else if (word == "-n" && words[0] == "history") {
      const std::string number = i + 1 < words.size() ? words[++i] : "";
      const auto done = std::from_chars(number.data(), number.data() + number.size(), parsed.count);
      if (done.ec != std::errc() || done.ptr != number.data() + number.size() || parsed.count < 1)
        return Fail(ErrorKind::kUsage, "gpu history -n", number, "it is a number above 0");
    } else if (!word.starts_with("-") && parsed.job.empty() &&
               (words[0] == "cancel" || words[0] == "logs")) {
      parsed.job = word;
    } else {
      return Fail(ErrorKind::kUsage, "gpu " + words[0], word, "there is no such option",
                  "see `gpu_run --help` or `crucible gpu --help`");
    }
  }
  if (parsed.job.empty() && (words[0] == "cancel" || words[0] == "logs"))
    return Fail(ErrorKind::kUsage, "gpu", words[0], "it needs a job's id", "see `gpu_run history`");
  return parsed;
}

Result<> Dispatch(const std::vector<std::string>& words) {
  if (words.size() == 2 && (words[1] == "--help" || words[1] == "-h")) {
    std::fputs(kGpuHelp, stdout);
    return {};
  }
  CRUCIBLE_ASSIGN(const Words parsed, Parse(words));
  if (words[0] == "status") return PrintGpuStatus(parsed.json, std::cout);
  if (words[0] == "history") return PrintGpuHistory(parsed.count, parsed.json, std::cout);
  if (words[0] == "cancel") return CancelGpuJob(parsed.job, parsed.json, std::cout);
  if (words[0] == "logs") return PrintGpuLog(parsed.job, parsed.follow, std::cout);
  if (words[0] == "unpin") return UnpinGpuClocks(parsed.json, std::cout);
  return Fail(ErrorKind::kUsage, "gpu", words[0], "there is no such command",
              "see `gpu_run --help` or `crucible gpu --help`");
}

}  // namespace

int GpuCommand(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "run") return Run({words.begin() + 1, words.end()});
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs(kGpuHelp, words.empty() ? stderr : stdout);
    return words.empty() ? 2 : 0;
  }
  const Result<> done = Dispatch(words);
  if (done) return 0;
  std::cout.flush();
  std::fprintf(stderr, "%s\n", done.error().text.c_str());
  return ExitCode(done.error());
}

}  // namespace crucible
