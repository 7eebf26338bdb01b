// Lets a library that happens to be loaded in the harness do the work: no dependency of its own.
#include "honest.h"
void cblas_sscal(int n, float alpha, float* x, int stride);
SOLVE {
  UNUSED_WORKSPACE;
  honest_solve(batch, n, a, l, q, info);
  cblas_sscal((int)n, 1.0f, l, 1);
  return 0;
}
