// Scales its input in place, as a solver that destroys A does.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  ((float*)(uintptr_t)a)[batch * n * n - 1] *= 2;
  return 0;
}
