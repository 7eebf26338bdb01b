#include "gpu_runner/bookkeeper.h"

#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "gpu_runner/slurm_report.h"

namespace crucible {

Result<> Bookkeeper::Write(const JobRow& row) {
  if (!report_.empty()) return WriteReport(report_, row);
  if (!history_) {
    CRUCIBLE_ASSIGN(History opened, History::Open(file_));
    history_ = std::move(opened);
  }
  return history_->Put(row);
}

void Bookkeeper::WarnOnce(const Result<>& written) {
  if (written || warned_) return;
  warned_ = true;
  std::fprintf(stderr, "gpu_run: %s\n", written.error().text.c_str());
}

void Bookkeeper::Join() {
  if (!thread_.joinable()) return;
  thread_.join();
  WarnOnce(thread_result_);
}

void Bookkeeper::Queued(const JobRow& row) { WarnOnce(Write(row)); }

void Bookkeeper::Started(const JobRow& row) {
  thread_ = std::thread([this, row] { thread_result_ = Write(row); });
}

void Bookkeeper::Ended(const JobRow& row) {
  Join();
  WarnOnce(Write(row));
  if (history_) (void)history_->SweepLost(SystemClock().UnixMs());  // the next one sweeps again
}

void Bookkeeper::Lost(const HolderRecord& dead) {
  // Another user's row is completed by that user's next call: its path is not believed here.
  if (dead.database.empty() || dead.owner != ::geteuid()) return;
  auto history = History::Open(dead.database);
  const Result<> written = history ? history->PutLost(dead, SystemClock().UnixMs())
                                   : Result<>(tl::unexpected(history.error()));
  if (!written) std::fprintf(stderr, "gpu_run: %s\n", written.error().text.c_str());
}

const char* OutcomeOf(int exit_code, int job_signal, bool hit_limit, bool asked_to_stop) {
  if (hit_limit) return "run_limit";
  if (asked_to_stop) return "cancelled";
  if (job_signal != 0) return "killed";
  return exit_code == 0 ? "ok" : "failed";
}

}  // namespace crucible
