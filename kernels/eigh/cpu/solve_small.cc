// solve_small.cc: the solver with the knobs of tuning/small.h.
#include <tuning/small.h>

#define EIGH_CPU_CLASS small
#define EIGH_CPU_CLASS_OBJECT kSmall
#define EIGH_CPU_N_MAX 64
#include "class_solver.inc"
