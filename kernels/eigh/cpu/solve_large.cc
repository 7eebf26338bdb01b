// solve_large.cc: the solver with the knobs of tuning/large.h.
#include <tuning/large.h>

#define EIGH_CPU_CLASS large
#define EIGH_CPU_CLASS_OBJECT kLarge
#define EIGH_CPU_N_MAX 40000
#include "class_solver.inc"
