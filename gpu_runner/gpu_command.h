// gpu_command.h: `crucible gpu run|status|history|cancel|logs`, with everything but the main().
#pragma once

#include <string>
#include <vector>

namespace crucible {

// The words after `crucible gpu`. Results to stdout, messages to stderr; returns the exit code.
int GpuCommand(const std::vector<std::string>& words);

}  // namespace crucible
