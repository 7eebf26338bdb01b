// survivors.h: nothing of a job may be running when the next one starts.
//
// A job can leave processes in three ways: orphans of a living runner (they become its children,
// because it is a subreaper), everything of a runner that was SIGKILLed (found by the nonce in
// their environment), and processes that cleared their environment as well (found by the job's
// cgroup, where the machine lets us make one).
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "gpu_runner/device_folder.h"

namespace crucible {

// Children of this process, those of all its threads, zombies included.
std::vector<pid_t> OwnChildren();

// Kills and reaps every child, and the orphans that become children meanwhile, until none is left
// but `keep`. Returns the ones that could not be ended in `timeout_ms` (in the kernel, or another
// user's).
std::vector<pid_t> KillChildren(const std::set<pid_t>& keep, int timeout_ms);

// Ends what a dead runner's job left. Returns the pids that are still there after `timeout_ms`. The
// record lies where every user may write, so it is believed as far as its writer could go: only
// processes of the record's owner are ended, and only the cgroup that its job would have.
std::vector<pid_t> KillSurvivors(const HolderRecord& dead, int timeout_ms);

// Where a cgroup (v2) of the job's own would be, below this process's; empty where there is none.
std::string JobCgroupPath(const std::string& job);
bool MakeJobCgroup(const std::string& cgroup);  // false where that is not permitted
void KillCgroup(const std::string& cgroup);     // every process in it
void RemoveCgroup(const std::string& cgroup);   // when empty; else it stays for the next to remove

}  // namespace crucible
