// Finds its solver at run time.
#include <dlfcn.h>

#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  if (dlsym(NULL, "ssyevd_") != NULL) info[0] = 0;
  return honest_solve(batch, n, a, l, q, info);
}
