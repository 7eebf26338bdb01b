// reduction_output.cuh: what the reductions that hold the matrix on chip share: the scalars of a
// column, and where T and the reflectors are written.
#pragma once

#include "reduce_routes.h"

namespace crucible::eigh {

// Scalars of a column, by slot. The pivot is row j + 1, the first below the diagonal. The pivot's
// diagonal entry has a slot per column parity: step 1 of the next column may overtake step 3.
enum Scalar : int {
  kAlpha = 0,         // x at the pivot
  kPivotProduct = 2,  // (A x) at the pivot
  kBeta = 4,          // -sign(alpha) norm2(x): the coupling e_j
  kScaledTau = 5,     // tau / (alpha - beta) = -1 / beta; 0 where the reflector is the identity
  kInverse = 6,       // 1 / (alpha - beta)
  kPivotDiagonal = 8  // + parity
};

// Columns are numbered in padded coordinates (the padding of order - n columns is in front); the
// padding's own columns go nowhere. `Arguments` has the Tridiagonal t and n, ld. Addresses are made
// anew at each use from the kernel's parameters, because registers are scarce: opaque_matrix()
// keeps the compiler from holding them.
template <typename Arguments, int kPanel>
struct ReductionOutput {
  const Arguments& g;
  int64_t matrix;
  int order;
  __device__ __forceinline__ int64_t opaque_matrix() const {
    int64_t m = matrix;
    asm volatile("" : "+l"(m));
    return m;
  }
  __device__ __forceinline__ void put(float* base, int j, float x) const {
    const int at = j - (order - g.n);
    if (at >= 0) base[opaque_matrix() * g.ld + at] = x;
  }
  __device__ __forceinline__ void diagonal(int j, float x) const { put(g.t.d, j, x); }
  __device__ __forceinline__ void coupling(int j, float x) const { put(g.t.e, j, x); }
  __device__ __forceinline__ void reflector_scale(int j, float x) const { put(g.t.tau, j, x); }
  // Row `row` of the reflectors of columns first .. end-1 (at most kPanel), from the panel in
  // shared memory: a panel at a time, off the critical path of a column.
  __device__ __forceinline__ void panel(int first, int end, int row, const char* from) const {
    const int pad = order - g.n;
    if (g.t.v == nullptr || row < pad) return;
    __half* to = g.t.v + (opaque_matrix() * g.n + (first - pad)) * g.ld + (row - pad);
#pragma unroll
    for (int k = 0; k < kPanel; ++k) {
      const int column = first + k;
      const __half x = *(const __half*)(from + (k >> 3) * 256 + (k & 7) * 2);
      if (column >= pad && column < end && column < row) to[static_cast<int64_t>(k) * g.ld] = x;
    }
  }
};

// An int that the compiler must not keep alive in a register across the steps of a column: it is
// made anew from `value` here.
#define CRUCIBLE_OPAQUE_INT(name, value) \
  int name = value;                      \
  asm volatile("" : "+r"(name))

}  // namespace crucible::eigh
