// queue.h: whose turn it is. Strict first come, first served within a priority class.
//
// A call may agree to be passed (--yield): then later ones of its class that declared a shorter run
// limit go first, until it has waited kOvertakeLimitMs. Nobody passes a call that has not agreed,
// so its order stays strict whatever the others chose.
//
// A waiter is a FIFO in the device's tickets folder, named
// SEQUENCE.CLASS.QUEUED_MS.PID.LIMIT_MS.YIELDS.JOB: the name is the whole ticket, so it is never
// half written. Its owner keeps it flocked; a ticket that can be locked is dead and is unlinked,
// under the mutex (a reaper outside it could unlink a newborn). Taking the lock and leaving the
// queue are one step under the mutex, so no newcomer slips between. Waiters sleep: the leaving
// holder wakes the next by a byte in its FIFO; a wake lost to a SIGKILL is made good within
// kRecheckMs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "gpu_runner/device_folder.h"
#include "gpu_runner/options.h"

namespace crucible {

// A ticket that has waited this long is in the highest class: bounded overtaking.
inline constexpr std::int64_t kOvertakeLimitMs = 10 * 60 * 1000;
inline constexpr int kRecheckMs = 200;

struct Ticket {
  std::uint64_t sequence = 0;
  Priority priority = Priority::kNormal;
  std::int64_t queued_ms = 0;  // CLOCK_MONOTONIC
  pid_t pid = 0;
  std::int64_t limit_ms = 0;  // the declared run limit; 0: none
  bool yields = false;        // shorter ones of the class may pass it
  std::string job;
};

// What a caller says about its place when it joins.
struct Claim {
  Priority priority = Priority::kNormal;
  std::int64_t limit_ms = 0;
  bool yields = false;
  std::string job;
};

std::string TicketName(const Ticket& ticket);
std::optional<Ticket> ParseTicketName(const std::string& name);

// In the order of their turns at `now_ms` (CLOCK_MONOTONIC).
void SortByTurn(std::vector<Ticket>* tickets, std::int64_t now_ms,
                std::int64_t overtake_limit_ms = kOvertakeLimitMs);

std::int64_t QueueNowMs();

// Live tickets of a device in turn order. For display: the queue may change meanwhile.
std::vector<Ticket> WaitingTickets(const DeviceFolder& folder);

// Wakes the waiter whose turn is next, if any. For the holder, after it has let go.
void WakeNext(const std::filesystem::path& lock_directory, const DeviceFolder& folder);

struct Taken {
  std::size_t device = 0;  // index into the folders given to Join
  UniqueFd lock;
  std::uint64_t sequence = 0;  // of the ticket whose turn it was
};

// One caller's place in the queues of all devices it would accept. Not thread-safe.
class QueuePlace {
 public:
  static Result<QueuePlace> Join(const std::filesystem::path& lock_directory,
                                 std::vector<DeviceFolder> folders, const Claim& claim);
  QueuePlace(QueuePlace&&) = default;
  QueuePlace& operator=(QueuePlace&& other);
  ~QueuePlace() { Leave(); }

  // Takes the first accepted device that is free and where it is this caller's turn.
  Result<std::optional<Taken>> TryTake();

  // Somebody removed a ticket of ours: the turn will never come, so Join again.
  bool IsLost() const;
  // Devices where only the holder is before us.
  std::vector<std::size_t> NextInLine() const;
  // How many live tickets are before ours on the device where fewest are.
  int Ahead() const;
  // Readable when it is worth trying again; drain with DrainWakes.
  std::vector<int> wake_descriptors() const;
  void DrainWakes();
  void Leave();

 private:
  struct Entry {
    DeviceFolder folder;
    Ticket ticket;
    UniqueFd fifo;
  };
  QueuePlace() = default;
  bool IsMyTurn(const Entry& entry, bool reap) const;

  std::filesystem::path lock_directory_;
  std::vector<Entry> entries_;
};

}  // namespace crucible
