// job_process.h: one job from fork to the last of its descendants.
//
// Its own fork and exec instead of base/subprocess: a job inherits every open descriptor of the
// caller (a harness may speak on one), joins its cgroup at birth, and may own the terminal. The
// runner is a subreaper, so an orphan of the job becomes its child and is found. Call from the main
// thread: PR_SET_PDEATHSIG, by which the job dies with the runner, follows the thread that forked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/subprocess.h"

namespace crucible {

// The signals a runner answers, blocked and read from a descriptor. One object a process.
class RunnerSignals {
 public:
  static Result<RunnerSignals> Block();
  int fd() const { return fd_.get(); }
  // The next pending one that asks to stop (SIGINT, SIGTERM, SIGHUP, SIGQUIT); SIGCHLD is dropped.
  std::optional<int> NextStop();

 private:
  UniqueFd fd_;
};

struct JobRequest {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // on top of the caller's
  std::string cgroup;                                            // joined at birth; may be empty
  int out = -1, err = -1;  // take the place of stdout and stderr; -1: the caller's own
  std::optional<std::int64_t> limit_ms;
  std::int64_t grace_ms = 5000;   // from SIGTERM to SIGKILL
  int holder_pidfd = -1;          // nested: the job ends when this process does
  std::function<void()> started;  // once the command runs
  std::function<void()> sample;   // about every sample_ms while it runs
  std::int64_t sample_ms = 1000;
};

struct JobEnd {
  ExitStatus status;
  bool hit_limit = false;
  int stopped_by = 0;         // the signal the runner was asked to stop with, or 0
  std::vector<pid_t> left;    // descendants that could not be ended
  std::int64_t ended_ms = 0;  // wall clock
};

// Runs to the end, then ends and reaps every descendant. kNotFound: no such command (127);
// kUnavailable: it cannot be run (126).
Result<JobEnd> RunJobProcess(const JobRequest& request, RunnerSignals* signals);

}  // namespace crucible
