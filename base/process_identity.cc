#include "base/process_identity.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <set>

#include "base/clock.h"
#include "base/files.h"

namespace crucible {
namespace {

const std::string& BootId() {
  static const std::string id = [] {
    std::string text = ReadFile("/proc/sys/kernel/random/boot_id").value_or("");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }();
  return id;
}

struct Stat {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
};

// Fields of /proc/PID/stat after the command name, which may itself hold spaces and brackets.
bool ReadStat(pid_t pid, Stat* stat) {
  const auto text = ReadFile(fmt::format("/proc/{}/stat", pid));
  if (!text) return false;
  const std::size_t end = text->rfind(')');
  if (end == std::string::npos || end + 2 >= text->size()) return false;
  std::string_view rest = std::string_view(*text).substr(end + 2);
  for (int field = 3; field <= 22; ++field) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    if (field == 3 && !word.empty()) stat->state = word[0];
    if (field == 4) std::from_chars(word.data(), word.data() + word.size(), stat->parent);
    if (field == 22) std::from_chars(word.data(), word.data() + word.size(), stat->start_ticks);
    if (space == std::string_view::npos) return field == 22;
    rest.remove_prefix(space + 1);
  }
  return true;
}

}  // namespace

ProcessIdentity IdentityOf(pid_t pid) {
  Stat stat;
  if (pid <= 0 || !ReadStat(pid, &stat)) return {};
  return {pid, stat.start_ticks, BootId()};
}

ProcessIdentity OwnIdentity() { return IdentityOf(::getpid()); }

bool IsAlive(const ProcessIdentity& identity) {
  Stat stat;
  if (identity.pid <= 0 || !ReadStat(identity.pid, &stat)) return false;
  if (stat.state == 'Z' || stat.state == 'X') return false;
  return stat.start_ticks == identity.start_ticks && BootId() == identity.boot_id;
}

std::string ToText(const ProcessIdentity& identity) {
  return fmt::format("{}:{}:{}", identity.pid, identity.start_ticks, identity.boot_id);
}

ProcessIdentity ProcessIdentityFromText(std::string_view text) {
  ProcessIdentity identity;
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return {};
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string_view::npos) return {};
  const char* data = text.data();
  if (std::from_chars(data, data + first, identity.pid).ptr != data + first) return {};
  if (std::from_chars(data + first + 1, data + second, identity.start_ticks).ptr != data + second)
    return {};
  identity.boot_id = std::string(text.substr(second + 1));
  return identity;
}

pid_t ParentOf(pid_t pid) {
  Stat stat;
  return ReadStat(pid, &stat) ? stat.parent : 0;
}

std::vector<pid_t> ProcessesWithEnvironment(std::string_view name, std::string_view value) {
  std::vector<pid_t> found;
  const std::string wanted = std::string(name) + "=" + std::string(value);
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* item = ::readdir(proc)) {
    pid_t pid = 0;
    const std::string_view text(item->d_name);
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) continue;
    if (pid == ::getpid()) continue;
    const auto environment = ReadFile(fmt::format("/proc/{}/environ", pid));
    if (!environment) continue;
    std::string_view rest = *environment;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\0');
      if (rest.substr(0, end) == wanted) {
        found.push_back(pid);
        break;
      }
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  ::closedir(proc);
  return found;
}

int KillByEnvironment(std::string_view name, std::string_view value, int timeout_ms) {
  std::set<pid_t> killed;
  Clock& clock = SystemClock();
  const std::int64_t deadline = clock.MonotonicNs() + timeout_ms * std::int64_t{1'000'000};
  for (;;) {
    std::vector<pid_t> running;
    for (const pid_t pid : ProcessesWithEnvironment(name, value)) {
      Stat stat;
      if (ReadStat(pid, &stat) && stat.state != 'Z' && stat.state != 'X') running.push_back(pid);
    }
    if (running.empty()) break;
    for (const pid_t pid : running) {
      ::kill(pid, SIGKILL);
      killed.insert(pid);
    }
    if (clock.MonotonicNs() >= deadline) break;
    clock.SleepFor(std::chrono::milliseconds(2));
  }
  return static_cast<int>(killed.size());
}

}  // namespace crucible
