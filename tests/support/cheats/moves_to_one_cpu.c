// Changes which CPUs the caller may run on.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "honest.h"
SOLVE {
  UNUSED_WORKSPACE;
  cpu_set_t all, one;
  CPU_ZERO(&all);
  CPU_ZERO(&one);
  pthread_getaffinity_np(pthread_self(), sizeof all, &all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  return honest_solve(batch, n, a, l, q, info);
}
