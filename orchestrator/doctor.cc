#include "orchestrator/doctor.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/counted.h"
#include "base/files.h"
#include "base/paths.h"
#include "base/subprocess.h"
#include "orchestrator/agents/sandbox.h"
#include "orchestrator/repository.h"
#include "results_log/store.h"

namespace crucible {
namespace {

constexpr std::int64_t kComfortableBytes = std::int64_t{2} << 30;
constexpr std::chrono::seconds kPatience{10};

// The line that says which version it is (nvcc's first four name its makers), else the first.
std::string VersionLine(const std::string& text) {
  const std::size_t release = text.find("release ");
  const std::size_t begin = release == std::string::npos ? 0 : text.rfind('\n', release) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// What a program says of its version, or what went wrong.
Finding Program(const std::string& what, const std::vector<std::string>& words, Health if_missing,
                const std::string& next) {
  const auto run = RunCaptured({.argv = words}, kPatience);
  if (!run) return {if_missing, what, run.error().text, next};
  if (!run->status.ok())
    return {if_missing, what, fmt::format("{} ended with {}", words[0], run->status.Describe()),
            next};
  return {Health::kOk, what, VersionLine(run->out), ""};
}

Finding Writable(const std::string& what, const Result<std::filesystem::path>& folder) {
  if (!folder) return {Health::kFail, what, folder.error().text, ""};
  const std::filesystem::path probe = *folder / ".crucible-doctor";
  if (const auto written = WriteFileAtomically(probe, ""); !written)
    return {Health::kFail, what, written.error().text, "make it writable for you"};
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  return {Health::kOk, what, folder->string(), ""};
}

void ExamineRepository(const std::filesystem::path& start, const std::string& branch,
                       std::vector<Finding>* findings) {
  auto repository = Repository::Open(start, branch);
  if (!repository) {
    findings->push_back({Health::kFail, "repository", repository.error().text, ""});
    return;
  }
  const auto tip = repository->MainTip();
  findings->push_back(
      tip ? Finding{Health::kOk, "repository",
                    fmt::format("{}, {} at {}", repository->common_directory().string(),
                                repository->main_branch(), tip->substr(0, 12)),
                    ""}
          : Finding{Health::kFail, "repository", tip.error().text, ""});
  const auto dirty = repository->DirtyPathsOfMain();
  if (dirty && !dirty->empty())
    findings->push_back(
        {Health::kWarn, "checkout of " + repository->main_branch(),
         fmt::format("{}, e.g. {}", Counted(dirty->size(), "uncommitted change"), dirty->front()),
         "commit or stash them before a launch"});
}

void ExamineState(const std::filesystem::path& start, std::vector<Finding>* findings) {
  const auto home = CrucibleHome(start);
  if (!home) return;  // told with the repository
  std::error_code ignored;
  if (!std::filesystem::exists(*home, ignored)) {
    findings->push_back({Health::kWarn, "state folder", home->string() + " is not there yet",
                         "`crucible init` makes it"});
    return;
  }
  findings->push_back(Writable("state folder", *home));
  const auto log = Store::OpenReadOnly(*home / "log.sqlite");
  findings->push_back(log ? Finding{Health::kOk, "results log", (*home / "log.sqlite").string(), ""}
                          : Finding{Health::kFail, "results log", log.error().text, ""});
  if (const auto free = FreeBytes(*home))
    findings->push_back({*free >= kComfortableBytes ? Health::kOk : Health::kWarn, "disk",
                         fmt::format("{} MiB free", *free >> 20),
                         *free >= kComfortableBytes ? "" : "builds and checkouts want 2 GiB"});
}

Finding Gpu() {
  Finding gpu =
      Program("gpu", {"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"},
              Health::kWarn, "only the CPU device can be used");
  if (gpu.health != Health::kOk) gpu.found = "none seen (nvidia-smi gives no answer)";
  return gpu;
}

}  // namespace

std::vector<Finding> Examine(const std::filesystem::path& start, const std::string& branch,
                             const std::filesystem::path& programs) {
  std::vector<Finding> findings;
  ExamineRepository(start, branch, &findings);
  ExamineState(start, &findings);
  findings.push_back(Writable("device locks", LockDirectory()));
  findings.push_back(
      Program("compiler", {"c++", "--version"}, Health::kFail, "install g++ (`./dev install`)"));
  findings.push_back(
      Program("cmake", {"cmake", "--version"}, Health::kFail, "install cmake (`./dev install`)"));
  findings.push_back(Program("ninja", {"ninja", "--version"}, Health::kWarn,
                             "install ninja-build (`./dev install`)"));
  for (const char* name : {"gpu_run", "crucible_check"}) {
    std::error_code ignored;
    if (!std::filesystem::exists(programs / name, ignored))
      findings.push_back({Health::kFail, name, "it is not beside crucible in " + programs.string(),
                          "`./dev build`"});
  }
  findings.push_back(Gpu());
  findings.push_back(
      Program("nvcc", {"nvcc", "--version"}, Health::kWarn, "CUDA targets cannot be built here"));
  if (const auto works = SandboxWorks(); works)
    findings.push_back({Health::kOk, "sandbox", "bubblewrap starts one", ""});
  else
    findings.push_back({Health::kWarn, "sandbox", works.error().text, ""});
  for (const char* name : {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      findings.push_back({Health::kOk, "provider", fmt::format("{} is set", name), ""});
  return findings;
}

}  // namespace crucible
