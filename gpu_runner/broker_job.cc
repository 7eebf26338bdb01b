#include "gpu_runner/broker_job.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gpu_runner/options.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

// What gpu_run needs of the broker's own environment.
constexpr std::string_view kPassed[] = {"PATH",
                                        "HOME",
                                        "LANG",
                                        "TMPDIR",
                                        "XDG_RUNTIME_DIR",
                                        "XDG_STATE_HOME",
                                        "LD_LIBRARY_PATH",
                                        "CRUCIBLE_LOCK_DIR",
                                        "CRUCIBLE_HOME",
                                        "CRUCIBLE_NVML_LIBRARY"};

constexpr std::string_view kFlags[] = {"--log", "--quiet", "--yield", "--say-clocks"};
constexpr std::string_view kValued[] = {"--device",   "--gpu",    "--limit",    "--queue-limit",
                                        "--priority", "--clocks", "--clock-mhz"};

template <class List>
bool IsOneOf(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

tl::unexpected<Error> Refused(std::string_view what, std::string_view cause,
                              std::string_view next = "") {
  return Fail(ErrorKind::kConflict, "broker refuses", what, cause, next);
}

bool Holds(const fs::path& folder, const fs::path& path) {
  const auto ends = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return ends.first == folder.end();
}

Result<RunOptions> CheckOptions(const BrokerSpec& spec, const BrokerRequest& request) {
  for (std::size_t i = 0; i < request.options.size(); ++i) {
    const std::string& word = request.options[i];
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    if (word == "--" || IsOneOf(kFlags, word)) continue;
    if (!IsOneOf(kValued, name)) return Refused(name, "it is no option of a job in a sandbox");
    if (name.size() == word.size()) ++i;
  }
  std::vector<std::string> words = request.options;
  if (words.empty() || words.back() != "--") words.push_back("--");
  words.insert(words.end(), request.command.begin(), request.command.end());
  CRUCIBLE_ASSIGN(const RunOptions options, ParseRunOptions(words));
  if (options.command != request.command) return Refused("the command", "options and command mix");
  if (options.priority == Priority::kHigh && !spec.may_hurry)
    return Refused("--priority high", "it is kept for people", "use normal or low");
  if (options.clocks == ClockPolicy::kPin && !spec.may_pin)
    return Refused("--clocks pin", "the campaign decides about clocks", "leave it out");
  return options;
}

// The open folder and its real path, inside one of the roots.
Result<UniqueFd> OpenInside(const std::vector<fs::path>& roots, const std::string& directory) {
  UniqueFd folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Refused(directory, std::strerror(errno));
  // The path of what is open, not of what was named: a link exchanged meanwhile changes nothing.
  std::error_code error;
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", folder.get()), error);
  const auto holds = [&](const fs::path& root) { return Holds(root, real); };
  if (error || std::none_of(roots.begin(), roots.end(), holds))
    return Refused(directory, "it is not in this mission's worktree", "run the command there");
  return folder;
}

// A job that is in no sandbox gets its variables from env(1), so that gpu_run itself never does.
Result<SubprocessSpec> WithoutSandbox(SubprocessSpec job) {
  if (job.environment.empty()) return job;
  if (job.argv.front().find('=') != std::string::npos)
    return Refused(job.argv.front(), "a command with '=' in its name");
  std::vector<std::string> argv{"/usr/bin/env"};
  for (const auto& [name, value] : job.environment) argv.push_back(name + "=" + value);
  argv.insert(argv.end(), job.argv.begin(), job.argv.end());
  job.argv = std::move(argv);
  job.environment.clear();
  return job;
}

}  // namespace

Result<BrokerJob> PrepareBrokerJob(const BrokerSpec& spec, const std::vector<fs::path>& roots,
                                   const BrokerRequest& request, const Streams& streams) {
  BrokerJob result;
  CRUCIBLE_ASSIGN(const RunOptions options, CheckOptions(spec, request));
  result.device = options.device;
  CRUCIBLE_ASSIGN(result.folder, OpenInside(roots, request.directory));

  SubprocessSpec job;
  job.argv = request.command;
  job.directory = fmt::format("/proc/self/fd/{}", result.folder.get());
  for (const std::string& item : request.environment) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || !MayCrossToJob(item.substr(0, equals))) continue;
    job.environment[item.substr(0, equals)] = item.substr(equals + 1);
  }
  CRUCIBLE_ASSIGN(job,
                  spec.sandbox ? spec.sandbox(std::move(job)) : WithoutSandbox(std::move(job)));

  SubprocessSpec& start = result.spec;
  start.argv = {spec.gpu_run.string()};
  for (const std::string& word : request.options)
    if (word != "--") start.argv.push_back(word);
  // Last, so that they win over the caller's.
  start.argv.insert(start.argv.end(), spec.forced_options.begin(), spec.forced_options.end());
  start.argv.push_back("--");
  start.argv.insert(start.argv.end(), job.argv.begin(), job.argv.end());
  start.directory = fmt::format("/proc/self/fd/{}", result.folder.get());
  for (char** item = environ; *item != nullptr; ++item) {
    const std::string_view text(*item);
    const std::string_view name = text.substr(0, text.find('='));
    if (!IsOneOf(kPassed, name)) start.unset.emplace_back(name);
  }
  start.environment = spec.environment;
  start.in = start.out = start.err = Stdio::kInherit;
  start.descriptors = job.descriptors;
  start.kept = job.kept;
  for (int i = 0; i < 3; ++i)
    start.descriptors.emplace_back(i, streams[static_cast<std::size_t>(i)].get());
  return result;
}

}  // namespace crucible
