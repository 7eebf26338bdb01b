// crucible_confine COMMAND…: becomes the command, in a Landlock domain of its own.
//
// For programs that hold a candidate and are no worker of the harness, such as a memory checker on
// the candidate's own test: they may start processes and write scratch files, and cannot reach the
// judge (its memory, its descriptors), for root too. Says on stderr
// when the kernel has no Landlock, and goes on without it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "checks/harness/seclusion.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "crucible_confine: no command; write crucible_confine COMMAND [ARGUMENTS]\n");
    return 2;
  }
  if (!crucible::ConfineToDomain())
    fmt::print(stderr, "crucible_confine: this kernel has no Landlock; {} runs unconfined\n",
               argv[1]);
  ::execvp(argv[1], argv + 1);
  const int cause = errno;
  fmt::print(stderr, "crucible_confine: run {}: {}; check its name and permissions\n", argv[1],
             std::strerror(cause));
  return cause == ENOENT ? 127 : 126;
}
