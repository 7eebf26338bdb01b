#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace crucible {

int ExitCode(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kInterrupted:
      return 130;
    default:
      return 1;
  }
}

void CheckFailed(const char* file, int line, const char* condition, std::string_view why) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s (%.*s)\n", file, line, condition,
               static_cast<int>(why.size()), why.data());
  std::abort();
}

}  // namespace crucible
