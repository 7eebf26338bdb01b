#include "gpu_runner/job_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "gpu_runner/survivors.h"

namespace crucible {
namespace {

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kDrainMs = 10'000, kKillAgainMs = 20;

std::int64_t NowMs() { return SystemClock().MonotonicNs() / 1'000'000; }

// A fork that puts the child into `cgroup` at birth: moving it there later costs the kernel a
// grace period of milliseconds. Falls back to a plain fork.
pid_t Fork(const std::string& cgroup) {
  if (!cgroup.empty()) {
    const UniqueFd folder(::open(cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = static_cast<std::uint64_t>(folder.get());
    if (folder.valid()) {
      const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
      if (pid >= 0) return static_cast<pid_t>(pid);
    }
  }
  return ::fork();
}

// What exec is given, made before the fork: the child of a process with other threads (NVML may
// have some) must not take a lock, so it allocates nothing.
class ExecWords {
 public:
  explicit ExecWords(const JobRequest& request) {
    std::map<std::string, std::string> variables;
    for (char** item = environ; *item != nullptr; ++item) {
      const std::string_view text(*item);
      const std::size_t equals = text.find('=');
      if (equals != text.npos)
        variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : request.environment) variables[name] = value;
    for (const auto& [name, value] : variables) texts_.push_back(name + "=" + value);
    for (const std::string& text : texts_) environment_.push_back(const_cast<char*>(text.c_str()));
    for (const std::string& word : request.argv) argv_.push_back(const_cast<char*>(word.c_str()));
    environment_.push_back(nullptr);
    argv_.push_back(nullptr);
  }
  char* const* argv() const { return argv_.data(); }
  char** environment() { return environment_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> argv_, environment_;
};

// In the child: becomes the command, or reports errno on `report`.
[[noreturn]] void BecomeJob(const JobRequest& request, ExecWords* words, pid_t runner,
                            bool terminal, int report) {
  ::setpgid(0, 0);
  if (terminal) ::tcsetpgrp(STDIN_FILENO, ::getpid());  // SIGTTOU is ignored until below
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != runner) ::_exit(127);  // it died before the request took effect
  if (request.out >= 0) ::dup2(request.out, STDOUT_FILENO);
  if (request.err >= 0) ::dup2(request.err, STDERR_FILENO);
  if (terminal) ::signal(SIGTTOU, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Replaced in the child alone, before the search: a toolchain may have changed PATH.
  environ = words->environment();
  ::execvp(words->argv()[0], words->argv());
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

// Ends a job in steps: a request, then SIGTERM, then after the grace SIGKILL. The job's group is
// what a request is for; its first process is told also where it left that group, and what else is
// in its cgroup is killed with it.
class Stopper {
 public:
  Stopper(pid_t job, const JobRequest& request) : job_(job), request_(request) {}

  void Ask(int signal_number) {
    const bool again = asked_++ > 0;
    const int sent = signal_number == SIGINT && !again ? SIGINT : SIGTERM;
    Send(sent);
    Send(SIGCONT);
    if (sent == SIGTERM && kill_at_ms_ == 0) kill_at_ms_ = NowMs() + request_.grace_ms;
  }
  void Kill() {
    Send(SIGKILL);
    KillCgroup(request_.cgroup);
  }
  std::int64_t kill_at_ms() const { return kill_at_ms_; }
  void Tick() {
    if (kill_at_ms_ == 0 || NowMs() < kill_at_ms_) return;
    Kill();
    kill_at_ms_ = NowMs() + kKillAgainMs;
  }

 private:
  void Send(int number) {
    ::kill(-job_, number);
    if (::getpgid(job_) != job_) ::kill(job_, number);
  }

  pid_t job_;
  const JobRequest& request_;
  std::int64_t kill_at_ms_ = 0;
  int asked_ = 0;
};

ExitStatus FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

// The terminal's Ctrl-Z stopped the job: stop with it, so that the shell returns, and resume it.
void StopWithJob(pid_t job) {
  ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  ::kill(::getpid(), SIGSTOP);
  ::tcsetpgrp(STDIN_FILENO, job);
  ::kill(-job, SIGCONT);
}

// Waits for the job itself, reaping orphans on the way.
void Supervise(pid_t job, bool terminal, const JobRequest& request, RunnerSignals* signals,
               JobEnd* end) {
  const std::int64_t limit_at_ms = request.limit_ms ? NowMs() + *request.limit_ms : 0;
  std::int64_t sample_at_ms =
      request.sample ? NowMs() + std::min<std::int64_t>(50, request.sample_ms) : 0;
  Stopper stopper(job, request);
  bool limit_over = false;
  int holder = request.holder_pidfd;
  for (;;) {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | (terminal ? WUNTRACED : 0));
      if (pid <= 0) break;
      if (pid != job) continue;
      if (WIFSTOPPED(status)) {
        StopWithJob(job);
        continue;
      }
      end->status = FromWaitStatus(status);
      return;
    }
    const std::int64_t now = NowMs();
    stopper.Tick();
    if (limit_at_ms != 0 && now >= limit_at_ms && !limit_over) {
      limit_over = end->hit_limit = true;
      stopper.Ask(SIGTERM);
    }
    if (sample_at_ms != 0 && now >= sample_at_ms) {
      request.sample();
      sample_at_ms = now + request.sample_ms;
    }
    std::int64_t wake_ms = -1;
    const auto by = [&](std::int64_t at_ms) {
      if (at_ms == 0) return;
      const std::int64_t left = std::clamp<std::int64_t>(at_ms - now, 1, 3'600'000);
      if (wake_ms < 0 || left < wake_ms) wake_ms = left;
    };
    by(limit_over ? 0 : limit_at_ms);
    by(sample_at_ms);
    by(stopper.kill_at_ms());
    pollfd items[2] = {{signals->fd(), POLLIN, 0}, {holder, POLLIN, 0}};
    ::poll(items, 2, static_cast<int>(wake_ms));
    while (const auto stop = signals->NextStop()) {
      end->stopped_by = *stop;
      stopper.Ask(*stop);
    }
    if (holder >= 0 && items[1].revents != 0) {
      stopper.Kill();
      end->stopped_by = SIGKILL;
      holder = -1;
    }
  }
}

}  // namespace

Result<RunnerSignals> RunnerSignals::Block() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kStopSignals) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGCHLD, SIG_DFL);  // a caller that ignores it would make waitpid lose the status
  RunnerSignals signals;
  signals.fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.fd_.valid()) return Fail(ErrorKind::kIo, "watch", "signals", std::strerror(errno));
  return signals;
}

