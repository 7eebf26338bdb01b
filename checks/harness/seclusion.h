// seclusion.h: takes from a process what code that only computes never needs: writing to
// descriptors, opening files for writing, sockets, other processes, the clock, priorities.
//
// Irrevocable and inherited by every thread. Two layers: a system-call filter (seccomp), which ends
// the process the moment a forbidden call is made, and a Landlock domain, which also closes /proc
// of every process outside (memory, descriptors, ptrace), for root as well. What a kernel or a
// container does not offer is left out and said so. Call with one thread, before untrusted code.
#pragma once

#include <cstddef>
#include <string>

namespace crucible {

enum class Seclusion {
  kCompute,  // a CPU kernel: memory, threads, reading files
  kDevice,   // a GPU driver works in the process: it may also write, open devices and use ioctl
};

// Why a secluded process was stopped is written to `verdict` (zero-terminated, `bytes` long) before
// it ends with kSecludedExit. Returns the layers that hold: "seccomp+landlock", …, "none".
std::string Seclude(Seclusion level, char* verdict, std::size_t bytes);

// The domain alone, for a process that becomes a program with the candidate in it which must start
// others and write files of its own (a memory checker): processes outside stay closed to it, and it
// may write in /dev, /proc (its own files) and /tmp only. False where there is no Landlock.
bool ConfineToDomain();

inline constexpr int kSecludedExit = 97;

}  // namespace crucible
