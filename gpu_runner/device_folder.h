// device_folder.h: the files by which the callers of one device agree, and the holder's record.
//
//   <lock directory>/mutex              held for microseconds, around every change of a queue
//   <lock directory>/<device>/lock      held (flock) while a job runs; never unlinked
//   <lock directory>/<device>/holder    who holds it, or held it last, and whether it ended cleanly
//   <lock directory>/<device>/tickets/  one FIFO a waiter, see queue.h
//
// Every descriptor is close-on-exec, so the kernel frees the lock when the holder dies, even while
// an orphan of its job lives on; the record tells the next holder what to clean up first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process_identity.h"
#include "base/result.h"

namespace crucible {

struct HolderRecord {
  bool released = false;  // the job has ended and nothing of it was left
  std::string nonce;      // CRUCIBLE_JOB_NONCE of the job's processes
  std::string job, device, priority, mission, directory;
  ProcessIdentity runner;
  std::vector<std::string> argv;
  std::int64_t queued_ms = 0, started_ms = 0;  // wall clock
  std::int64_t limit_ms = 0;                   // 0: none
  std::uint64_t sequence = 0;                  // of its ticket: the order of the turns
  std::string database;                        // where the job's history row belongs
  std::string cgroup;                          // the job's cgroup, or empty
  uid_t owner = 0;                             // who wrote the record; 0 trusts all it says
  std::string log_path;
};

class DeviceFolder {
 public:
  // Creates what is missing. kUnavailable on a network file system, where flock proves nothing.
  static Result<DeviceFolder> Open(const std::filesystem::path& lock_directory,
                                   const std::string& device);

  const std::string& device() const { return device_; }
  std::filesystem::path tickets() const { return path_ / "tickets"; }

  // The device's lock, or an invalid descriptor while another holds it.
  Result<UniqueFd> TryLock() const;
  // Whether somebody holds it now.
  bool IsLocked() const;

  std::optional<HolderRecord> ReadHolder() const;  // empty: none yet, or unreadable
  Result<> WriteHolder(const HolderRecord& record) const;

 private:
  std::filesystem::path path_;
  std::string device_;
};

// Whether statfs's type is one of files that several machines see: a lock of one may be none to the
// others.
bool IsNetworkFileSystem(std::uint32_t type);

// Holds <lock directory>/mutex until the descriptor is closed.
Result<UniqueFd> LockQueueMutex(const std::filesystem::path& lock_directory);

}  // namespace crucible
