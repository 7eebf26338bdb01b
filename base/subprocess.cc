#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#define BOOST_PROCESS_V2_SEPARATE_COMPILATION 1
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/src.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
namespace process = boost::process::v2;

tl::unexpected<Error> StartFailure(const SubprocessSpec& spec, std::string_view cause,
                                   std::string_view next) {
  return Fail(ErrorKind::kIo, "start", spec.argv.front(), cause, next);
}

std::vector<std::string> ChildEnvironment(const SubprocessSpec& spec) {
  std::vector<std::string> result;
  for (char** item = environ; *item != nullptr; ++item) {
    const std::string_view text(*item);
    const std::string name(text.substr(0, text.find('=')));
    if (spec.environment.contains(name)) continue;
    if (std::find(spec.unset.begin(), spec.unset.end(), name) != spec.unset.end()) continue;
    result.emplace_back(text);
  }
  for (const auto& [name, value] : spec.environment) result.push_back(name + "=" + value);
  return result;
}

// Runs in the child between fork and exec: only system calls from here on.
struct ChildSetup {
  const SubprocessSpec* spec;
  std::vector<std::pair<int, int>> mapping;  // {child number, parent's descriptor}
  std::vector<const char*> environment;
  pid_t parent = 0;

  template <class Launcher>
  process::error_code on_setup(Launcher& launcher, const process::filesystem::path&,
                               const char* const*(&)) {
    launcher.env = environment.data();
    for (const auto& [child, from] : mapping) launcher.fd_whitelist.push_back(child);
    return {};
  }

  template <class Launcher>
  process::error_code on_exec_setup(Launcher&, const process::filesystem::path&,
                                    const char* const*(&)) {
    const auto failure = [] {
      return process::error_code(errno, boost::system::system_category());
    };
    if (spec->new_process_group && ::setpgid(0, 0) != 0) return failure();
    if (spec->die_with_parent) {
      if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failure();
      if (::getppid() != parent) ::_exit(127);  // it died before the request took effect
    }
    if (!spec->directory.empty() && ::chdir(spec->directory.c_str()) != 0) return failure();
    // Two steps, so that no target number overwrites a source that is still needed.
    constexpr int kAbove = 200;
    for (auto& [child, from] : mapping) {
      from = ::fcntl(from, F_DUPFD_CLOEXEC, kAbove);
      if (from < 0) return failure();
    }
    for (const auto& [child, from] : mapping)
      if (::dup2(from, child) < 0) return failure();
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    return {};
  }
};

struct ParentEnds {
  UniqueFd in, out, err;
};

Result<> MakePipe(UniqueFd* read_end, UniqueFd* write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Fail(ErrorKind::kIo, "create", "pipe", std::strerror(errno));
  *read_end = UniqueFd(ends[0]);
  *write_end = UniqueFd(ends[1]);
  return {};
}

// Opens what standard stream `number` needs; the child's end goes to `kept` and `mapping`.
Result<> PrepareStream(const SubprocessSpec& spec, int number, Stdio kind, UniqueFd* parent_end,
                       std::vector<UniqueFd>* kept, std::vector<std::pair<int, int>>* mapping) {
  UniqueFd child_end;
  switch (kind) {
    case Stdio::kInherit:
      return {};
    case Stdio::kNull:
      child_end = UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
      break;
    case Stdio::kFile:
      child_end =
          UniqueFd(::open(spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      break;
    case Stdio::kPipe:
      if (number == 0)
        CRUCIBLE_TRY(MakePipe(&child_end, parent_end));
      else
        CRUCIBLE_TRY(MakePipe(parent_end, &child_end));
      break;
  }
  if (!child_end.valid())
    return Fail(ErrorKind::kIo, "open", kind == Stdio::kFile ? spec.log_path.string() : "/dev/null",
                std::strerror(errno), "check that its folder exists and can be written");
  mapping->emplace_back(number, child_end.get());
  kept->push_back(std::move(child_end));
  return {};
}

int OpenPidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

ExitStatus FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

}  // namespace

std::string ExitStatus::Describe() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", code);
}

Result<fs::path> FindExecutable(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::error_code ignored;
    if (::access(name.c_str(), X_OK) == 0 && fs::is_regular_file(name, ignored))
      return fs::absolute(name);
    return Fail(ErrorKind::kNotFound, "find program", name, "no such executable file",
                "check the path");
  }
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    std::error_code ignored;
    if (::access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, ignored))
      return candidate;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return Fail(ErrorKind::kNotFound, "find program", name, "it is not on PATH",
              "install it, or name it by its full path");
}

