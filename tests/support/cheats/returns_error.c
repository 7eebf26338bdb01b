// Fails and says so; a harness that ignores the code measures nothing.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  return 7;
}
