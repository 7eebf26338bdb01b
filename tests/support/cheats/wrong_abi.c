// Built against another version of the header.
#define CHEAT_ABI 2
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  return honest_solve(batch, n, a, l, q, info);
}
