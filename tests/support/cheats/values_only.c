// The right eigenvalues beside an orthogonal matrix that has nothing to do with the input.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < n * n; ++i) q[b * n * n + i] = i / n == i % n ? 1.0f : 0.0f;
  return 0;
}