std::optional<int> RunnerSignals::NextStop() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == ssize_t(sizeof info))
    if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
  return std::nullopt;
}

Result<JobEnd> RunJobProcess(const JobRequest& request, RunnerSignals* signals) {
  CRUCIBLE_CHECK(!request.argv.empty(), "a job needs a command");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<pid_t> earlier = OwnChildren();  // of the program that exec'ed into this one
  const std::set<pid_t> keep(earlier.begin(), earlier.end());
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    return Fail(ErrorKind::kIo, "create", "pipe", std::strerror(errno));
  const UniqueFd report_read(report[0]);
  UniqueFd report_write(report[1]);
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  if (terminal) ::signal(SIGTTOU, SIG_IGN);
  const pid_t runner = ::getpid();
  ExecWords words(request);
  const pid_t job = Fork(request.cgroup);
  if (job < 0)
    return Fail(ErrorKind::kIo, "start", request.argv[0], std::strerror(errno),
                "check the machine's process limit");
  if (job == 0) BecomeJob(request, &words, runner, terminal, report[1]);
  ::setpgid(job, job);  // here too: a signal to the group must not come before the child's own call
  report_write.Reset();
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(report_read.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    ::waitpid(job, nullptr, 0);
    if (terminal) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
    if (error == ENOENT)
      return Fail(ErrorKind::kNotFound, "run", request.argv[0], "there is no such command",
                  "check its name and PATH");
    return Fail(ErrorKind::kUnavailable, "run", request.argv[0], std::strerror(error),
                "check its permissions");
  }
  if (request.started) request.started();
  JobEnd end;
  Supervise(job, terminal, request, signals, &end);
  end.ended_ms = SystemClock().UnixMs();
  if (terminal) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
  KillCgroup(request.cgroup);
  end.left = KillChildren(keep, kDrainMs);
  RemoveCgroup(request.cgroup);
  return end;
}

}  // namespace crucible
