// bookkeeper.h: writes a job's row without ever standing between two jobs.
//
// The start is written by a thread while the job runs, the end after the device was let go. The
// start must be there before the device is let go (AwaitStarted): a runner killed after that has no
// record that a successor would make a row of. A row that cannot be written is one warning; the job
// goes on. Call from one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <thread>

#include "gpu_runner/history.h"

namespace crucible {

class Bookkeeper {
 public:
  // With a `report`, rows go to that file (slurm_report.h) and the database is left alone.
  explicit Bookkeeper(std::filesystem::path file, std::filesystem::path report = {})
      : file_(std::move(file)), report_(std::move(report)) {}
  ~Bookkeeper() { Join(); }

  const std::filesystem::path& file() const { return file_; }

  void Queued(const JobRow& row);   // at once: there is time, the call waits
  void Started(const JobRow& row);  // by the thread; call after the fork
  void AwaitStarted() { Join(); }   // a job longer than one write has it behind it
  void Ended(const JobRow& row);    // after the thread is done; then sweeps up dead runners' rows
  // The row of a dead runner, in the file that its own repository has. At once, because the record
  // it is made from is overwritten next.
  static void Lost(const HolderRecord& dead);

 private:
  Result<> Write(const JobRow& row);
  void Join();
  void WarnOnce(const Result<>& written);

  std::filesystem::path file_, report_;
  std::optional<History> history_;
  std::thread thread_;
  Result<> thread_result_;
  bool warned_ = false;
};

// "ok", "failed", ... for a job that ran; see jobs.sql.
const char* OutcomeOf(int exit_code, int job_signal, bool hit_limit, bool asked_to_stop);

}  // namespace crucible
