#include "gpu_runner/queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/files.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

std::vector<Ticket> ReadTickets(const fs::path& folder) {
  std::vector<Ticket> tickets;
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return tickets;
  while (const dirent* item = ::readdir(directory))
    if (auto ticket = ParseTicketName(item->d_name)) tickets.push_back(std::move(*ticket));
  ::closedir(directory);
  SortByTurn(&tickets, QueueNowMs());
  return tickets;
}

UniqueFd OpenTicket(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
}

bool IsOwned(const fs::path& path) {
  const UniqueFd fd = OpenTicket(path);
  if (!fd.valid()) return errno == EACCES;  // another user's: its owner opens it to all, so newborn
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// The next number, kept in <tickets>/../sequence. Call under the mutex.
Result<std::uint64_t> NextSequence(const fs::path& tickets, std::uint64_t at_least) {
  const fs::path path = tickets.parent_path() / "sequence";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) {
    fd = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (fd.valid()) ::fchmod(fd.get(), 0666);
  }
  char text[32] = {};
  std::uint64_t last = 0;
  if (fd.valid() && ::pread(fd.get(), text, sizeof text - 1, 0) > 0)
    std::from_chars(text, text + std::strlen(text), last);
  const std::uint64_t next = std::max(last, at_least) + 1;
  const std::string line = fmt::format("{:020}\n", next);
  if (!fd.valid() || ::pwrite(fd.get(), line.data(), line.size(), 0) != ssize_t(line.size()))
    return Fail(ErrorKind::kIo, "number a ticket in", path.string(), std::strerror(errno),
                "check free space and permissions of the lock directory");
  return next;
}

void Wake(const fs::path& path) {
  const UniqueFd fd = OpenTicket(path);
  if (fd.valid() && ::write(fd.get(), "w", 1) < 0) return;  // a full FIFO wakes as well
}

}  // namespace

std::string TicketName(const Ticket& ticket) {
  return fmt::format("{:020}.{}.{}.{}.{}.{:d}.{}", ticket.sequence,
                     static_cast<int>(ticket.priority), ticket.queued_ms, ticket.pid,
                     ticket.limit_ms, ticket.yields, ticket.job);
}

std::optional<Ticket> ParseTicketName(const std::string& name) {
  Ticket ticket;
  int priority = -1, yields = -1;
  const char* next = name.data();
  const char* end = next + name.size();
  const auto number = [&](auto* value) {
    const auto parsed = std::from_chars(next, end, *value);
    if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '.') return false;
    next = parsed.ptr + 1;
    return true;
  };
  if (!number(&ticket.sequence) || !number(&priority) || !number(&ticket.queued_ms) ||
      !number(&ticket.pid) || !number(&ticket.limit_ms) || !number(&yields) || next == end ||
      priority < 0 || priority > 2 || yields < 0 || yields > 1)
    return std::nullopt;
  ticket.yields = yields == 1;
  ticket.priority = static_cast<Priority>(priority);
  ticket.job = std::string(next, end);
  return ticket;
}

void SortByTurn(std::vector<Ticket>* tickets, std::int64_t now_ms, std::int64_t overtake_limit_ms) {
  const auto rank = [&](const Ticket& ticket) {
    if (now_ms - ticket.queued_ms >= overtake_limit_ms) return 0;
    return static_cast<int>(ticket.priority);
  };
  std::sort(tickets->begin(), tickets->end(), [&](const Ticket& a, const Ticket& b) {
    return std::pair(rank(a), a.sequence) < std::pair(rank(b), b.sequence);
  });
  const auto may_pass = [&](const Ticket& later, const Ticket& earlier) {
    return earlier.yields && now_ms - earlier.queued_ms < overtake_limit_ms &&
           rank(later) == rank(earlier) && later.limit_ms > 0 &&
           (earlier.limit_ms == 0 || later.limit_ms < earlier.limit_ms);
  };
  // Each in order of arrival passes those right before it that let it: one that does not is a wall.
  for (std::size_t i = 1; i < tickets->size(); ++i)
    for (std::size_t j = i; j > 0 && may_pass((*tickets)[j], (*tickets)[j - 1]); --j)
      std::swap((*tickets)[j], (*tickets)[j - 1]);
}

std::int64_t QueueNowMs() { return SystemClock().MonotonicNs() / 1'000'000; }

std::vector<Ticket> WaitingTickets(const DeviceFolder& folder) {
  std::vector<Ticket> tickets = ReadTickets(folder.tickets());
  std::erase_if(tickets, [&](const Ticket& ticket) {
    return !IsOwned(folder.tickets() / TicketName(ticket));
  });
  return tickets;
}

void WakeNext(const fs::path& lock_directory, const DeviceFolder& folder) {
  const auto mutex = LockQueueMutex(lock_directory);
  for (const Ticket& ticket : ReadTickets(folder.tickets())) {
    const fs::path path = folder.tickets() / TicketName(ticket);
    if (!IsOwned(path)) continue;
    Wake(path);
    return;
  }
}

