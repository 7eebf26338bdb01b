#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace crucible {

Result<FileLock> FileLock::Take(const std::filesystem::path& path) {
  CRUCIBLE_TRY(MakeDirectories(path.parent_path()));
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  bool locked = false;
  while (file.valid() && !locked) {
    locked = ::flock(file.get(), LOCK_EX) == 0;
    if (!locked && errno != EINTR) break;
  }
  if (!locked)
    return Fail(ErrorKind::kIo, "lock", path.string(), std::strerror(errno),
                "check that its folder is writable and on a local disk");
  return FileLock(std::move(file));
}

}  // namespace crucible
