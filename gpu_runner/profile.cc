#include "gpu_runner/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>

#include "base/files.h"
#include "base/subprocess.h"
#include "gpu_runner/profile_summary.h"
#include "gpu_runner/run_job.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr char kCudaNcu[] = "/usr/local/cuda/bin/ncu";
constexpr const char* kSections[] = {
    "SpeedOfLight", "MemoryWorkloadAnalysis", "SchedulerStats", "WarpStateStats", "LaunchStats",
    "Occupancy",    "SourceCounters"};
constexpr std::size_t kMaxPageBytes = 64u << 20;

Result<fs::path> FindNcu() {
  auto found = FindExecutable("ncu");
  if (!found) found = FindExecutable(kCudaNcu);
  if (found) return found;
  return Fail(ErrorKind::kNotFound, "profile", "",
              fmt::format("Nsight Compute (ncu) is not on PATH, nor is there {}", kCudaNcu),
              "install nsight-compute, or add its folder to PATH");
}

tl::unexpected<Error> NoProfile(std::string_view cause, std::string_view next) {
  return Fail(ErrorKind::kUnavailable, "profile", "", cause, next);
}

// Why ncu left no report, by its own log.
tl::unexpected<Error> WhyNoReport(const ProfilePlan& plan) {
  const std::string log = ReadFile(plan.log).value_or("");
  if (log.find("ERR_NVGPUCTRPERM") != std::string::npos)
    return NoProfile("this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
                     "run as root, give the container SYS_ADMIN, or load the driver with "
                     "NVreg_RestrictProfilingToAdminUsers=0");
  if (log.find("No kernels were profiled") != std::string::npos)
    return NoProfile("the command launched no kernel that was to be measured",
                     "check it without --profile, and --profile-kernel");
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("==ERROR=="))
      return NoProfile("ncu:" + line.substr(9), "see " + plan.log.string());
  return NoProfile("ncu left no report", "see " + plan.log.string());
}

Result<std::string> Page(const fs::path& ncu, const ProfilePlan& plan,
                         std::vector<std::string> words) {
  std::vector<std::string> argv{ncu.string(), "--import", plan.report.string(), "--csv"};
  argv.insert(argv.end(), words.begin(), words.end());
  CRUCIBLE_ASSIGN(const Captured run, RunCaptured({.argv = argv}, seconds(300), {}, kMaxPageBytes));
  if (!run.status.ok() || run.timed_out)
    return NoProfile(fmt::format("ncu could not read its report: {}",
                                 run.err.empty() ? run.status.Describe() : run.err),
                     "open " + plan.report.string() + " with ncu-ui");
  return run.out;
}

// gpu_run's words without those of the profile, before the new command.
std::vector<std::string> PlainWords(const std::vector<std::string>& words,
                                    const RunOptions& options,
                                    const std::vector<std::string>& command) {
  std::vector<std::string> plain;
  const auto end = words.end() - std::ssize(options.command);
  for (auto word = words.begin(); word != end; ++word) {
    if (*word == "--no-summary") continue;
    if (!word->starts_with("--profile")) {
      plain.push_back(*word);
    } else if (word->find('=') == std::string::npos && word + 1 != end) {
      ++word;  // its value
    }
  }
  if (!plain.empty() && plain.back() == "--") plain.pop_back();
  plain.insert(plain.end(), {"--say-clocks", "--"});  // for a gpu_run on a node or behind a broker
  plain.insert(plain.end(), command.begin(), command.end());
  return plain;
}

}  // namespace

Result<ProfilePlan> PlanProfile(const RunOptions& options) {
  CRUCIBLE_ASSIGN(const fs::path ncu, FindNcu());
  ProfilePlan plan;
  plan.report = fs::absolute(options.profile);
  if (plan.report.extension() != ".ncu-rep") plan.report += ".ncu-rep";
  plan.log = fs::path(plan.report).replace_extension(".log");
  plan.summary = fs::path(plan.report).replace_extension(".txt");
  // By the command, so that it is also so on another node or behind a broker.
  plan.command = {"env",
                  kProfiledVariable + std::string("=1"),
                  ncu.string(),
                  "--clock-control",
                  "none",
                  "--target-processes",
                  "all",
                  "--launch-count",
                  std::to_string(options.profile_launches)};
  if (!options.profile_kernel.empty())
    plan.command.insert(plan.command.end(), {"--kernel-name", "regex:" + options.profile_kernel});
  for (const char* section : kSections)
    plan.command.insert(plan.command.end(), {"--section", section});
  plan.command.insert(plan.command.end(),
                      {"--import-source", "yes", "--force-overwrite", "--export",
                       plan.report.string(), "--log-file", plan.log.string()});
  plan.command.insert(plan.command.end(), options.command.begin(), options.command.end());
  return plan;
}

Result<std::string> SummarizeProfile(const ProfilePlan& plan) {
  std::error_code ignored;
  if (!fs::exists(plan.report, ignored)) return WhyNoReport(plan);
  CRUCIBLE_ASSIGN(const fs::path ncu, FindNcu());
  CRUCIBLE_ASSIGN(const std::string details, Page(ncu, plan, {"--page", "details"}));
  // Without line information in the build there is no such view, and stalls are by instruction.
  auto source = Page(ncu, plan, {"--page", "source", "--print-source", "cuda,sass"});
  if (!source || source->find("\"Line No\"") == std::string::npos)
    source = Page(ncu, plan, {"--page", "source", "--print-source", "sass"});
  CRUCIBLE_ASSIGN(const auto kernels, ParseProfile(details, source.value_or("")));
  if (kernels.empty()) return WhyNoReport(plan);
  std::string text = RenderProfile(kernels);
  CRUCIBLE_TRY(WriteFileAtomically(plan.summary, text));
  return text;
}

int RunProfiled(const std::vector<std::string>& words, RunOptions options,
                const std::function<int(const std::vector<std::string>& words,
                                        const RunOptions& options)>& run) {
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "gpu_run: %s\n", error.text.c_str());
    return error.kind == ErrorKind::kNotFound ? kExitCannotRun : kExitRunnerFailed;
  };
  const auto plan = PlanProfile(options);
  if (!plan) return fail(plan.error());
  std::error_code ignored;
  for (const fs::path& old : {plan->report, plan->log, plan->summary}) fs::remove(old, ignored);
  const std::vector<std::string> plain = PlainWords(words, options, plan->command);
  options.command = plan->command;
  options.profile.clear();
  options.say_clocks = true;
  const int code = run(plain, options);
  const auto summary = SummarizeProfile(*plan);
  if (!summary) {
    if (code != 0 && !fs::exists(plan->log, ignored)) return code;  // it never came to the job
    const int failed = fail(summary.error());
    return code != 0 ? code : failed;
  }
  std::fprintf(stderr, "%sgpu_run: report %s, summary %s\n",
               options.no_summary ? "" : summary->c_str(), plan->report.c_str(),
               plan->summary.c_str());
  return code;
}

}  // namespace crucible
