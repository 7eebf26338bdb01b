// subprocess.h: starts child processes safely; the only place that uses Boost.Process.
//
// The executable and the directory are checked before the fork, every descriptor not named here is
// closed in the child, and a child has its own process group so that it can be ended with all its
// children. A Subprocess that is destroyed while running is SIGKILLed with its group and reaped.
// Not thread-safe per object. `die_with_parent` follows the *thread* that called Start (that is how
// PR_SET_PDEATHSIG works): start long-lived children from a thread that lives as long.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace crucible {

enum class Stdio {
  kInherit,  // the parent's
  kNull,     // /dev/null
  kPipe,     // a pipe; take the parent's end with TakeStdin / TakeStdout / TakeStderr
  kFile,     // append to SubprocessSpec::log_path (stdout and stderr only)
};

struct SubprocessSpec {
  std::vector<std::string> argv;                   // argv[0]: a path, or a name looked up in PATH
  std::filesystem::path directory;                 // empty: the parent's
  std::map<std::string, std::string> environment;  // set on top of the parent's
  std::vector<std::string> unset;                  // removed from the parent's
  Stdio in = Stdio::kNull;
  Stdio out = Stdio::kInherit;
  Stdio err = Stdio::kInherit;
  std::filesystem::path log_path;                // for Stdio::kFile
  std::vector<std::pair<int, int>> descriptors;  // {number in the child, open one of the parent}
  std::vector<std::shared_ptr<const UniqueFd>> kept;  // owners of some of them, while spec lives
  bool new_process_group = true;
  bool die_with_parent = true;
};

// How a process ended: exactly one of the two is meaningful.
struct ExitStatus {
  int code = 0;    // exit code when signal == 0
  int signal = 0;  // the signal that ended it, or 0

  bool ok() const { return code == 0 && signal == 0; }
  // What a shell would report: the code, or 128 + signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
  std::string Describe() const;  // "exit code 3", "signal 9 (Killed)"
};

class Subprocess {
 public:
  // kNotFound: no such executable or directory; kIo: the system refused.
  static Result<Subprocess> Start(const SubprocessSpec& spec);

  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  ~Subprocess();

  pid_t pid() const { return pid_; }
  // Readable when the process has ended: for poll().
  int pidfd() const { return pidfd_.get(); }
  UniqueFd TakeStdin() { return std::move(in_); }
  UniqueFd TakeStdout() { return std::move(out_); }
  UniqueFd TakeStderr() { return std::move(err_); }

  // Waits for the end and reaps; kTimeout while it still runs. Later calls return the same status.
  Result<ExitStatus> Wait(std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  bool running();

  // To the process group (or the process alone when it has none of its own). No effect after the
  // end.
  void Signal(int signal_number);

 private:
  Subprocess() = default;
  void EndNow();

  pid_t pid_ = 0;
  bool own_group_ = false;
  UniqueFd pidfd_, in_, out_, err_;
  std::optional<ExitStatus> status_;
};

struct Captured {
  ExitStatus status;
  std::string out, err;
  bool timed_out = false;  // the group was killed at the limit
  bool stopped = false;    // `stop` asked for it
  bool truncated = false;  // more than `max_bytes` came on one stream; the rest was dropped
};

// Runs to the end and collects both streams (they override spec.out / spec.err). `input` is written
// to stdin. A process still running at `timeout` is killed with its group. `stop` is asked five
// times a second: when it says true the group gets SIGTERM, and SIGKILL when that does not end it
// within kStopGrace.
inline constexpr std::chrono::seconds kStopGrace{10};
Result<Captured> RunCaptured(SubprocessSpec spec,
                             std::optional<std::chrono::milliseconds> timeout = std::nullopt,
                             std::string_view input = {}, std::size_t max_bytes = 16u << 20,
                             const std::function<bool()>& stop = nullptr);

// The absolute path of a program, as execvp would find it.
Result<std::filesystem::path> FindExecutable(const std::string& name);

}  // namespace crucible
