#include "gpu_runner/gpu_command.h"

#include <cstdio>

#include "gpu_runner/run_job.h"

namespace crucible {

int GpuCommand(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "run") {
    std::fputs("usage: crucible gpu run [OPTIONS] -- COMMAND; see `crucible gpu run --help`\n", stderr);
    return 2;
  }
  const auto options = ParseRunOptions({words.begin() + 1, words.end()});
  if (!options) {
    std::fprintf(stderr, "%s\n", options.error().text.c_str());
    return ExitCode(options.error());
  }
  if (options->help) {
    std::fputs(RunHelp(), stdout);
    return 0;
  }
  return RunGpuJob(*options);
}

}  // namespace crucible
