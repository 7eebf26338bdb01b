#include "checks/harness/seclusion.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace crucible {
namespace {

struct Forbidden {
  int call;
  const char* doing;
};

// Never needed, whatever the kernel.
constexpr Forbidden kForbidden[] = {
    {SYS_ptrace, "trace a process"},
    {SYS_process_vm_readv, "read another process's memory"},
    {SYS_process_vm_writev, "write another process's memory"},
    {SYS_pidfd_getfd, "take another process's descriptor"},
    {SYS_pidfd_send_signal, "send a signal to another process"},
    {SYS_execve, "start a program"},
    {SYS_execveat, "start a program"},
    {SYS_io_uring_setup, "make system calls through a ring"},
    {SYS_bpf, "load a program into the kernel"},
    {SYS_clock_settime, "set the clock"},
    {SYS_clock_adjtime, "set the clock"},
    {SYS_settimeofday, "set the clock"},
    {SYS_adjtimex, "set the clock"},
    {SYS_setpriority, "change its priority"},
    {SYS_sched_setscheduler, "change its priority"},
    {SYS_sched_setattr, "change its priority"},
    {SYS_sched_setparam, "change its priority"},
    {SYS_unlinkat, "remove a file"},
    {SYS_renameat2, "rename a file"},
    {SYS_truncate, "truncate a file"},
#if defined(__x86_64__)
    {SYS_fork, "start a process"},
    {SYS_vfork, "start a process"},
    {SYS_creat, "create a file"},
    {SYS_unlink, "remove a file"},
    {SYS_rename, "rename a file"},
#endif
};

// Only what computes and nothing else can do without.
constexpr Forbidden kForbiddenInCompute[] = {
    {SYS_socket, "open a socket"},
    {SYS_sendto, "send a message"},
    {SYS_sendmsg, "send a message"},
    {SYS_sendfile, "copy to a descriptor"},
    {SYS_splice, "copy to a descriptor"},
    {SYS_copy_file_range, "copy to a descriptor"},
    {SYS_perf_event_open, "open a performance counter"},
    {SYS_tkill, "send a signal to another process"},  // its thread may be anyone's
    // A timer works on while the process is not called; SIGCONT from one would even wake it.
    {SYS_setitimer, "set a timer"},
    {SYS_timer_create, "set a timer"},
    {SYS_timerfd_create, "set a timer"},
#if defined(__x86_64__)
    {SYS_alarm, "set a timer"},
#endif
};

// Allowed for descriptors 1 and 2, the log.
constexpr Forbidden kWrites[] = {{SYS_write, "write to descriptor"},
                                 {SYS_writev, "write to descriptor"},
                                 {SYS_pwrite64, "write to descriptor"},
                                 {SYS_pwritev, "write to descriptor"},
                                 {SYS_pwritev2, "write to descriptor"}};

constexpr Forbidden kOthers[] = {
#if defined(__x86_64__)
    {SYS_open, "open a file for writing"},
#endif
    {SYS_openat, "open a file for writing"},
    {SYS_clone, "start a process"},
    {SYS_kill, "send a signal to another process"},
    {SYS_tgkill, "send a signal to another process"},
    {SYS_rt_sigqueueinfo, "send a signal to another process"},
    {SYS_rt_tgsigqueueinfo, "send a signal to another process"},
};

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// A filter is a list of blocks, each for one call: it loads the call's number, and skips itself
// when that is another one.
class Filter {
 public:
  Filter() {
    Add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    Jump(BPF_JEQ, kArchitecture, 1, 0);
    Return(SECCOMP_RET_KILL_PROCESS);  // 32-bit calls have other numbers
#if defined(__x86_64__)
    Add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    Jump(BPF_JGE, 0x40000000, 0, 1);  // so have those of x32
    Return(SECCOMP_RET_KILL_PROCESS);
#endif
  }
  void Always(int call, std::uint32_t action) {
    Block(call, 1);
    Return(action);
  }
  // `action` when (argument & mask) == 0, or, with `set`, when it is not.
  void Masked(int call, int argument, std::uint32_t mask, bool set, std::uint32_t action) {
    Block(call, 4);
    LoadArgument(argument);
    Jump(BPF_JSET, mask, set ? 1 : 0, set ? 0 : 1);
    Return(SECCOMP_RET_ALLOW);
    Return(action);
  }
  // `action` unless the argument is one of two values.
  void Unless(int call, int argument, std::uint32_t one, std::uint32_t other,
              std::uint32_t action) {
    Block(call, 5);
    LoadArgument(argument);
    Jump(BPF_JEQ, one, 1, 0);
    Jump(BPF_JEQ, other, 0, 1);
    Return(SECCOMP_RET_ALLOW);
    Return(action);
  }
  // `action` unless the argument is this value.
  void Only(int call, int argument, std::uint32_t value, std::uint32_t action) {
    Block(call, 4);
    LoadArgument(argument);
    Jump(BPF_JEQ, value, 0, 1);
    Return(SECCOMP_RET_ALLOW);
    Return(action);
  }
  // `action` when it is.
  void When(int call, int argument, std::uint32_t value, std::uint32_t action) {
    Block(call, 4);
    LoadArgument(argument);
    Jump(BPF_JEQ, value, 0, 1);
    Return(action);
    Return(SECCOMP_RET_ALLOW);
  }
  bool Install() {
    Return(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void Add(std::uint16_t code, std::uint32_t k) { code_.push_back({code, 0, 0, k}); }
  void Jump(std::uint16_t test, std::uint32_t k, int yes, int no) {
    code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K),
                     static_cast<std::uint8_t>(yes), static_cast<std::uint8_t>(no), k});
  }
  void Return(std::uint32_t action) { Add(BPF_RET | BPF_K, action); }
  void Block(int call, int length) {
    Add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    Jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, length);
  }
  void LoadArgument(int argument) {  // its lower half
    Add(BPF_LD | BPF_W | BPF_ABS,
        static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument));
  }

  std::vector<sock_filter> code_;
};

