#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/fd.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

ErrorKind KindOf(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo;
}

std::string_view AdviceFor(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free space on that disk and run the command again";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the permissions of that path";
    case EISDIR:
      return "name a file in it";
    default:
      return "check the path";
  }
}

tl::unexpected<Error> SystemFailure(std::string_view action, const fs::path& path, int number) {
  return Fail(KindOf(number), action, path.string(), std::strerror(number), AdviceFor(number));
}

Result<> WriteAll(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemFailure("write", path, errno);
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

Result<std::string> ReadFile(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemFailure("read", path, errno);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0) {
      if (errno == EINTR) continue;
      return SystemFailure("read", path, errno);
    }
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

Result<> WriteFileAtomically(const fs::path& path, std::string_view text) {
  if (path.has_parent_path()) CRUCIBLE_TRY(MakeDirectories(path.parent_path()));
  std::string temporary = path.string() + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return SystemFailure("write", path, errno);
  ::fchmod(fd.get(), 0644);
  Result<> written = WriteAll(fd.get(), text, path);
  if (written && ::fsync(fd.get()) != 0) written = SystemFailure("sync", path, errno);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = SystemFailure("rename", path, errno);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<> AppendLine(const fs::path& path, std::string_view line) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return SystemFailure("append to", path, errno);
  return WriteAll(fd.get(), std::string(line) + "\n", path);
}

Result<> MakeDirectories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return SystemFailure("create directory", path, error.value());
  return {};
}

Result<> RemoveTree(const fs::path& path) {
  CRUCIBLE_CHECK(path.is_absolute() && path != path.root_path(),
                 "refusing to remove a relative path or the root");
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return SystemFailure("remove", path, error.value());
  return {};
}

Result<std::int64_t> FreeBytes(const fs::path& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return SystemFailure("read free space of", path, errno);
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

Result<fs::path> MakeTemporaryDirectory(std::string_view prefix) {
  const char* root = std::getenv("TMPDIR");
  std::string name = std::string(root != nullptr && *root != '\0' ? root : "/tmp") + "/" +
                     std::string(prefix) + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return SystemFailure("create directory", name, errno);
  return fs::path(name);
}

}  // namespace crucible
