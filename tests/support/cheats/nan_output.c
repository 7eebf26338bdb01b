// One NaN among right answers.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  q[(batch - 1) * n * n] = NAN;
  return 0;
}
