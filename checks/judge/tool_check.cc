#include "checks/judge/tool_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <vector>

#include "base/subprocess.h"

namespace crucible::judge {
namespace {

constexpr std::size_t kMostFindings = 3;
constexpr std::size_t kLongestFinding = 160;

// Where a toolkit puts its tools when PATH does not name them.
constexpr char kCudaTools[] = "/usr/local/cuda/bin/";

Result<std::filesystem::path> FindTool(const std::string& name) {
  auto found = FindExecutable(name);
  if (!found && name.find('/') == std::string::npos) found = FindExecutable(kCudaTools + name);
  return found;
}

bool SaysError(const std::string& line) {
  return line.find("rror") != std::string::npos || line.find("nvalid") != std::string::npos;
}

}  // namespace

std::string Findings(const std::string& output) {
  std::vector<std::string> all, errors;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t start = line.find_first_not_of("= \t\r");
    if (start == std::string::npos) continue;
    line = line.substr(start, kLongestFinding);
    all.push_back(line);
    if (SaysError(line)) errors.push_back(line);
  }
  if (errors.empty() && all.size() > kMostFindings)
    all.erase(all.begin(), all.end() - kMostFindings);
  std::vector<std::string>& told = errors.empty() ? all : errors;
  told.resize(std::min(told.size(), kMostFindings));
  return fmt::format("{}", fmt::join(told, "; "));
}

CheckRow RunToolCheck(const ToolCheck& check, const Arm& arm, std::int64_t limit_ms) {
  CheckRow row{.name = check.name};
  const auto tool = FindTool(check.tool);
  if (!tool) {
    row.not_run = fmt::format("there is no {} on this machine", check.tool);
    row.result.pass = true;
    row.result.reason = "not run: " + row.not_run;
    return row;
  }
  std::vector<std::string> words = check.command;
  for (std::string& word : words)
    if (word == "{tool}") word = tool->string();
  auto argv = Substitute(words, arm);
  if (!argv) {
    row.result.reason = argv.error().text;
    return row;
  }
  const auto run = RunCaptured({.argv = std::move(*argv), .directory = arm.build},
                               std::chrono::milliseconds(limit_ms));
  if (!run) {
    row.result.reason = run.error().text;
  } else if (run->timed_out) {
    row.result.reason = fmt::format("did not end within {} s", limit_ms / 1000.0);
  } else if (!run->status.ok()) {
    row.result.reason = fmt::format("{} ended with {}: {}", check.tool, run->status.Describe(),
                                    Findings(run->out + "\n" + run->err));
  }
  row.result.pass = row.result.reason.empty();
  return row;
}

}  // namespace crucible::judge
