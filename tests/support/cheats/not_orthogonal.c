// Every eigenvector is right up to its length.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  for (int64_t i = 0; i < batch * n * n; ++i) q[i] *= 1.01f;
  return 0;
}
