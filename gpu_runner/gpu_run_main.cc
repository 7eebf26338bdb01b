// gpu_run: runs a command when its turn on a device comes. The same as `crucible gpu run`.
#include "base/output.h"
#include "gpu_runner/gpu_command.h"

int main(int argc, char** argv) {
  std::vector<std::string> words{"run"};
  words.insert(words.end(), argv + 1, argv + argc);
  return crucible::FinishOutput(crucible::GpuCommand(words));
}
