#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace crucible {
namespace {

bool LiesAt(int fd, const std::filesystem::path& path) {
  struct stat open_one {
  }, there{};
  return ::fstat(fd, &open_one) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open_one.st_dev == there.st_dev && open_one.st_ino == there.st_ino;
}

// Invalid when somebody else has it, which only LOCK_NB lets happen.
Result<UniqueFd> Lock(const std::filesystem::path& path, int operation) {
  CRUCIBLE_TRY(MakeDirectories(path.parent_path()));
  for (;;) {
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file.valid()) break;
    int locked = 0;
    do {
      locked = ::flock(file.get(), operation);
    } while (locked != 0 && errno == EINTR);
    if (locked != 0 && errno == EWOULDBLOCK) return UniqueFd();
    if (locked != 0) break;
    // The one who had it may have taken the file away: then this lock keeps nobody out.
    if (LiesAt(file.get(), path)) return file;
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

void FileLock::Remove(FileLock lock, const std::filesystem::path& path) {
  // Before the descriptor is closed: whoever waits for it sees that its file is gone.
  if (LiesAt(lock.file_.get(), path)) ::unlink(path.c_str());
}

}  // namespace crucible
