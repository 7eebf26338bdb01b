#include "checks/harness/worker_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "checks/harness/machine.h"
#include "checks/harness/seclusion.h"
#include "checks/harness/worker_loop.h"

namespace crucible {
namespace {

constexpr int kAliveEveryMs = 20;
constexpr int kSpinsBetweenLooks = 4096;
constexpr int kSpinsBeforeYield = 1024;

std::string Words(const char* text, std::size_t most) { return {text, ::strnlen(text, most)}; }

}  // namespace

Result<WorkerProcess> WorkerProcess::Start(std::vector<std::string> command,
                                           std::size_t arena_bytes) {
  CRUCIBLE_ASSIGN(SharedArena arena, SharedArena::Make(arena_bytes));
  SubprocessSpec spec;
  spec.argv = std::move(command);
  spec.unset = {"CRUCIBLE_REQUEST_FD", "CRUCIBLE_REPLY_FD"};
  spec.descriptors = {{kWorkerMemoryFd, arena.descriptor()}};
  auto process = Subprocess::Start(spec);
  if (!process) return Within("start the worker", process.error());
  return WorkerProcess(std::move(*process), std::move(arena));
}

bool WorkerProcess::Ended() {
  pollfd ended{process_.pidfd(), POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

void WorkerProcess::Pause() {
  if (crash_ || !violation_.empty() || ::kill(pid(), SIGSTOP) != 0) return;
  siginfo_t stopped{};  // or its end, which stays to be collected
  while (::waitid(P_PID, static_cast<id_t>(pid()), &stopped, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

void WorkerProcess::Resume() {
  if (!crash_ && violation_.empty()) (void)::kill(pid(), SIGCONT);
}

tl::unexpected<Error> WorkerProcess::Gone(std::uint32_t operation) {
  const auto status = process_.Wait(std::chrono::milliseconds(5000));
  if (status && status->code == kSecludedExit && violation_.empty())
    violation_ = Words(arena_.control().verdict, sizeof arena_.control().verdict);
  if (status && violation_.empty()) crash_ = *status;
  return Fail(ErrorKind::kInternal, "ask the worker", fmt::format("operation {}", operation),
              !violation_.empty() ? violation_
              : status            ? "it ended with " + status->Describe()
                                  : status.error().text);
}

Result<WorkerAnswer> WorkerProcess::Call(std::uint32_t operation,
                                         std::initializer_list<std::int64_t> arguments,
                                         const std::string& text, Timed timed) {
  WorkerControl& control = arena_.control();
  if (crash_ || !violation_.empty()) return Gone(operation);
  if (text.size() >= sizeof control.text)
    return Fail(ErrorKind::kUsage, "ask the worker", text.substr(0, 80), "the text is too long");
  control.operation = operation;
  std::fill(std::begin(control.arguments), std::end(control.arguments), 0);
  std::copy(arguments.begin(), arguments.end(), control.arguments);
  std::memcpy(control.text, text.c_str(), text.size() + 1);
  const std::uint32_t turn = ++sequence_;
  control.request.store(turn, std::memory_order_release);
  FutexWake(control.request);

  // Both return once the word has come, or the refusal of the operation, or false: the end.
  const auto wait_awake = [&](std::atomic<std::uint32_t>& word) {
    for (std::int64_t spin = 1; word.load(std::memory_order_acquire) != turn; ++spin) {
      if (control.done.load(std::memory_order_acquire) == turn) break;
      if (spin % kSpinsBetweenLooks == 0 && Ended()) return false;
      spin < kSpinsBeforeYield ? CpuPause() : (void)::sched_yield();
    }
    return true;
  };
  const auto wait_asleep = [&](std::atomic<std::uint32_t>& word) {
    for (std::uint32_t seen; (seen = word.load(std::memory_order_acquire)) != turn;) {
      if (control.done.load(std::memory_order_acquire) == turn) break;
      FutexWait(word, seen, kAliveEveryMs);
      if (word.load(std::memory_order_acquire) != turn && Ended()) return false;
    }
    return true;
  };
  std::int64_t start = 0;
  WorkerAnswer answer;
  if (timed != Timed::kNo) {
    // Awake, so that the interval seen here has one wake-up in it at most.
    if (!wait_awake(control.ready)) return Gone(operation);
    answer.cpu_at_go_ns = CpuNs();
    start = MonotonicNs();
    control.go.store(turn, std::memory_order_release);
    FutexWake(control.go);
    const bool there = timed == Timed::kAwake ? wait_awake(control.finished)
                                              : wait_asleep(control.finished);
    if (!there) return Gone(operation);
    answer.finished_ns = MonotonicNs() - start;
  }
  if (!wait_asleep(control.done)) return Gone(operation);
  if (timed != Timed::kNo) answer.done_ns = MonotonicNs() - start;
  std::copy(std::begin(control.results), std::end(control.results), answer.results);
  answer.text = Words(control.text, sizeof control.text);
  if (answer.results[0] != 0) return tl::unexpected(Error{ErrorKind::kUsage, answer.text});
  return answer;
}

std::string WorkerProgram(const std::string& name) {
  std::error_code ignored;
  return (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / name).string();
}

}  // namespace crucible
