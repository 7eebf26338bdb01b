#include "orchestrator/build_arm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/subprocess.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

// What gpu_run (like timeout) ends with when a job ran past its limit.
constexpr int kRunnerTimedOut = 124;
constexpr std::size_t kLongestLine = 300;
constexpr const char* kMarker = ".crucible-built";

// One line per file: path, kind, content. Links count by their text, never by what they point to.
Result<std::string> LineOf(const fs::path& file, const std::string& name) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(file, error);
  if (fs::is_symlink(status))
    return name + '\0' + "link " + fs::read_symlink(file, error).string() + "\n";
  CRUCIBLE_ASSIGN(const std::string hash, Sha256HexOfFile(file));
  const bool executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
  return name + '\0' + (executable ? "program " : "file ") + hash + "\n";
}

Result<> AddPath(const fs::path& source, const std::string& path,
                 std::vector<std::string>& lines) {
  const fs::path start = source / path;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(start, error);
  if (status.type() == fs::file_type::not_found) {
    lines.push_back(path + '\0' + "missing\n");
    return {};
  }
  if (!fs::is_directory(status)) {
    CRUCIBLE_ASSIGN(lines.emplace_back(), LineOf(start, path));
    return {};
  }
  fs::recursive_directory_iterator it(start, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::file_status entry = it->symlink_status(error);
    if (fs::is_directory(entry)) continue;
    CRUCIBLE_ASSIGN(lines.emplace_back(),
                    LineOf(it->path(), it->path().lexically_relative(source).generic_string()));
  }
  if (error)
    return Fail(ErrorKind::kIo, "hash sources in", start.string(), error.message(),
                "check that they are readable");
  return {};
}

// {bin} and {lib} of the request, then the arm's own placeholders.
Result<std::vector<std::string>> CommandOf(const BuildRequest& request,
                                           std::vector<std::string> words) {
  if (!request.programs.empty()) {
    const std::pair<std::string, std::string> own[] = {
        {"{bin}", request.programs.string()},
        {"{lib}", (request.programs.parent_path() / "lib").string()}};
    for (std::string& word : words)
      for (const auto& [name, value] : own)
        for (std::size_t at = word.find(name); at != std::string::npos;
             at = word.find(name, at + value.size()))
          word.replace(at, name.size(), value);
  }
  return Substitute(words, request.arm);
}

std::string NewOutput(const fs::path& log, std::uintmax_t from) {
  const auto text = ReadFile(log);
  return text && from < text->size() ? text->substr(from) : std::string();
}

Result<> RunStep(const BuildRequest& request, const std::vector<std::string>& words) {
  CRUCIBLE_ASSIGN(const std::vector<std::string> command, CommandOf(request, words));
  const std::string shown = fmt::format("{}", fmt::join(command, " "));
  CRUCIBLE_TRY(AppendLine(request.log, "$ " + shown));
  std::error_code error;
  const std::uintmax_t before = fs::file_size(request.log, error);

  const bool queued = request.target->build_on_device && !request.runner.empty();
  SubprocessSpec spec;
  if (queued) spec.argv = request.runner;
  spec.argv.insert(spec.argv.end(), command.begin(), command.end());
  spec.directory = request.arm.source;
  spec.environment = request.environment;
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = request.log;
  auto process = Subprocess::Start(spec);
  if (!process) return Within("build " + request.arm.name, process.error());

  // The runner counts its limit from the job's start; here the wait in the queue would count too.
  std::optional<std::chrono::milliseconds> limit;
  if (!queued) limit = std::chrono::milliseconds(request.target->build_limit_ms);
  auto status = process->Wait(limit);
  const bool late = !status && status.error().kind == ErrorKind::kTimeout;
  if (late) {
    process->Signal(SIGKILL);
    (void)process->Wait();
  } else if (!status) {
    return Within("build " + request.arm.name, status.error());
  }
  if (late || (queued && status->code == kRunnerTimedOut))
    return Fail(ErrorKind::kTimeout, "build", request.arm.name,
                fmt::format("`{}` ran past its limit of {} s", shown,
                            static_cast<double>(request.target->build_limit_ms) / 1000),
                "raise [build] limit in the target file; the output is in " + request.log.string());
  if (status->ok()) return {};
  const std::string lines = FirstErrorLines(NewOutput(request.log, before));
  return Fail(ErrorKind::kUnavailable, "build", request.arm.name,
              fmt::format("`{}` ended with {}{}{}", shown, status->Describe(),
                          lines.empty() ? "" : ":\n", lines),
              "the whole output is in " + request.log.string());
}

