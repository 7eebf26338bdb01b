// No cheat: what the harness must let through.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  return honest_solve(batch, n, a, l, q, info);
}
