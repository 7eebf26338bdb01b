// sturm_count.cuh: a tridiagonal matrix in shared memory, ready for Sturm counts.
//
// T is scaled by an exact power of two to |T| in [0.5, 1), |T| its 1-norm. Couplings below
// 1e-8 |T| are raised to it: far below the rounding of the input, and it keeps the minors of a few
// rows inside the number range. A diagonal ramp splits exact multiplicities (sturm_vectors.cu).
#pragma once

#include "block_ops.cuh"

namespace crucible::eigh {

constexpr float kCouplingMin = 1e-8f;  // of |T|
constexpr double kRamp = 0x1p-26;      // of |T|, a row
constexpr double kClose = 0x1p-34;     // of |T|: closer eigenvalues' vectors are orthogonalised

struct SturmScale {
  float norm;    // |T| after scaling (an upper bound), > 0
  int exponent;  // T was multiplied by 2^-exponent
};

// t[i] = (d_i + ramp |T| i, e_{i-1}^2), coupling[i] = e_{i-1}, e_{-1} = 0, all scaled. Every thread
// of the block calls it; ends with a barrier.
__device__ __forceinline__ SturmScale load_tridiagonal(const float* d, const float* e, int n,
                                                       double ramp, double2* t, float* coupling,
                                                       uint32_t* scratch) {
  uint32_t bits = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float left = i > 0 ? fabsf(e[i - 1]) : 0.f, right = i < n - 1 ? fabsf(e[i]) : 0.f;
    bits = max(bits, __float_as_uint(fabsf(d[i]) + left + right));
  }
  bits = block_max(bits, scratch);
  const int exponent = exponent_above(bits);
  const float norm =
      bits == 0 ? 0.5f : times_power_of_two(__uint_as_float(bits), -exponent) * 1.0001f;
  const float least = norm * kCouplingMin;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float before = i > 0 ? times_power_of_two(e[i - 1], -exponent) : 0.f;
    if (i > 0 && fabsf(before) < least) before = copysignf(least, before);
    t[i] = make_double2(times_power_of_two(d[i], -exponent) + ramp * norm * i,
                        static_cast<double>(before) * before);
    coupling[i] = before;
  }
  __syncthreads();
  return {norm, exponent};
}

// One step of the recurrence of the leading minors of T - x, row by row.
template <typename Number>
struct Minors {
  Number before = 1, minor;
  __device__ __forceinline__ void step(Number diagonal, Number squared) {
    const Number next = fma(diagonal, minor, -squared * before);
    before = minor;
    minor = next;
  }
};

// Both minors times a power of two that brings the larger to about 1.
__device__ __forceinline__ void rescale(Minors<double>& m) {
  const int high = max(__double2hiint(m.minor) & 0x7ff00000, __double2hiint(m.before) & 0x7ff00000);
  const double scale = __hiloint2double(max(0x7fe00000 - high, 0x00100000), 0);
  m.before *= scale;
  m.minor *= scale;
}
__device__ __forceinline__ void rescale(Minors<float>& m) {
  const int high = max(__float_as_int(m.minor) & 0x7f800000, __float_as_int(m.before) & 0x7f800000);
  const float scale = __int_as_float(max(0x7f000000 - high, 0x00800000));
  m.before *= scale;
  m.minor *= scale;
}

__device__ __forceinline__ unsigned sign_bits(double x) {
  return static_cast<unsigned>(__double2hiint(x));
}
__device__ __forceinline__ unsigned sign_bits(float x) { return __float_as_uint(x); }

// Eigenvalues of T below x: the sign changes among the leading minors of T - x. t[i] = (d_i,
// e_{i-1}^2). No division; rescaled every kSteps rows.
template <int kSteps, typename Number, typename Pair>
__device__ __forceinline__ int count_below(const Pair* t, int n, Number x) {
  Minors<Number> m;
  m.minor = t[0].x - x;
  unsigned changes = sign_bits(m.minor) >> 31;
  int i = 1;
  for (; i + kSteps <= n; i += kSteps) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const Pair f = t[i + k];
      m.step(f.x - x, f.y);
      changes += (sign_bits(m.minor) ^ sign_bits(m.before)) >> 31;
    }
    rescale(m);
  }
  for (; i < n; ++i) {
    const Pair f = t[i];
    m.step(f.x - x, f.y);
    changes += (sign_bits(m.minor) ^ sign_bits(m.before)) >> 31;
    if constexpr (kSteps < 8) rescale(m);
  }
  return static_cast<int>(changes);
}

}  // namespace crucible::eigh
