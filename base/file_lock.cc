#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace crucible {
namespace {

// Invalid when somebody else has it, which only LOCK_NB lets happen.
Result<UniqueFd> Lock(const std::filesystem::path& path, int operation) {
  CRUCIBLE_TRY(MakeDirectories(path.parent_path()));
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  while (file.valid()) {
    if (::flock(file.get(), operation) == 0) return file;
    if (errno == EWOULDBLOCK) return UniqueFd();
    if (errno != EINTR) break;
  }
  return Fail(ErrorKind::kIo, "lock", path.string(), std::strerror(errno),
              "check that its folder is writable and on a local disk");
}

}  // namespace

Result<FileLock> FileLock::Take(const std::filesystem::path& path) {
  CRUCIBLE_ASSIGN(UniqueFd file, Lock(path, LOCK_EX));
  return FileLock(std::move(file));
}

Result<std::optional<FileLock>> FileLock::TryTake(const std::filesystem::path& path) {
  CRUCIBLE_ASSIGN(UniqueFd file, Lock(path, LOCK_EX | LOCK_NB));
  return file.valid() ? std::optional(FileLock(std::move(file))) : std::nullopt;
}

}  // namespace crucible