Result<QueuePlace> QueuePlace::Join(const fs::path& lock_directory,
                                    std::vector<DeviceFolder> folders, const Claim& claim) {
  QueuePlace place;
  place.lock_directory_ = lock_directory;
  CRUCIBLE_ASSIGN(const UniqueFd mutex, LockQueueMutex(lock_directory));
  for (DeviceFolder& folder : folders) {
    std::uint64_t last = 0;
    for (const Ticket& ticket : ReadTickets(folder.tickets()))
      last = std::max(last, ticket.sequence);
    Ticket ticket{0,        claim.priority, QueueNowMs(), ::getpid(), claim.limit_ms, claim.yields,
                  claim.job};
    CRUCIBLE_ASSIGN(ticket.sequence, NextSequence(folder.tickets(), last));
    const fs::path path = folder.tickets() / TicketName(ticket);
    if (::mkfifo(path.c_str(), 0666) != 0)
      return Fail(ErrorKind::kIo, "create ticket", path.string(), std::strerror(errno),
                  "check the permissions of the lock directory");
    ::chmod(path.c_str(), 0666);
    Entry entry{std::move(folder), ticket, OpenTicket(path)};
    // Blocking: a reader outside the mutex may hold it shared for a microsecond.
    if (!entry.fifo.valid() || ::flock(entry.fifo.get(), LOCK_EX) != 0) {
      ::unlink(path.c_str());
      return Fail(ErrorKind::kIo, "lock ticket", path.string(), std::strerror(errno));
    }
    place.entries_.push_back(std::move(entry));
  }
  return place;
}

QueuePlace& QueuePlace::operator=(QueuePlace&& other) {
  Leave();
  lock_directory_ = std::move(other.lock_directory_);
  entries_ = std::exchange(other.entries_, {});
  return *this;
}

bool QueuePlace::IsLost() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return ::access((entry.folder.tickets() / TicketName(entry.ticket)).c_str(), F_OK) != 0;
  });
}

bool QueuePlace::IsMyTurn(const Entry& entry, bool reap) const {
  for (const Ticket& ticket : ReadTickets(entry.folder.tickets())) {
    if (ticket.sequence == entry.ticket.sequence) return true;
    const fs::path path = entry.folder.tickets() / TicketName(ticket);
    if (IsOwned(path)) return false;
    if (reap) ::unlink(path.c_str());
  }
  return false;  // our ticket is gone: see IsLost
}

Result<std::optional<Taken>> QueuePlace::TryTake() {
  const bool maybe = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return !entry.folder.IsLocked() && IsMyTurn(entry, false);
  });
  if (!maybe) return std::nullopt;
  CRUCIBLE_ASSIGN(const UniqueFd mutex, LockQueueMutex(lock_directory_));
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!IsMyTurn(entries_[i], true)) continue;
    CRUCIBLE_ASSIGN(UniqueFd lock, entries_[i].folder.TryLock());
    if (!lock.valid()) continue;
    for (const Entry& entry : entries_) {
      ::unlink((entry.folder.tickets() / TicketName(entry.ticket)).c_str());
      for (const Ticket& ticket : ReadTickets(entry.folder.tickets())) {
        // The next one now knows its place; on a device not taken here it may start at once.
        const fs::path path = entry.folder.tickets() / TicketName(ticket);
        if (!IsOwned(path)) continue;
        Wake(path);
        break;
      }
    }
    const std::uint64_t sequence = entries_[i].ticket.sequence;
    entries_.clear();
    return Taken{i, std::move(lock), sequence};
  }
  return std::nullopt;
}

std::vector<std::size_t> QueuePlace::NextInLine() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (IsMyTurn(entries_[i], false)) result.push_back(i);
  return result;
}

int QueuePlace::Ahead() const {
  int least = -1;
  for (const Entry& entry : entries_) {
    int ahead = 0;
    for (const Ticket& ticket : WaitingTickets(entry.folder)) {
      if (ticket.sequence == entry.ticket.sequence) break;
      ++ahead;
    }
    if (least < 0 || ahead < least) least = ahead;
  }
  return std::max(least, 0);
}

std::vector<int> QueuePlace::wake_descriptors() const {
  std::vector<int> result;
  for (const Entry& entry : entries_) result.push_back(entry.fifo.get());
  return result;
}

void QueuePlace::DrainWakes() {
  char buffer[256];
  for (const Entry& entry : entries_)
    while (::read(entry.fifo.get(), buffer, sizeof buffer) > 0) continue;
}

void QueuePlace::Leave() {
  if (entries_.empty()) return;
  std::vector<Entry> entries = std::move(entries_);
  entries_.clear();
  {
    const auto mutex = LockQueueMutex(lock_directory_);
    for (Entry& entry : entries) {
      ::unlink((entry.folder.tickets() / TicketName(entry.ticket)).c_str());
      entry.fifo.Reset();
    }
  }
  for (const Entry& entry : entries) WakeNext(lock_directory_, entry.folder);
}

}  // namespace crucible
