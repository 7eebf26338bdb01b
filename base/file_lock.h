// file_lock.h: one process at a time, by flock(2) on a file that stays (or goes with its subject:
// Remove).
//
// The lock goes with the descriptor, so a killed process never leaves it held. The descriptor is
// closed on exec: no child keeps it either.
#pragma once

#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/result.h"

namespace crucible {

class FileLock {
 public:
  // Waits until nobody else has `path` locked. Creates the file and its parent folders.
  static Result<FileLock> Take(const std::filesystem::path& path);
  // Nothing at once when somebody else has it.
  static Result<std::optional<FileLock>> TryTake(const std::filesystem::path& path);

  // Lets go and takes the file away: for a lock on what is not there any more.
  static void Remove(FileLock lock, const std::filesystem::path& path);

 private:
  explicit FileLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace crucible
