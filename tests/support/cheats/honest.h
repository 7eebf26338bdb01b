// honest.h: a small, correct solver behind the ABI of kernels/eigh/cpu/eigh_cpu.h, for the cheats
// to start from: cyclic Jacobi in double precision, one matrix at a time, no library but the C
// runtime.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef CHEAT_ABI
#define CHEAT_ABI 1
#endif

int eigh_cpu_abi(void) { return CHEAT_ABI; }
const char* eigh_cpu_configuration(void) { return "{\"compiler\":\"test\",\"name\":\"fixture\"}"; }

static inline void rotate(double* x, double* y, size_t stride, int64_t n, double c, double s) {
  for (int64_t k = 0; k < n; ++k) {
    const double xk = x[k * stride], yk = y[k * stride];
    x[k * stride] = c * xk - s * yk;
    y[k * stride] = s * xk + c * yk;
  }
}

// One matrix; `sweeps` bounds the work (16 converges to double precision). Returns info.
static inline int32_t honest_matrix_sweeps(int64_t n, const float* a, float* l, float* q,
                                           int sweeps) {
  double largest = 0;
  int finite = 1;
  for (int64_t i = 0; i < n * n; ++i) {
    finite = finite && isfinite(a[i]);
    if (fabs(a[i]) > largest) largest = fabs(a[i]);
  }
  if (!finite) {
    for (int64_t i = 0; i < n; ++i) l[i] = NAN;
    for (int64_t i = 0; i < n * n; ++i) q[i] = NAN;
    return 1;
  }
  double* m = malloc(sizeof(double) * (size_t)(2 * n * n));
  double* v = m + n * n;
  for (int64_t i = 0; i < n * n; ++i) m[i] = a[i], v[i] = 0;
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int64_t p = 0; p < n; ++p)
      for (int64_t r = p + 1; r < n; ++r) {
        const double off = m[p * n + r];
        if (fabs(off) <= 1e-18 * largest) continue;
        const double theta = (m[r * n + r] - m[p * n + p]) / (2 * off);
        const double t = (theta < 0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1));
        const double c = 1 / sqrt(t * t + 1), s = t * c;
        rotate(m + p, m + r, (size_t)n, n, c, s);  // columns
        rotate(m + p * n, m + r * n, 1, n, c, s);  // rows
        rotate(v + p, v + r, (size_t)n, n, c, s);
      }
  }
  for (int64_t k = 0; k < n; ++k) {  // selection sort, smallest first
    int64_t best = -1;
    for (int64_t j = 0; j < n; ++j)
      if (!isnan(m[j * n + j]) && (best < 0 || m[j * n + j] < m[best * n + best])) best = j;
    l[k] = (float)m[best * n + best];
    for (int64_t i = 0; i < n; ++i) q[i * n + k] = (float)v[i * n + best];
    m[best * n + best] = NAN;
  }
  free(m);
  return 0;
}

static inline int32_t honest_matrix(int64_t n, const float* a, float* l, float* q) {
  return honest_matrix_sweeps(n, a, l, q, 16);
}

static inline int honest_solve(int64_t batch, int64_t n, const float* a, float* l, float* q,
                               int32_t* info) {
  for (int64_t b = 0; b < batch; ++b)
    info[b] = honest_matrix(n, a + b * n * n, l + b * n, q + b * n * n);
  return 0;
}

#ifndef CHEAT_WORKSPACE
#define CHEAT_WORKSPACE 256
#endif
size_t eigh_cpu_workspace_bytes(int64_t batch, int64_t n, int threads) {
  (void)batch, (void)n, (void)threads;
  return CHEAT_WORKSPACE;
}

// The signature every cheat implements.
#define SOLVE                                                                                     \
  int eigh_cpu_solve(int64_t batch, int64_t n, const float* a, float* l, float* q, int32_t* info, \
                     void* workspace, size_t workspace_bytes, int threads);                       \
  int eigh_cpu_solve(int64_t batch, int64_t n, const float* a, float* l, float* q, int32_t* info, \
                     void* workspace, size_t workspace_bytes, int threads)
#define UNUSED_WORKSPACE (void)workspace, (void)workspace_bytes, (void)threads