Result<Subprocess> Subprocess::Start(const SubprocessSpec& spec) {
  CRUCIBLE_CHECK(!spec.argv.empty(), "a subprocess needs a program");
  std::error_code ignored;
  if (!spec.directory.empty() && !fs::is_directory(spec.directory, ignored))
    return Fail(ErrorKind::kNotFound, "start " + spec.argv.front() + " in", spec.directory.string(),
                "no such directory", "check the path");
  // A relative program with a slash is relative to the child's directory.
  std::string name = spec.argv.front();
  if (name.find('/') != std::string::npos && name.front() != '/' && !spec.directory.empty())
    name = (spec.directory / name).string();
  CRUCIBLE_ASSIGN(const fs::path executable, FindExecutable(name));

  Subprocess child;
  ChildSetup setup{&spec, {}, {}, ::getpid()};
  std::vector<UniqueFd> kept;
  CRUCIBLE_TRY(PrepareStream(spec, 0, spec.in, &child.in_, &kept, &setup.mapping));
  CRUCIBLE_TRY(PrepareStream(spec, 1, spec.out, &child.out_, &kept, &setup.mapping));
  CRUCIBLE_TRY(PrepareStream(spec, 2, spec.err, &child.err_, &kept, &setup.mapping));
  // A number the child will use is kept taken here, so that the launcher's own pipe cannot get it.
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const auto& [number, from] : spec.descriptors) {
    setup.mapping.emplace_back(number, from);
    if (::fcntl(number, F_GETFD) < 0) kept.emplace_back(::dup3(null.get(), number, O_CLOEXEC));
  }
  const std::vector<std::string> environment = ChildEnvironment(spec);
  for (const std::string& item : environment) setup.environment.push_back(item.c_str());
  setup.environment.push_back(nullptr);

  std::fflush(nullptr);  // nothing buffered may be written twice
  boost::asio::io_context context(1);
  process::error_code error;
  process::posix::default_launcher launcher;
  const std::vector<std::string> arguments(spec.argv.begin() + 1, spec.argv.end());
  auto started = launcher(context.get_executor(), error, executable.string(), arguments, setup);
  if (error)
    return StartFailure(spec, error.message(), "check the program and the machine's limits");
  child.pid_ = static_cast<pid_t>(started.id());
  started.detach();
  child.own_group_ = spec.new_process_group;
  child.pidfd_ = UniqueFd(OpenPidfd(child.pid_));
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept { *this = std::move(other); }

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this == &other) return *this;
  EndNow();
  pid_ = std::exchange(other.pid_, 0);
  own_group_ = other.own_group_;
  pidfd_ = std::move(other.pidfd_);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  status_ = other.status_;
  return *this;
}

Subprocess::~Subprocess() { EndNow(); }

void Subprocess::EndNow() {
  if (pid_ == 0 || status_) return;
  Signal(SIGKILL);
  (void)Wait();
}

Result<ExitStatus> Subprocess::Wait(std::optional<std::chrono::milliseconds> timeout) {
  if (status_) return *status_;
  CRUCIBLE_CHECK(pid_ > 0, "waiting for a process that was moved away");
  if (timeout) {
    const std::int64_t deadline = SystemClock().MonotonicNs() + timeout->count() * 1'000'000;
    for (;;) {
      const std::int64_t left_ms = (deadline - SystemClock().MonotonicNs()) / 1'000'000;
      pollfd item{pidfd_.get(), POLLIN, 0};
      const int ready = ::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(0, left_ms)));
      if (ready > 0) break;
      if (ready == 0 && left_ms <= 0)
        return Fail(ErrorKind::kTimeout, "wait for", fmt::format("process {}", pid_),
                    fmt::format("still running after {} ms", timeout->count()));
      if (ready < 0 && errno != EINTR)
        return Fail(ErrorKind::kIo, "wait for", fmt::format("process {}", pid_),
                    std::strerror(errno));
    }
  }
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped < 0)
    return Fail(ErrorKind::kIo, "reap", fmt::format("process {}", pid_), std::strerror(errno));
  status_ = FromWaitStatus(status);
  return *status_;
}

bool Subprocess::running() {
  if (pid_ == 0 || status_) return false;
  return !Wait(std::chrono::milliseconds(0)).has_value();
}

void Subprocess::Signal(int signal_number) {
  if (pid_ == 0 || status_) return;
  if (own_group_)
    ::kill(-pid_, signal_number);
  else
    ::kill(pid_, signal_number);
}

