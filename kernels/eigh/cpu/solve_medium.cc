// solve_medium.cc: the solver with the knobs of tuning/medium.h.
#include <tuning/medium.h>

#define EIGH_CPU_CLASS medium
#define EIGH_CPU_CLASS_OBJECT kMedium
#define EIGH_CPU_N_MAX 256
#include "class_solver.inc"