char* g_verdict = nullptr;
std::size_t g_verdict_bytes = 0;

const char* Doing(int call) {
  for (const auto& list :
       {std::pair(std::begin(kForbidden), std::end(kForbidden)),
        std::pair(std::begin(kForbiddenInCompute), std::end(kForbiddenInCompute)),
        std::pair(std::begin(kWrites), std::end(kWrites)),
        std::pair(std::begin(kOthers), std::end(kOthers))})
    for (const Forbidden* item = list.first; item != list.second; ++item)
      if (item->call == call) return item->doing;
  return "make a forbidden system call";
}

// The offending thread's: the call was not made. snprintf with %s and %ld takes no lock.
void OnForbiddenCall(int, siginfo_t* info, void* context) {
#if defined(__x86_64__)
  const long first = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RDI];
#else
  const long first = static_cast<long>(static_cast<ucontext_t*>(context)->uc_mcontext.regs[0]);
#endif
  bool writes = false;
  for (const Forbidden& item : kWrites) writes = writes || item.call == info->si_syscall;
  if (writes)
    std::snprintf(g_verdict, g_verdict_bytes,
                  "tried to write to descriptor %ld: results are the harness's to send", first);
  else
    std::snprintf(g_verdict, g_verdict_bytes, "tried to %s (system call %d)",
                  Doing(info->si_syscall), info->si_syscall);
  ::_exit(kSecludedExit);
}

bool InstallFilter(Seclusion level) {
  const std::uint32_t trap = SECCOMP_RET_TRAP;
  const auto own = static_cast<std::uint32_t>(::getpid());
  Filter filter;
  // The frequent ones first: the list is walked for every call.
  if (level == Seclusion::kCompute)
    for (const Forbidden& item : kWrites) filter.Unless(item.call, 0, 1, 2, trap);
  for (const Forbidden& item : kForbidden) filter.Always(item.call, trap);
  if (level == Seclusion::kCompute) {
    for (const Forbidden& item : kForbiddenInCompute) filter.Always(item.call, trap);
    constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
    filter.Masked(SYS_openat, 2, kWriting, true, trap);
#if defined(__x86_64__)
    filter.Masked(SYS_open, 1, kWriting, true, trap);
#endif
    filter.Always(SYS_openat2, SECCOMP_RET_ERRNO | ENOSYS);
  }
  filter.Masked(SYS_clone, 0, CLONE_THREAD, false, trap);
  filter.Always(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);  // its flags lie in memory: use clone
  for (const int call : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
    filter.Only(call, 0, own, trap);
  // The handler above stays.
  filter.When(SYS_rt_sigaction, 0, SIGSYS, SECCOMP_RET_ERRNO | EPERM);
  return filter.Install();
}

// A domain that may read files, write below `writable`, and sees no process outside it.
bool EnterDomain(std::initializer_list<const char*> writable) {
  constexpr std::uint64_t kRead =
      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE;
  constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
                                   LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kRead | kWrite;
  const int rules = static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0));
  if (rules < 0) return false;
  const auto allow = [&](const char* path, std::uint64_t access) {
    landlock_path_beneath_attr rule{};
    rule.allowed_access = access;
    rule.parent_fd = ::open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0) return false;
    const bool added =
        ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    ::close(rule.parent_fd);
    return added;
  };
  bool held = allow("/", kRead);
  for (const char* folder : writable) held = allow(folder, kRead | kWrite) && held;
  held = held && ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  ::close(rules);
  return held;
}

}  // namespace

std::string Seclude(Seclusion level, char* verdict, std::size_t bytes) {
  g_verdict = verdict;
  g_verdict_bytes = bytes;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "none";
  struct sigaction action {};
  action.sa_sigaction = OnForbiddenCall;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) return "none";
  std::string layers;
  const bool domain = level == Seclusion::kDevice ? EnterDomain({"/dev", "/tmp"}) : EnterDomain({});
  if (InstallFilter(level)) layers = "seccomp";
  if (domain) layers += layers.empty() ? "landlock" : "+landlock";
  return layers.empty() ? "none" : layers;
}

bool ConfineToDomain() {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && EnterDomain({"/dev", "/proc", "/tmp"});
}

}  // namespace crucible
