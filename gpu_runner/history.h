// history.h: the table of jobs, in SQLite.
//
// History only: who holds a device is decided by locks, never here, and a job runs even when its
// row cannot be written. WAL and a busy timeout let every runner and reader of the machine share
// the file. One History a thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu_runner/device_folder.h"

struct sqlite3;

namespace crucible {

struct JobRow {
  std::string id, device, directory, mission, priority, nonce, runner;
  std::vector<std::string> argv;
  std::int64_t queued_ms = 0;
  std::optional<std::int64_t> started_ms, ended_ms;
  std::optional<int> exit_code, signal;
  std::string outcome;  // empty while it waits or runs
  std::string log_path;
  std::string toolchain = "{}", clocks = "{}", drift;  // the first two are JSON
};

JobRow RowOf(const HolderRecord& record);

// log.sqlite of the repository around `directory`, else of the user's own state folder.
std::filesystem::path HistoryFile(const std::filesystem::path& directory);
// The same for the current folder, which may have been removed: then the user's own.
std::filesystem::path HistoryFileHere();

class History {
 public:
  // Creates the file and the table when missing.
  static Result<History> Open(const std::filesystem::path& file);
  History(History&& other) noexcept;
  History& operator=(History&& other) noexcept;
  ~History();

  // Inserts the row, or replaces the one of that id.
  Result<> Put(const JobRow& row);
  // Completes as 'lost' the row of a dead runner, inserting it when the runner died before it
  // could. Its end nobody saw: `now_ms` is when that was noticed, and no measure of device time.
  Result<> PutLost(const HolderRecord& dead, std::int64_t now_ms);
  // Completes as 'lost' every open row whose runner is dead. Returns how many.
  Result<int> SweepLost(std::int64_t now_ms);

  Result<std::vector<JobRow>> Recent(int count);  // newest first
  Result<std::optional<JobRow>> Find(const std::string& id);

 private:
  explicit History(sqlite3* database) : database_(database) {}
  tl::unexpected<Error> Failure(const char* action) const;
  Result<std::vector<JobRow>> Select(const std::string& where, const std::string& argument,
                                     int count);

  sqlite3* database_ = nullptr;
};

}  // namespace crucible
