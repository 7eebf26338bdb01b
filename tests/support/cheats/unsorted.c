// Every pair is right, in descending order.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t k = 0; k < n / 2; ++k)
      for (int64_t row = -1; row < n; ++row) {
        float* line = row < 0 ? l + b * n : q + b * n * n + row * n;
        const float swap = line[k];
        line[k] = line[n - 1 - k], line[n - 1 - k] = swap;
      }
  return 0;
}
