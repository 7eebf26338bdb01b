#include "orchestrator/build_arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/files.h"
#include "base/hash.h"
#include "base/subprocess.h"

namespace crucible {
namespace {

constexpr std::uintmax_t kLargestSource = std::uintmax_t{64} << 20;

namespace fs = std::filesystem;

constexpr char kMarker[] = ".crucible-built";
constexpr std::size_t kMostOutputBytes = std::size_t{4} << 20;

// Files at or below `path`, relative to `root`. Symbolic links count by their text, so that a link
// to somewhere else is another source.
Result<> Collect(const fs::path& root, const std::string& path, std::set<std::string>* files) {
  std::error_code error;
  const fs::path start = root / path;
  const fs::file_status status = fs::symlink_status(start, error);
  if (!fs::exists(status)) return {};
  if (!fs::is_directory(status)) {
    files->insert(fs::path(path).lexically_normal().string());
    return {};
  }
  for (auto item = fs::recursive_directory_iterator(start, error);
       !error && item != fs::recursive_directory_iterator(); item.increment(error)) {
    if (item->is_directory() && !item->is_symlink()) {
      if (item->path().filename() == ".git") item.disable_recursion_pending();
      continue;
    }
    files->insert(item->path().lexically_relative(root).string());
  }
  if (error)
    return Fail(ErrorKind::kIo, "list sources in", start.string(), error.message(),
                "check its permissions");
  return {};
}

tl::unexpected<Error> BuildFailure(const BuildRequest& request,
                                   const std::vector<std::string>& words, const Captured& run) {
  const std::string command = fmt::format("{}", fmt::join(words, " "));
  if (run.status.ShellCode() == 124)
    return Fail(
        ErrorKind::kTimeout, "build", request.arm.name,
        fmt::format("'{}' ran past its limit of {} ms", command, request.target->build_limit_ms),
        "see " + request.log.string());
  const std::string lines = FirstErrorLines(run.err + run.out);
  return Fail(ErrorKind::kUnavailable, "build", request.arm.name,
              fmt::format("'{}' ended with {}{}{}", command, run.status.Describe(),
                          lines.empty() ? "" : ":\n", lines),
              "see " + request.log.string());
}

Result<> RunCommand(const BuildRequest& request, const std::vector<std::string>& words) {
  SubprocessSpec spec;
  spec.argv = request.runner;
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.directory = request.arm.source;
  spec.environment = request.environment;
  // Under a runner the limit counts from the job's start, so the runner keeps it.
  std::optional<std::chrono::milliseconds> limit;
  if (request.runner.empty()) limit = std::chrono::milliseconds(request.target->build_limit_ms);
  CRUCIBLE_ASSIGN(Captured run, RunCaptured(std::move(spec), limit, {}, kMostOutputBytes));
  if (run.timed_out) run.status = {124, 0};
  CRUCIBLE_TRY(
      AppendLine(request.log, fmt::format("$ {}\n{}{}", fmt::join(words, " "), run.out, run.err)));
  if (!run.status.ok()) return BuildFailure(request, words, run);
  return {};
}

}  // namespace

std::string FirstErrorLines(const std::string& output, int most) {
  std::istringstream stream(output);
  std::vector<std::string> errors, all;
  bool in_cmake_error = false;  // CMake says what is wrong in the indented lines below
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    all.push_back(line);
    in_cmake_error = line.starts_with("CMake Error") || (in_cmake_error && line.starts_with("  "));
    const bool says_error = in_cmake_error || line.find("error") != std::string::npos ||
                            line.find("Error") != std::string::npos ||
                            line.find("undefined reference") != std::string::npos ||
                            line.find("not found") != std::string::npos;
    if (says_error && static_cast<int>(errors.size()) < most) errors.push_back(line);
  }
  if (errors.empty())  // nothing that looks like an error: the end says most
    errors.assign(all.end() - std::min<std::ptrdiff_t>(most, std::ssize(all)), all.end());
  return fmt::format("{}", fmt::join(errors, "\n"));
}

Result<std::string> SourceHash(const Target& target, const fs::path& source) {
  std::set<std::string> files;
  for (const std::string& path : target.editable) CRUCIBLE_TRY(Collect(source, path, &files));
  std::string listing;
  for (const std::vector<std::string>& command : target.build_commands)
    listing += fmt::format("{}\n", fmt::join(command, " "));
  for (const std::string& file : files) {
    const fs::path path = source / file;
    std::error_code ignored;
    if (fs::is_symlink(path, ignored)) {
      listing += file + " -> " + fs::read_symlink(path, ignored).string() + "\n";
      continue;
    }
    // Read whole, here and by git: an agent could make it larger than this machine's memory, or a
    // pipe that nobody writes to.
    if (fs::file_size(path, ignored) > kLargestSource)
      return Fail(ErrorKind::kUsage, "hash", path.string(),
                  fmt::format("it is no ordinary file of at most {} MiB", kLargestSource >> 20),
                  "remove it");
    CRUCIBLE_ASSIGN(const std::string hash, Sha256HexOfFile(path));
    listing += file + " " + hash + "\n";
  }
  return Sha256Hex(listing);
}

Result<Arm> BuildArm(const BuildRequest& request) {
  CRUCIBLE_CHECK(request.target != nullptr, "a build needs a target");
  Arm arm = request.arm;
  CRUCIBLE_ASSIGN(arm.source_hash, SourceHash(*request.target, arm.source));
  CRUCIBLE_TRY(MakeDirectories(arm.build));
  if (request.log.has_parent_path()) CRUCIBLE_TRY(MakeDirectories(request.log.parent_path()));
  for (const std::vector<std::string>& command : request.target->build_commands) {
    CRUCIBLE_ASSIGN(const std::vector<std::string> words, Substitute(command, arm));
    CRUCIBLE_TRY(RunCommand(request, words));
  }
  return arm;
}

Result<Arm> BuildArmOnce(const BuildRequest& request) {
  CRUCIBLE_ASSIGN(const std::string hash, SourceHash(*request.target, request.arm.source));
  const fs::path marker = request.arm.build / kMarker;
  if (const auto built = ReadFile(marker); built && *built == hash) {
    Arm arm = request.arm;
    arm.source_hash = hash;
    return arm;
  }
  // Half a build of a killed process is no base to go on from.
  CRUCIBLE_TRY(RemoveTree(request.arm.build));
  CRUCIBLE_ASSIGN(const Arm arm, BuildArm(request));
  CRUCIBLE_TRY(WriteFileAtomically(marker, hash));
  return arm;
}

}  // namespace crucible
