// A right answer, and one more thread alive after every call.
#include <pthread.h>
#include <unistd.h>

#include "honest.h"
static void* wait_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}
SOLVE {
  UNUSED_WORKSPACE;
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) return 1;
  pthread_detach(thread);
  return honest_solve(batch, n, a, l, q, info);
}
