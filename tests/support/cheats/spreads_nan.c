// Answers a batch that holds one NaN with NaN everywhere.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  int finite = 1;
  for (int64_t i = 0; i < batch * n * n; ++i) finite = finite && isfinite(a[i]);
  honest_solve(batch, n, a, l, q, info);
  for (int64_t i = 0; !finite && i < batch * n; ++i) l[i] = NAN;
  return 0;
}
