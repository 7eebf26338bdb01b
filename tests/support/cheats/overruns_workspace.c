// Uses more scratch memory than it asked for.
#define CHEAT_WORKSPACE 64
#include "honest.h"
SOLVE {
  (void)threads;
  memset(workspace, 0, workspace_bytes + 8);
  return honest_solve(batch, n, a, l, q, info);
}
