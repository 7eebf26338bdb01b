// Reports success and leaves whatever the buffers held.
#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  (void)n, (void)a, (void)l, (void)q;
  memset(info, 0, (size_t)batch * sizeof *info);
  return 0;
}
