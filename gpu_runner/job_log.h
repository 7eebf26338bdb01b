// job_log.h: a copy of a job's output in a file, beside the caller's own.
//
// Only when asked for, because it takes two pipes: the job then sees no terminal, and in the file
// lines of stdout and stderr may change places with each other (never within one stream). What the
// caller sees passes through byte by byte at once. A caller that closes its end closes the job's.
#pragma once

#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace crucible {

class JobLog {
 public:
  static Result<JobLog> Open(const std::filesystem::path& file);
  JobLog() = default;
  JobLog(JobLog&&) = default;
  JobLog& operator=(JobLog&&) = default;
  ~JobLog() { Finish(); }

  bool active() const { return file_.valid() || thread_.joinable(); }
  // For the job's stdout and stderr; -1 when not active.
  int out() const { return out_write_.get(); }
  int err() const { return err_write_.get(); }

  // After the fork: gives up the job's ends and starts to copy.
  void Start();
  // Until both streams have ended, which they have when no process of the job is left.
  void Finish();
  // For a job of which a process could not be ended: it would keep the streams open.
  void Abandon() {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  UniqueFd file_, out_read_, out_write_, err_read_, err_write_;
  std::thread thread_;
};

}  // namespace crucible
