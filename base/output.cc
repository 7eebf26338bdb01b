#include "base/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>

#include "base/fd.h"
#include "base/files.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel allows

bool ReaderIsGone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// Where the links lead; the last one's target need not be there.
fs::path EndOfLinks(fs::path path) {
  std::error_code failed;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, failed); ++i) {
    const fs::path to = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / to;  // `to` alone when it is absolute
  }
  return path;
}

// Into what is there and is no file: it keeps nothing, so there is nothing to keep whole.
Result<> WriteInto(const fs::path& path, std::string_view text) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  while (fd.valid() && !text.empty()) {
    const ssize_t count = ::write(fd.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (fd.valid() && text.empty()) return {};
  return Fail(ErrorKind::kIo, "write", path.string(), std::strerror(errno),
              "check that it takes what is written to it, or name a file");
}

}  // namespace

Result<> WriteOutput(const fs::path& path, std::string_view text) {
  const fs::path end = EndOfLinks(path);
  std::error_code ignored;
  const fs::file_status status = fs::status(end, ignored);
  if (fs::is_directory(status))
    return Fail(ErrorKind::kUsage, "write", path.string(), "it is a folder", "name a file in it");
  if (fs::exists(status) && !fs::is_regular_file(status)) return WriteInto(end, text);
  return WriteFileAtomically(end, text);
}

int FinishOutput(int exit_code) {
  std::cout.flush();
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (whole || ReaderIsGone()) return exit_code;
  std::fputs(
      "crucible: write results: stdout took no more (no space left on its device?); free space and "
      "run the command again\n",
      stderr);
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace crucible
