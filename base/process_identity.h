// process_identity.h: which process was meant, and whether it still runs.
//
// Pids repeat, so a pid alone proves nothing: an identity is (pid, start time in clock ticks since
// boot, boot id). Used by the runner's holder records, by missions, and by the sweeps that clean up
// after a killed process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crucible {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string boot_id;            // /proc/sys/kernel/random/boot_id

  bool operator==(const ProcessIdentity&) const = default;
};

ProcessIdentity IdentityOf(pid_t pid);  // pid 0 when there is no such process
ProcessIdentity OwnIdentity();

// True while exactly that process runs; a zombie counts as dead.
bool IsAlive(const ProcessIdentity& identity);

// "PID:TICKS:BOOT_ID", for environment variables and rows.
std::string ToText(const ProcessIdentity& identity);
ProcessIdentity ProcessIdentityFromText(std::string_view text);  // pid 0 when malformed

// Parent of a process, 0 when unknown.
pid_t ParentOf(pid_t pid);

// Processes of this user whose initial environment holds NAME=VALUE; never the caller itself.
std::vector<pid_t> ProcessesWithEnvironment(std::string_view name, std::string_view value);

// SIGKILLs all of them until none is left or `timeout_ms` ran out; returns how many were killed.
int KillByEnvironment(std::string_view name, std::string_view value, int timeout_ms);

}  // namespace crucible
