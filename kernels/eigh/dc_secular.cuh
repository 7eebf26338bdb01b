// dc_secular.cuh: roots of the secular equation, G lanes a root: FP32, then FP64 where needed.
//
// Start: the poles near a warp of roots exactly, the far ones as a Taylor series. Each root is an
// offset from its nearest pole; the FP64 steps run only in warps whose predicted error needs them.
#pragma once

#include "dc_deflate.cuh"

namespace crucible::eigh {
namespace dc {

// The step from t of the rational interpolation with the two poles at distance D1, D2 (slaed4's
// middle way; `last`: the root beyond the last pole); a Newton step where it fails or goes uphill.
template <typename T>
__device__ __forceinline__ T rational_step(T w, T dpsi, T dphi, T D1, T D2, bool last) {
  T dw = dpsi + dphi, c = w - D1 * dpsi - D2 * dphi, a = (D1 + D2) * w - D1 * D2 * dw,
    b = D1 * D2 * w;
  T q = sqrt(fabs(a * a - T(4) * b * c)), eta;
  if (!last)
    eta = a <= T(0) ? (a - q) / (T(2) * c) : T(2) * b / (a + q);
  else
    eta = a >= T(0) ? (a + q) / (T(2) * c) : T(2) * b / (a - q);
  if (!isfinite(eta) || w * eta >= T(0)) eta = -w / dw;
  return eta;
}
__device__ __forceinline__ float reciprocal_f32(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ double reciprocal_f64(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0,%1;" : "=d"(r) : "d"(x));
  double e = fma(-x, r, 1.0);
  return fma(r, e, r);
}
template <int G>
__device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
  for (int o = G / 2; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}
template <int G>
__device__ __forceinline__ double lanes_sum(double x) {
#pragma unroll
  for (int o = G / 2; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}
// Roots are found in FP32 to kFloatTolerance; where the rounding of f predicts an error of the
// offset above kRelativeErrorMax (of the offset) or kAbsoluteErrorMax, in FP64 to kDoubleTolerance.
// From kSeriesPolesMin poles on the first steps take far poles as a series.
// kDoubleStepsMax is a bound only: at 6, one 512-matrix in 400 with clustered eigenvalues got an
// unconverged root.
constexpr auto kDoubleStepsMax = 48;
constexpr auto kFloatTolerance = 1e-3f;
constexpr auto kRelativeErrorMax = 2e-5f;
constexpr auto kAbsoluteErrorMax = 5e-7f;
constexpr auto kSeriesPolesMin = 96;
constexpr auto kSeriesTolerance = 2e-2f;
constexpr auto kDoubleTolerance = 1e-5;
// Root j of 1 + rho sum_i z_i^2 / (d_i - x) = 0, as an offset from its nearest pole, for all roots
// of a node. Grid: nodes x ceil(roots / (NT / G)); G lanes a root sum over the poles. Shared
// memory: the poles (d, z^2) in FP64 and FP32, and (d, z, first, last row) for the vectors, in a
// part of their own (sep) or over the others after a barrier. The bracket [lo, hi] always holds the
// root; a step out of it bisects. Then the eigenvector's norm and its first and last entry.
// Lanes of a warp iterate together until all have converged. Sums by shuffles in a fixed order.
template <int G, int NT>
__global__ void __launch_bounds__(NT)
    secular_kernel(Workspace w, int n, int leaf_count, int lw, int parity, int sep) {
  extern __shared__ __align__(16) char sm[];
  constexpr int kRoots = NT / G;
  Node nd = node(n, leaf_count, lw, blockIdx.x);
  const int k = w.counts[nd.id * 8];
  const int j0 = blockIdx.y * kRoots;
  if (j0 >= k) return;
  const int tid = threadIdx.x, g = tid % G, S = (k + G - 1) / G, KP = S * G;
  double2* poles64 = (double2*)sm;
  float2* poles32 = (float2*)(poles64 + KP);
  for (int i = tid; i < KP; i += NT) {
    float d = i < k ? w.pole[nd.off + i] : 1e30f, z = i < k ? w.weight[nd.off + i] : 0.f;
    poles32[i] = make_float2(d, z * z);
    poles64[i] = make_double2(d, (double)z * z);
  }
  float4* vectors = (float4*)(sm + (sep ? 24 * (size_t)((KP + 1) & ~1) : 0));
  auto fill_vectors = [&]() {
    for (int i = tid; i < KP; i += NT)
      vectors[i] = i < k ? make_float4(w.pole[nd.off + i], w.weight[nd.off + i],
                                       w.pole_first_row[nd.off + i], w.pole_last_row[nd.off + i])
                         : make_float4(1e30f, 0.f, 0.f, 0.f);
  };
  if (sep) fill_vectors();
  const float rho = w.rho[nd.id];
  __syncthreads();
  const int j = min(j0 + tid / G, k - 1);
  float origin, offset;
  if (k == 1) {
    origin = poles32[0].x;
    offset = rho * poles32[0].y;
  } else {
    const bool last = j == k - 1;
    const int pole_left = last ? k - 2 : j;
    const float rhoinv = 1.f / rho;
    const int jmin = __shfl_sync(~0u, pole_left, 0), jmax = __shfl_sync(~0u, pole_left, 31);
    const int sA = (jmin + 1) / G, sB = min(S, jmax / G + 1);
    const float d1 = poles32[pole_left].x, z1 = poles32[pole_left].y, d2 = poles32[pole_left + 1].x,
                z2 = poles32[pole_left + 1].y;
    origin = last ? d2 : d1;
    float up;
    {
      float zn = 0.f;
      if (__any_sync(~0u, last)) {
        for (int s = 0; s < S; s++) zn += poles32[s * G + g].y;
        zn = lanes_sum<G>(zn);
      }
      up = last ? rho * zn : d2 - d1;
    }
    const float hf = 0.5f * up;
    float f, dpsi, dphi, f_abs;
    auto evaluate = [&](float dor, float t) {
      float f0 = 0.f, p0 = 0.f, p1 = 0.f, f1 = 0.f;
      int s = 0;
#pragma unroll 4
      for (; s < sA; s++) {
        float2 a = poles32[s * G + g];
        float r = reciprocal_f32((a.x - dor) - t), zt = a.y * r;
        f0 += zt;
        p0 = fmaf(zt, r, p0);
      }
      for (; s < sB; s++) {
        float2 a = poles32[s * G + g];
        float r = reciprocal_f32((a.x - dor) - t), zt = a.y * r;
        float q = zt * r;
        bool lo = s * G + g <= pole_left;
        f0 += lo ? zt : 0.f;
        f1 += lo ? 0.f : zt;
        p0 += lo ? q : 0.f;
        p1 += lo ? 0.f : q;
      }
#pragma unroll 4
      for (; s < S; s++) {
        float2 a = poles32[s * G + g];
        float r = reciprocal_f32((a.x - dor) - t), zt = a.y * r;
        f1 += zt;
        p1 = fmaf(zt, r, p1);
      }
      f0 = lanes_sum<G>(f0);
      f1 = lanes_sum<G>(f1);
      f = (f0 + f1) + rhoinv;
      f_abs = fabsf(f0) + fabsf(f1) + rhoinv;
      dpsi = lanes_sum<G>(p0);
      dphi = lanes_sum<G>(p1);
    };
    float lo, hi;
    bool active;
    int it, itl = 0;
    auto guess = [&]() {  // from f at the middle of the gap (ww): origin, start, bracket (relaxed
                          // to the whole gap)
      float x1 = (d1 - origin) - hf, x2 = (d2 - origin) - hf, c = f - z1 / x1 - z2 / x2,
            dl = d2 - d1, a, b, q, tl, th;
      if (last) {
        a = -c * dl + z1 + z2;
        b = z2 * dl;
        q = sqrtf(fabsf(a * a + 4.f * b * c));
        offset = a < 0.f ? 2.f * b / (q - a) : (a + q) / (2.f * c);
        lo = 0.f;
        hi = up;
        tl = f <= 0.f ? hf : 0.f;
        th = f <= 0.f ? up : hf;
      } else if (f >= 0.f) {
        a = c * dl + z1 + z2;
        b = z1 * dl;
        q = sqrtf(fabsf(a * a - 4.f * b * c));
        offset = a > 0.f ? 2.f * b / (a + q) : (a - q) / (2.f * c);
        lo = tl = 0.f;
        hi = up;
        th = hf;
      } else {
        a = c * dl - z1 - z2;
        b = z2 * dl;
        q = sqrtf(fabsf(a * a + 4.f * b * c));
        offset = a < 0.f ? 2.f * b / (a - q) : -(a + q) / (2.f * c);
        lo = -up;
        tl = -hf;
        hi = th = 0.f;
        origin = d2;
      }
      if (!(offset > tl && offset < th)) offset = 0.5f * (tl + th);
    };
    auto step = [&](float tol) {
      if (f < 0.f)
        lo = fmaxf(lo, offset);
      else
        hi = fminf(hi, offset);
      float eta = rational_step<float>(f, dpsi, dphi, (d1 - origin) - offset,
                                       (d2 - origin) - offset, last),
            nt = offset + eta;
      bool bis = !(nt >= lo && nt <= hi && nt != 0.f);
      if (bis) {
        nt = 0.5f * (lo + hi);
        active = hi - lo > 4e-7f * fabsf(nt);
      } else
        active = fabsf(nt - offset) > tol * fabsf(nt);
      if (nt != 0.f) offset = nt;
    };
    if (k >= kSeriesPolesMin) {
      // far poles: Taylor series about the middle of the warp's root interval; near poles: exact
      const float left = poles32[__shfl_sync(~0u, j, 0)].x,
                  right = poles32[__shfl_sync(~0u, j, 31)].x + __shfl_sync(~0u, up, 31);
      const float center = 0.5f * (left + right), lim = 2.f * (right - left);
      int a0 = 0, b0 = k;
      for (int x = k; a0 < x;) {
        int y = (a0 + x) >> 1;
        if (poles32[y].x < center - lim)
          a0 = y + 1;
        else
          x = y;
      }
      for (int x = a0; x < b0;) {
        int y = (x + b0) >> 1;
        if (poles32[y].x <= center + lim)
          x = y + 1;
        else
          b0 = y;
      }
      float left_series[5] = {0, 0, 0, 0, 0}, right_series[5] = {0, 0, 0, 0, 0};
      for (int i = tid & 31; i < a0; i += 32) {
        float2 v = poles32[i];
        float r = reciprocal_f32(v.x - center), t = v.y * r;
        left_series[0] += t;
        t *= r;
        left_series[1] += t;
        t *= r;
        left_series[2] += t;
        t *= r;
        left_series[3] += t;
        left_series[4] += t * r;
      }
      for (int i = b0 + (tid & 31); i < k; i += 32) {
        float2 v = poles32[i];
        float r = reciprocal_f32(v.x - center), t = v.y * r;
        right_series[0] += t;
        t *= r;
        right_series[1] += t;
        t *= r;
        right_series[2] += t;
        t *= r;
        right_series[3] += t;
        right_series[4] += t * r;
      }
#pragma unroll
      for (int q = 0; q < 5; q++) {
        left_series[q] = lanes_sum<32>(left_series[q]);
        right_series[q] = lanes_sum<32>(right_series[q]);
      }
      auto evaluate_series = [&](float dor, float t) {
        float f0 = 0.f, p0 = 0.f, p1 = 0.f;
        const float h = (dor - center) + t;
#pragma unroll 4
        for (int i = a0 + g; i < b0; i += G) {
          float2 v = poles32[i];
          float r = reciprocal_f32((v.x - dor) - t), zt = v.y * r;
          f0 += zt;
          float q = zt * r;
          bool l = i <= pole_left;
          p0 += l ? q : 0.f;
          p1 += l ? 0.f : q;
        }
        f0 = lanes_sum<G>(f0);
        p0 = lanes_sum<G>(p0);
        p1 = lanes_sum<G>(p1);
        f0 +=
            left_series[0] +
            h * (left_series[1] + h * (left_series[2] + h * (left_series[3] + h * left_series[4])));
        f0 += right_series[0] +
              h * (right_series[1] +
                   h * (right_series[2] + h * (right_series[3] + h * right_series[4])));
        dpsi = p0 + left_series[1] +
               h * (2.f * left_series[2] + h * (3.f * left_series[3] + h * 4.f * left_series[4]));
        dphi =
            p1 + right_series[1] +
            h * (2.f * right_series[2] + h * (3.f * right_series[3] + h * 4.f * right_series[4]));
        f = f0 + rhoinv;
      };
      evaluate_series(origin, hf);
      guess();
      const float lo0 = lo, hi0 = hi;
      active = true;
      for (itl = 1; itl < 8; itl++) {
        evaluate_series(origin, offset);
        if (active) step(kSeriesTolerance);
        if (!__any_sync(~0u, active)) break;
      }
      lo = lo0;
      hi = hi0;
    } else {
      evaluate(origin, hf);
      guess();
    }
    const double dlo = lo, dhi = hi;
    active = true;
    for (it = 0; it < 12; it++) {
      evaluate(origin, offset);
      if (active) step(kFloatTolerance);
      if (!__any_sync(~0u, active)) {
        it++;
        break;
      }
    }
    // predicted error of tau from the f32 rounding of f: polish in f64 only the warps that need it
    const float error = 4.f * 5.9604645e-8f * f_abs / (dpsi + dphi);
    const bool needs_f64 =
        !(error <= kRelativeErrorMax * fabsf(offset) && error <= kAbsoluteErrorMax);
    int it64 = 0;
    if (kDoubleStepsMax > 0 && __any_sync(~0u, needs_f64)) {
      double t = offset, l = dlo, h = dhi;
      const double o = origin, ri = 1.0 / (double)rho;
      active = true;
      for (it64 = 0; it64 < kDoubleStepsMax;) {
        double f0 = 0, f1 = 0, p0 = 0, p1 = 0;
        int s = 0;
#pragma unroll 2
        for (; s < sA; s++) {
          double2 a = poles64[s * G + g];
          double r = reciprocal_f64((a.x - o) - t), zt = a.y * r;
          f0 += zt;
          p0 = fma(zt, r, p0);
        }
        for (; s < sB; s++) {
          double2 a = poles64[s * G + g];
          double r = reciprocal_f64((a.x - o) - t), zt = a.y * r;
          f0 += zt;
          double q = zt * r;
          bool lw_ = s * G + g <= pole_left;
          p0 += lw_ ? q : 0.0;
          p1 += lw_ ? 0.0 : q;
        }
#pragma unroll 2
        for (; s < S; s++) {
          double2 a = poles64[s * G + g];
          double r = reciprocal_f64((a.x - o) - t), zt = a.y * r;
          f1 += zt;
          p1 = fma(zt, r, p1);
        }
        double W = lanes_sum<G>(f0 + f1) + ri, P0 = lanes_sum<G>(p0), P1 = lanes_sum<G>(p1);
        it64++;
        if (active) {
          if (W < 0)
            l = fmax(l, t);
          else
            h = fmin(h, t);
          double eta = rational_step<double>(W, P0, P1, ((double)d1 - o) - t, ((double)d2 - o) - t,
                                             last),
                 nt = t + eta;
          bool bis = !(nt >= l && nt <= h && nt != 0.0);
          if (bis) {
            nt = 0.5 * (l + h);
            active = h - l > 1e-9 * fabs(nt);
          } else
            active = fabs(nt - t) > kDoubleTolerance * fabs(nt);
          if (nt != 0.0) t = nt;
        }
        if (!__any_sync(~0u, active)) break;
      }
      offset = (float)t;
    }
  }
  if (!sep) {
    __syncthreads();
    fill_vectors();
    __syncthreads();
  }
  float norm2 = 0.f, first_sum = 0.f, last_sum = 0.f;
#pragma unroll 4
  for (int s = 0; s < S; s++) {
    float4 a = vectors[s * G + g];
    float x = a.y * reciprocal_f32((a.x - origin) - offset);
    norm2 = fmaf(x, x, norm2);
    first_sum = fmaf(a.z, x, first_sum);
    last_sum = fmaf(a.w, x, last_sum);
  }
  norm2 = lanes_sum<G>(norm2);
  first_sum = lanes_sum<G>(first_sum);
  last_sum = lanes_sum<G>(last_sum);
  if (g == 0 && j0 + tid / G < k) {
    float ri = rsqrtf(norm2);
    ri = ri * (1.5f - 0.5f * norm2 * ri * ri);
    int cm = w.pole_slot[nd.off + j], slot = cm & 2047;
    w.meta[nd.off + slot] = parity << 11 | (nd.base >> 3) << 12 | ((nd.end >> 3) - 1) << 20;
    w.roots[nd.off + j] = make_float4(origin, offset, norm2 * ri, __int_as_float(cm));
    w.eigenvalue[nd.off + slot] = origin + offset;
    w.first_row[nd.off + slot] = first_sum * ri;
    w.last_row[nd.off + slot] = last_sum * ri;
  }
}
}  // namespace dc
}  // namespace crucible::eigh
