// reflector_ops.cuh: the arithmetic of one Householder column that the on-chip reductions share.
//
// From x (the column below the diagonal, alpha its first entry) and the panel [V W] of the columns
// before: v = (x - beta e1) / (alpha - beta), H = I - tau v v^T, and the products V^T (x - beta e1)
// and W^T (x - beta e1) that correct A x for the updates that are still owed.
#pragma once

#include "tile_ops.cuh"

namespace crucible::eigh {

// A tail this short (against max|A| >= 0.5) is FP32 noise: the column counts as reduced.
constexpr float kTailSquared = 3.6e-15f;

struct ReflectorScalars {
  float beta, scaled_tau, inverse;  // slots kBeta, kScaledTau, kInverse of reduction_output.cuh
};
// `tail` is the sum of squares of x without alpha.
__device__ __forceinline__ ReflectorScalars make_reflector(float alpha, float tail) {
  float square = fmaf(alpha, alpha, tail), norm = square * fast_rsqrt(square),
        beta = -copysignf(norm, alpha), scaled_tau = -fast_reciprocal(beta),
        inverse = fast_reciprocal(alpha - beta);
  if (!(tail > kTailSquared)) {
    beta = alpha;
    scaled_tau = 0;
    inverse = 0;
  }
  return {beta, scaled_tau, inverse};
}
__device__ __forceinline__ float tau_of(const ReflectorScalars& r, float alpha) {
  return r.scaled_tau == 0.f ? 0.f : 1.f - alpha / r.beta;
}

// Lane (g, q)'s dot product of panel column g + 8 (q & 1) with x from four accumulators, whose
// columns 0 and 1 are the products with x's halves.
__device__ __forceinline__ float panel_dot(const float (&acc)[4][4], int q) {
  const float high = (q & 1) ? (acc[0][2] + acc[1][2]) + (acc[2][2] + acc[3][2])
                             : (acc[0][0] + acc[1][0]) + (acc[2][0] + acc[3][0]);
  const float low = (q & 1) ? (acc[0][3] + acc[1][3]) + (acc[2][3] + acc[3][3])
                            : (acc[0][1] + acc[1][1]) + (acc[2][1] + acc[3][1]);
  return join_x(high, low);
}

// Panel column l's coefficient (dot - beta * pivot) * scaled_tau, as two halves, and the panel's
// entry at the pivot, in the three slots of lane (g, q) in a B fragment of step 3: that of V (warp
// 1) or, 64 halves on, of W (warp 0). Columns not made yet (l >= made) count zero.
//
// scaled_tau = -1 / beta makes a coefficient a half whatever the size of x, and is the factor w
// wants anyway. Without it W^T u, u = x - beta e1, reaches 2.8 n^2: with normF(A) < n, |u| <= 2
// |beta|, |v| in [1, sqrt(2)] and |w| <= 2 |A| / |v|, the scaled V^T u stays below 2.9 and the
// scaled W^T u below 4 n, which is 4096 at n = 1024.
__device__ __forceinline__ void store_coefficient(char* fragments, int warp, int g, int q,
                                                  float dot, const ReflectorScalars& reflector,
                                                  __half pivot, int l, int made) {
  float coefficient = (dot - reflector.beta * __half2float(pivot)) * reflector.scaled_tau;
  if (l >= made) {
    coefficient = 0;
    pivot = __ushort_as_half(0);
  }
  __half* slot = (__half*)fragments + (warp ? 0 : 64) + (g >> 1) * 4 + q * 2 + (g & 1);
  const __half high = __float2half_rn(coefficient);
  slot[0] = high;
  slot[16] = __float2half_rn((coefficient - __half2float(high)) * kLowScale);
  slot[32] = pivot;
}

// Sum over the panel of v w for one row; `row` is its V in shared memory, W is 512 bytes on.
__device__ __forceinline__ float panel_row_product(const char* row) {
  float product = 0;
#pragma unroll
  for (int c = 0; c < 2; c++) {
    const uint4 v = *(const uint4*)(row + c * 256), w = *(const uint4*)(row + 512 + c * 256);
    const uint32_t vs[4] = {v.x, v.y, v.z, v.w}, ws[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const float2 a = to_float2(vs[k]), b = to_float2(ws[k]);
      product = fmaf(a.x, b.x, product);
      product = fmaf(a.y, b.y, product);
    }
  }
  return product;
}

}  // namespace crucible::eigh
