#include "gpu_runner/job_log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace crucible {
namespace {

bool WriteAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(fd, data, size);
    if (count < 0 && errno == EAGAIN) {
      pollfd item{fd, POLLOUT, 0};  // the caller's end may be non-blocking
      ::poll(&item, 1, -1);
      continue;
    }
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) {
      data += count;
      size -= static_cast<std::size_t>(count);
    }
  }
  return true;
}

// False when the stream has ended or its reader has gone.
bool CopySome(int from, int to, int file) {
  char buffer[1 << 16];
  const ssize_t count = ::read(from, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR;
  if (count == 0) return false;
  const bool passed = WriteAll(to, buffer, static_cast<std::size_t>(count));
  (void)WriteAll(file, buffer, static_cast<std::size_t>(count));
  return passed;
}

void CopyStreams(UniqueFd out, UniqueFd err, UniqueFd file) {
  sigset_t pipe;  // a reader that has gone is an error of write() here, not the runner's end
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (out.valid() || err.valid()) {
    pollfd items[2] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};
    if (::poll(items, 2, -1) < 0) continue;
    if (items[0].revents != 0 && !CopySome(out.get(), STDOUT_FILENO, file.get())) out.Reset();
    if (items[1].revents != 0 && !CopySome(err.get(), STDERR_FILENO, file.get())) err.Reset();
  }
}

}  // namespace

Result<JobLog> JobLog::Open(const std::filesystem::path& file) {
  CRUCIBLE_TRY(MakeDirectories(file.parent_path()));
  JobLog log;
  log.file_ = UniqueFd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  if (!log.file_.valid() || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    return Fail(ErrorKind::kIo, "open job log", file.string(), std::strerror(errno),
                "check the folder's permissions and free space");
  log.out_read_ = UniqueFd(out[0]);
  log.out_write_ = UniqueFd(out[1]);
  log.err_read_ = UniqueFd(err[0]);
  log.err_write_ = UniqueFd(err[1]);
  return log;
}

void JobLog::Start() {
  out_write_.Reset();
  err_write_.Reset();
  if (!file_.valid()) return;
  thread_ = std::thread(CopyStreams, std::move(out_read_), std::move(err_read_), std::move(file_));
}

void JobLog::Finish() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace crucible