namespace {

constexpr std::int64_t kStopPollMs = 200;

// One output stream being collected.
struct Collector {
  UniqueFd fd;
  std::string* text;
};

// False when the stream has ended.
bool ReadSome(Collector* stream, std::size_t max_bytes, bool* truncated) {
  char buffer[1 << 16];
  const ssize_t count = ::read(stream->fd.get(), buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  const std::size_t room = max_bytes - std::min(max_bytes, stream->text->size());
  const std::size_t taken = std::min(room, static_cast<std::size_t>(count));
  stream->text->append(buffer, taken);
  if (taken < static_cast<std::size_t>(count)) *truncated = true;
  return true;
}

// False when nothing more is to be written.
bool WriteSome(UniqueFd* fd, std::string_view* input) {
  const ssize_t count = ::write(fd->get(), input->data(), input->size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  input->remove_prefix(static_cast<std::size_t>(count));
  return !input->empty();
}

}  // namespace

Result<Captured> RunCaptured(SubprocessSpec spec, std::optional<std::chrono::milliseconds> timeout,
                             std::string_view input, std::size_t max_bytes,
                             const std::function<bool()>& stop) {
  spec.out = spec.err = Stdio::kPipe;
  if (!input.empty()) spec.in = Stdio::kPipe;
  CRUCIBLE_ASSIGN(Subprocess child, Subprocess::Start(spec));
  Captured result;
  UniqueFd to_child = child.TakeStdin();
  if (to_child.valid()) ::fcntl(to_child.get(), F_SETFL, O_NONBLOCK);
  Collector streams[2] = {{child.TakeStdout(), &result.out}, {child.TakeStderr(), &result.err}};
  const std::int64_t start = SystemClock().MonotonicNs();
  void (*previous)(int) = ::signal(SIGPIPE, SIG_IGN);
  // Until both streams end. After the process itself has ended, stragglers that inherited the
  // streams get 200 ms to finish their output.
  std::int64_t drain_until = 0, kill_at = 0;
  while (streams[0].fd.valid() || streams[1].fd.valid()) {
    pollfd items[4] = {{streams[0].fd.get(), POLLIN, 0},
                       {streams[1].fd.get(), POLLIN, 0},
                       {to_child.valid() ? to_child.get() : -1, POLLOUT, 0},
                       {drain_until == 0 ? child.pidfd() : -1, POLLIN, 0}};
    const std::int64_t now = SystemClock().MonotonicNs();
    std::int64_t wait_ms = -1;
    if (drain_until != 0) {
      wait_ms = (drain_until - now) / 1'000'000;
      if (wait_ms <= 0) break;
    } else if (timeout) {
      wait_ms = timeout->count() - (now - start) / 1'000'000;
      if (wait_ms <= 0) {
        result.timed_out = true;
        child.Signal(SIGKILL);
        drain_until = now + 200'000'000;
        continue;
      }
    }
    if (stop && drain_until == 0) {
      if (kill_at == 0 && stop()) {
        result.stopped = true;
        child.Signal(SIGTERM);
        kill_at = now + std::chrono::nanoseconds(kStopGrace).count();
      } else if (kill_at != 0 && now >= kill_at) {
        child.Signal(SIGKILL);
      }
      wait_ms = wait_ms < 0 ? kStopPollMs : std::min(wait_ms, kStopPollMs);
    }
    if (::poll(items, 4, static_cast<int>(wait_ms)) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i)
      if (items[i].revents != 0 && !ReadSome(&streams[i], max_bytes, &result.truncated))
        streams[i].fd.Reset();
    if (items[2].revents != 0 && !WriteSome(&to_child, &input)) to_child.Reset();
    if (items[3].revents != 0 && drain_until == 0)
      drain_until = SystemClock().MonotonicNs() + 200'000'000;
  }
  ::signal(SIGPIPE, previous);
  std::optional<std::chrono::milliseconds> left;
  if (timeout && !result.timed_out)
    left = std::max(
        std::chrono::milliseconds(0),
        *timeout - std::chrono::milliseconds((SystemClock().MonotonicNs() - start) / 1'000'000));
  Result<ExitStatus> status = child.Wait(left);
  if (!status && status.error().kind == ErrorKind::kTimeout) {
    result.timed_out = true;
    child.Signal(SIGKILL);
    status = child.Wait();
  }
  CRUCIBLE_ASSIGN(result.status, std::move(status));
  return result;
}

}  // namespace crucible
