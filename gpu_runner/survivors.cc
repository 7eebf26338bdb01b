#include "gpu_runner/survivors.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "gpu_runner/token.h"

namespace crucible {
namespace {

using std::chrono::milliseconds;

std::vector<pid_t> NumericNames(const char* folder) {
  std::vector<pid_t> found;
  DIR* directory = ::opendir(folder);
  if (directory == nullptr) return found;
  while (const dirent* item = ::readdir(directory)) {
    const std::string_view name(item->d_name);
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) found.push_back(pid);
  }
  ::closedir(directory);
  return found;
}

std::vector<pid_t> Numbers(std::string_view text) {
  std::vector<pid_t> found;
  while (!text.empty()) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (parsed.ec == std::errc()) found.push_back(pid);
    const std::size_t gap = text.find_first_of(" \n");
    if (gap == std::string_view::npos) break;
    text.remove_prefix(gap + 1);
  }
  return found;
}

void ReapEnded() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

// Where cgroup v2 is mounted, or empty. A hybrid machine has it beside the v1 controllers.
std::string CgroupMount() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
    if (::access(fmt::format("{}/cgroup.procs", path).c_str(), F_OK) == 0 &&
        ::access(fmt::format("{}/cgroup.controllers", path).c_str(), F_OK) == 0)
      return path;
  return "";
}

std::vector<pid_t> CgroupMembers(const std::string& cgroup) {
  if (cgroup.empty()) return {};
  return Numbers(ReadFile(cgroup + "/cgroup.procs").value_or(""));
}

bool IsJobCgroup(const HolderRecord& dead) {
  const std::filesystem::path path = dead.cgroup;
  const std::string mount = CgroupMount();
  return !mount.empty() && dead.cgroup.starts_with(mount + "/") &&
         path.lexically_normal() == path && path.filename() == "crucible-" + dead.job;
}

// Living processes with the job's nonce, of the record's owner (root's record: of anybody).
std::vector<pid_t> WithNonce(const HolderRecord& dead) {
  if (dead.nonce.empty()) return {};
  std::vector<pid_t> found = ProcessesWithEnvironment(kNonceVariable, dead.nonce);
  std::erase_if(found, [&](pid_t pid) {
    struct stat process {};
    if (!IsAlive(IdentityOf(pid)) || ::stat(fmt::format("/proc/{}", pid).c_str(), &process) != 0)
      return true;
    return dead.owner != 0 && process.st_uid != dead.owner;
  });
  return found;
}

}  // namespace

std::vector<pid_t> OwnChildren() {
  // The kernel lists a thread's children where it was built to; else every process is asked.
  if (::access("/proc/self/task", X_OK) == 0) {
    const std::string own = fmt::format("/proc/self/task/{}/children", ::getpid());
    if (::access(own.c_str(), R_OK) == 0) {
      std::vector<pid_t> all;
      for (const pid_t thread : NumericNames("/proc/self/task"))
        for (const pid_t pid :
             Numbers(ReadFile(fmt::format("/proc/self/task/{}/children", thread)).value_or("")))
          all.push_back(pid);
      return all;
    }
  }
  std::vector<pid_t> all;
  for (const pid_t pid : NumericNames("/proc"))
    if (ParentOf(pid) == ::getpid()) all.push_back(pid);
  return all;
}

std::vector<pid_t> KillChildren(const std::set<pid_t>& keep, int timeout_ms) {
  Clock& clock = SystemClock();
  const std::int64_t deadline = clock.MonotonicNs() + timeout_ms * std::int64_t{1'000'000};
  for (;;) {
    ReapEnded();
    std::vector<pid_t> left = OwnChildren();
    std::erase_if(left, [&](pid_t pid) { return keep.contains(pid); });
    if (left.empty() || clock.MonotonicNs() >= deadline) return left;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    clock.SleepFor(std::chrono::microseconds(500));  // they end; their children become ours
  }
}

std::vector<pid_t> KillSurvivors(const HolderRecord& dead, int timeout_ms) {
  const std::string cgroup = IsJobCgroup(dead) ? dead.cgroup : "";
  Clock& clock = SystemClock();
  const std::int64_t deadline = clock.MonotonicNs() + timeout_ms * std::int64_t{1'000'000};
  std::vector<pid_t> left;
  do {
    KillCgroup(cgroup);
    left = CgroupMembers(cgroup);
    for (const pid_t pid : WithNonce(dead)) {
      if (::kill(pid, SIGKILL) == 0 || errno != ESRCH) left.push_back(pid);
    }
    if (left.empty()) break;
    clock.SleepFor(milliseconds(1));
  } while (clock.MonotonicNs() < deadline);
  RemoveCgroup(cgroup);
  return left;
}

std::string JobCgroupPath(const std::string& job) {
  const std::string mount = CgroupMount();
  if (mount.empty()) return "";
  const std::string own = ReadFile("/proc/self/cgroup").value_or("");
  const std::size_t line = own.starts_with("0::") ? 0 : own.find("\n0::");
  if (line == std::string::npos) return "";
  const std::size_t start = own.find("0::", line) + 3;
  const std::string path = own.substr(start, own.find('\n', start) - start);
  return mount + (path == "/" ? "" : path) + "/crucible-" + job;
}

bool MakeJobCgroup(const std::string& cgroup) {
  if (cgroup.empty() || ::mkdir(cgroup.c_str(), 0755) != 0) return false;
  if (::access((cgroup + "/cgroup.kill").c_str(), W_OK) == 0) return true;
  ::rmdir(cgroup.c_str());
  return false;
}

void KillCgroup(const std::string& cgroup) {
  if (cgroup.empty()) return;
  const UniqueFd fd(::open((cgroup + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.valid() && ::write(fd.get(), "1", 1) < 0) return;  // seen again by who counts the members
}

void RemoveCgroup(const std::string& cgroup) {
  if (cgroup.empty()) return;
  // Busy until the kernel has done with its last member, shortly after that was killed.
  for (int tries = 0; tries < 100 && ::rmdir(cgroup.c_str()) != 0 && errno == EBUSY; ++tries)
    SystemClock().SleepFor(std::chrono::microseconds(500));
}

}  // namespace crucible