std::string WithoutEscapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    } else if (line[i] != '\r') {
      plain += line[i];
    }
  }
  if (plain.size() > kLongestLine) plain = plain.substr(0, kLongestLine) + "…";
  return plain;
}

bool SaysAnError(const std::string& line) {
  for (const char* sign : {"error:", "Error:", "ERROR:", "CMake Error", "undefined reference",
                           "undefined symbol", "multiple definition", "Killed", "No space left"})
    if (line.find(sign) != std::string::npos) return true;
  return line.find(": error ") != std::string::npos;  // nvcc, ptxas: "file(3): error C1: …"
}

}  // namespace

Result<std::string> SourceHash(const Target& target, const fs::path& source) {
  std::vector<std::string> lines;
  for (const std::string& path : target.editable) CRUCIBLE_TRY(AddPath(source, path, lines));
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return Sha256Hex(fmt::format("{}", fmt::join(lines, "")));
}

Result<Arm> BuildArm(const BuildRequest& request) {
  CRUCIBLE_CHECK(request.target != nullptr, "a build has a target");
  Arm arm = request.arm;
  CRUCIBLE_ASSIGN(arm.source_hash, SourceHash(*request.target, arm.source));
  CRUCIBLE_TRY(MakeDirectories(arm.build));
  CRUCIBLE_TRY(MakeDirectories(request.log.parent_path()));
  for (const std::vector<std::string>& command : request.target->build_commands)
    CRUCIBLE_TRY(RunStep(request, command));
  return arm;
}

Result<Arm> BuildArmOnce(const BuildRequest& request) {
  CRUCIBLE_CHECK(request.target != nullptr, "a build has a target");
  CRUCIBLE_TRY(MakeDirectories(request.arm.build.parent_path()));
  // One builder at a time per folder; the kernel lets go of the lock when its holder dies.
  const fs::path lock_path = request.arm.build.string() + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0)
    return Fail(ErrorKind::kIo, "lock build folder", lock_path.string(), std::strerror(errno),
                "check that the folder is writable");
  Arm arm = request.arm;
  CRUCIBLE_ASSIGN(arm.source_hash, SourceHash(*request.target, arm.source));
  std::string commands;
  for (const std::vector<std::string>& command : request.target->build_commands)
    commands += fmt::format("{}\n", fmt::join(command, std::string(1, '\0')));
  // The build folder remembers paths of the checkout (CMake does), so the checkout counts too.
  const std::string wanted = fmt::format("{} {} {}\n", arm.source_hash, Sha256Hex(commands),
                                         Sha256Hex(arm.source.string()));
  const fs::path marker = arm.build / kMarker;
  if (const auto found = ReadFile(marker); found && *found == wanted) return arm;
  CRUCIBLE_TRY(RemoveTree(arm.build));
  CRUCIBLE_ASSIGN(arm, BuildArm(request));
  CRUCIBLE_TRY(WriteFileAtomically(marker, wanted));
  return arm;
}

std::string FirstErrorLines(const std::string& output, int most) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    std::string line = WithoutEscapes(std::string_view(output).substr(at, end - at));
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(std::move(line));
    at = end + 1;
  }
  const auto limit = static_cast<std::size_t>(std::max(most, 0));
  std::vector<std::string> chosen;
  bool continues = false;  // CMake says where in one line and what in the indented ones below it
  for (const std::string& line : lines) {
    continues = line.find("CMake Error") != std::string::npos ||
                (continues && line.starts_with("  "));
    if (chosen.size() < limit && (continues || SaysAnError(line))) chosen.push_back(line);
  }
  if (chosen.empty() && !lines.empty()) {
    const std::size_t first = lines.size() > limit ? lines.size() - limit : 0;
    chosen.assign(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end());
  }
  return fmt::format("{}", fmt::join(chosen, "\n"));
}

}  // namespace crucible
