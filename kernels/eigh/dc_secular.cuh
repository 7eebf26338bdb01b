// dc_secular.cuh: roots of the secular equation, G lanes a root: FP32, then FP64 where needed.
//
// Start: the poles near a warp of roots exactly, the far ones as a Taylor series. Each root is an
// offset from its nearest pole; the FP64 steps run only in warps whose predicted error needs them.
#pragma once

#include "dc_deflate.cuh"

namespace crucible::eigh {
namespace dc {

// ---------------------------------------------------------------- secular equation: G lanes per
// root
template <typename T>
__device__ __forceinline__ T quad(T w, T dpsi, T dphi, T D1, T D2, bool last) {
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
__device__ __forceinline__ float rcpf(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ double rcpd(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0,%1;" : "=d"(r) : "d"(x));
  double e = fma(-x, r, 1.0);
  return fma(r, e, r);
}
template <int G>
__device__ __forceinline__ float rsum(float x) {
#pragma unroll
  for (int o = G / 2; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}
template <int G>
__device__ __forceinline__ double rsum(double x) {
#pragma unroll
  for (int o = G / 2; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}
// A bound only: at 6, one 512-matrix in 400 with clustered eigenvalues got an unconverged root.
constexpr auto k_MAX64 = 48;
constexpr auto k_TOL32 = 1e-3f;
constexpr auto k_REL64 = 2e-5f;
constexpr auto k_ABS64 = 5e-7f;
constexpr auto k_LOCALMIN = 96;
constexpr auto k_TOLLOC = 2e-2f;
constexpr auto k_TOL64 = 1e-5;
template <int G, int NT>
__global__ void __launch_bounds__(NT) k_secular(WS w, int n, int NL, int lw, int pb, int sep) {
  extern __shared__ __align__(16) char sm[];
  constexpr int RPB = NT / G;
  Node nd = node(n, NL, lw, blockIdx.x);
  const int k = w.cnt[nd.id * 8];
  const int j0 = blockIdx.y * RPB;
  if (j0 >= k) return;
  const int tid = threadIdx.x, g = tid % G, S = (k + G - 1) / G, KP = S * G;
  double2* Q = (double2*)sm;
  float2* A = (float2*)(Q + KP);
  for (int i = tid; i < KP; i += NT) {
    float d = i < k ? w.cd[nd.off + i] : 1e30f, z = i < k ? w.cz[nd.off + i] : 0.f;
    A[i] = make_float2(d, z * z);
    Q[i] = make_double2(d, (double)z * z);
  }
  float4* V = (float4*)(sm + (sep ? 24 * (size_t)((KP + 1) & ~1) : 0));
  auto fillV = [&]() {
    for (int i = tid; i < KP; i += NT)
      V[i] = i < k ? make_float4(w.cd[nd.off + i], w.cz[nd.off + i], w.cF[nd.off + i],
                                 w.cL[nd.off + i])
                   : make_float4(1e30f, 0.f, 0.f, 0.f);
  };
  if (sep) fillV();
  const float rho = w.rho[nd.id];
  __syncthreads();
  const int j = min(j0 + tid / G, k - 1);
  float dorg, tau;
  if (k == 1) {
    dorg = A[0].x;
    tau = rho * A[0].y;
  } else {
    const bool last = j == k - 1;
    const int js = last ? k - 2 : j;
    const float rhoinv = 1.f / rho;
    const int jmin = __shfl_sync(~0u, js, 0), jmax = __shfl_sync(~0u, js, 31);
    const int sA = (jmin + 1) / G, sB = min(S, jmax / G + 1);
    const float d1 = A[js].x, z1 = A[js].y, d2 = A[js + 1].x, z2 = A[js + 1].y;
    dorg = last ? d2 : d1;
    float up;
    {
      float zn = 0.f;
      if (__any_sync(~0u, last)) {
        for (int s = 0; s < S; s++) zn += A[s * G + g].y;
        zn = rsum<G>(zn);
      }
      up = last ? rho * zn : d2 - d1;
    }
    const float hf = 0.5f * up;
    float ww, dpsi, dphi, sab;
    auto eval = [&](float dor, float t) {
      float f0 = 0.f, p0 = 0.f, p1 = 0.f, f1 = 0.f;
      int s = 0;
#pragma unroll 4
      for (; s < sA; s++) {
        float2 a = A[s * G + g];
        float r = rcpf((a.x - dor) - t), zt = a.y * r;
        f0 += zt;
        p0 = fmaf(zt, r, p0);
      }
      for (; s < sB; s++) {
        float2 a = A[s * G + g];
        float r = rcpf((a.x - dor) - t), zt = a.y * r;
        float q = zt * r;
        bool lo = s * G + g <= js;
        f0 += lo ? zt : 0.f;
        f1 += lo ? 0.f : zt;
        p0 += lo ? q : 0.f;
        p1 += lo ? 0.f : q;
      }
#pragma unroll 4
      for (; s < S; s++) {
        float2 a = A[s * G + g];
        float r = rcpf((a.x - dor) - t), zt = a.y * r;
        f1 += zt;
        p1 = fmaf(zt, r, p1);
      }
      f0 = rsum<G>(f0);
      f1 = rsum<G>(f1);
      ww = (f0 + f1) + rhoinv;
      sab = fabsf(f0) + fabsf(f1) + rhoinv;
      dpsi = rsum<G>(p0);
      dphi = rsum<G>(p1);
    };
    float lo, hi;
    bool act;
    int it, itl = 0;
    auto guess = [&]() {  // from f at the middle of the gap (ww): origin, start, bracket (relaxed
                          // to the whole gap)
      float x1 = (d1 - dorg) - hf, x2 = (d2 - dorg) - hf, c = ww - z1 / x1 - z2 / x2, dl = d2 - d1,
            a, b, q, tl, th;
      if (last) {
        a = -c * dl + z1 + z2;
        b = z2 * dl;
        q = sqrtf(fabsf(a * a + 4.f * b * c));
        tau = a < 0.f ? 2.f * b / (q - a) : (a + q) / (2.f * c);
        lo = 0.f;
        hi = up;
        tl = ww <= 0.f ? hf : 0.f;
        th = ww <= 0.f ? up : hf;
      } else if (ww >= 0.f) {
        a = c * dl + z1 + z2;
        b = z1 * dl;
        q = sqrtf(fabsf(a * a - 4.f * b * c));
        tau = a > 0.f ? 2.f * b / (a + q) : (a - q) / (2.f * c);
        lo = tl = 0.f;
        hi = up;
        th = hf;
      } else {
        a = c * dl - z1 - z2;
        b = z2 * dl;
        q = sqrtf(fabsf(a * a + 4.f * b * c));
        tau = a < 0.f ? 2.f * b / (a - q) : -(a + q) / (2.f * c);
        lo = -up;
        tl = -hf;
        hi = th = 0.f;
        dorg = d2;
      }
      if (!(tau > tl && tau < th)) tau = 0.5f * (tl + th);
    };
    auto step = [&](float tol) {
      if (ww < 0.f)
        lo = fmaxf(lo, tau);
      else
        hi = fminf(hi, tau);
      float eta = quad<float>(ww, dpsi, dphi, (d1 - dorg) - tau, (d2 - dorg) - tau, last),
            nt = tau + eta;
      bool bis = !(nt >= lo && nt <= hi && nt != 0.f);
      if (bis) {
        nt = 0.5f * (lo + hi);
        act = hi - lo > 4e-7f * fabsf(nt);
      } else
        act = fabsf(nt - tau) > tol * fabsf(nt);
      if (nt != 0.f) tau = nt;
    };
    if (k >= k_LOCALMIN) {
      // far poles: Taylor series about the middle of the warp's root interval; near poles: exact
      const float left = A[__shfl_sync(~0u, j, 0)].x,
                  right = A[__shfl_sync(~0u, j, 31)].x + __shfl_sync(~0u, up, 31);
      const float lc = 0.5f * (left + right), lim = 2.f * (right - left);
      int a0 = 0, b0 = k;
      for (int x = k; a0 < x;) {
        int y = (a0 + x) >> 1;
        if (A[y].x < lc - lim)
          a0 = y + 1;
        else
          x = y;
      }
      for (int x = a0; x < b0;) {
        int y = (x + b0) >> 1;
        if (A[y].x <= lc + lim)
          x = y + 1;
        else
          b0 = y;
      }
      float cl[5] = {0, 0, 0, 0, 0}, cr[5] = {0, 0, 0, 0, 0};
      for (int i = tid & 31; i < a0; i += 32) {
        float2 v = A[i];
        float r = rcpf(v.x - lc), t = v.y * r;
        cl[0] += t;
        t *= r;
        cl[1] += t;
        t *= r;
        cl[2] += t;
        t *= r;
        cl[3] += t;
        cl[4] += t * r;
      }
      for (int i = b0 + (tid & 31); i < k; i += 32) {
        float2 v = A[i];
        float r = rcpf(v.x - lc), t = v.y * r;
        cr[0] += t;
        t *= r;
        cr[1] += t;
        t *= r;
        cr[2] += t;
        t *= r;
        cr[3] += t;
        cr[4] += t * r;
      }
#pragma unroll
      for (int q = 0; q < 5; q++) {
        cl[q] = rsum<32>(cl[q]);
        cr[q] = rsum<32>(cr[q]);
      }
      auto evn = [&](float dor, float t) {
        float f0 = 0.f, p0 = 0.f, p1 = 0.f;
        const float h = (dor - lc) + t;
#pragma unroll 4
        for (int i = a0 + g; i < b0; i += G) {
          float2 v = A[i];
          float r = rcpf((v.x - dor) - t), zt = v.y * r;
          f0 += zt;
          float q = zt * r;
          bool l = i <= js;
          p0 += l ? q : 0.f;
          p1 += l ? 0.f : q;
        }
        f0 = rsum<G>(f0);
        p0 = rsum<G>(p0);
        p1 = rsum<G>(p1);
        f0 += cl[0] + h * (cl[1] + h * (cl[2] + h * (cl[3] + h * cl[4])));
        f0 += cr[0] + h * (cr[1] + h * (cr[2] + h * (cr[3] + h * cr[4])));
        dpsi = p0 + cl[1] + h * (2.f * cl[2] + h * (3.f * cl[3] + h * 4.f * cl[4]));
        dphi = p1 + cr[1] + h * (2.f * cr[2] + h * (3.f * cr[3] + h * 4.f * cr[4]));
        ww = f0 + rhoinv;
      };
      evn(dorg, hf);
      guess();
      const float lo0 = lo, hi0 = hi;
      act = true;
      for (itl = 1; itl < 8; itl++) {
        evn(dorg, tau);
        if (act) step(k_TOLLOC);
        if (!__any_sync(~0u, act)) break;
      }
      lo = lo0;
      hi = hi0;
    } else {
      eval(dorg, hf);
      guess();
    }
    const double dlo = lo, dhi = hi;
    act = true;
    for (it = 0; it < 12; it++) {
      eval(dorg, tau);
      if (act) step(k_TOL32);
      if (!__any_sync(~0u, act)) {
        it++;
        break;
      }
    }
    // predicted error of tau from the f32 rounding of f: polish in f64 only the warps that need it
    const float aerr = 4.f * 5.9604645e-8f * sab / (dpsi + dphi);
    const bool need = !(aerr <= k_REL64 * fabsf(tau) && aerr <= k_ABS64);
    int it64 = 0;
    if (k_MAX64 > 0 && __any_sync(~0u, need)) {
      double t = tau, l = dlo, h = dhi;
      const double o = dorg, ri = 1.0 / (double)rho;
      act = true;
      for (it64 = 0; it64 < k_MAX64;) {
        double f0 = 0, f1 = 0, p0 = 0, p1 = 0;
        int s = 0;
#pragma unroll 2
        for (; s < sA; s++) {
          double2 a = Q[s * G + g];
          double r = rcpd((a.x - o) - t), zt = a.y * r;
          f0 += zt;
          p0 = fma(zt, r, p0);
        }
        for (; s < sB; s++) {
          double2 a = Q[s * G + g];
          double r = rcpd((a.x - o) - t), zt = a.y * r;
          f0 += zt;
          double q = zt * r;
          bool lw_ = s * G + g <= js;
          p0 += lw_ ? q : 0.0;
          p1 += lw_ ? 0.0 : q;
        }
#pragma unroll 2
        for (; s < S; s++) {
          double2 a = Q[s * G + g];
          double r = rcpd((a.x - o) - t), zt = a.y * r;
          f1 += zt;
          p1 = fma(zt, r, p1);
        }
        double W = rsum<G>(f0 + f1) + ri, P0 = rsum<G>(p0), P1 = rsum<G>(p1);
        it64++;
        if (act) {
          if (W < 0)
            l = fmax(l, t);
          else
            h = fmin(h, t);
          double eta = quad<double>(W, P0, P1, ((double)d1 - o) - t, ((double)d2 - o) - t, last),
                 nt = t + eta;
          bool bis = !(nt >= l && nt <= h && nt != 0.0);
          if (bis) {
            nt = 0.5 * (l + h);
            act = h - l > 1e-9 * fabs(nt);
          } else
            act = fabs(nt - t) > k_TOL64 * fabs(nt);
          if (nt != 0.0) t = nt;
        }
        if (!__any_sync(~0u, act)) break;
      }
      tau = (float)t;
    }
  }
  if (!sep) {
    __syncthreads();
    fillV();
    __syncthreads();
  }
  float nn = 0.f, ff = 0.f, ll = 0.f;
#pragma unroll 4
  for (int s = 0; s < S; s++) {
    float4 a = V[s * G + g];
    float x = a.y * rcpf((a.x - dorg) - tau);
    nn = fmaf(x, x, nn);
    ff = fmaf(a.z, x, ff);
    ll = fmaf(a.w, x, ll);
  }
  nn = rsum<G>(nn);
  ff = rsum<G>(ff);
  ll = rsum<G>(ll);
  if (g == 0 && j0 + tid / G < k) {
    float ri = rsqrtf(nn);
    ri = ri * (1.5f - 0.5f * nn * ri * ri);
    int cm = w.cslot[nd.off + j], slot = cm & 2047;
    w.meta[nd.off + slot] = pb << 11 | (nd.base >> 3) << 12 | ((nd.end >> 3) - 1) << 20;
    w.rp[nd.off + j] = make_float4(dorg, tau, nn * ri, __int_as_float(cm));
    w.lam[nd.off + slot] = dorg + tau;
    w.F[nd.off + slot] = ff * ri;
    w.L[nd.off + slot] = ll * ri;
  }
}
}  // namespace dc
}  // namespace crucible::eigh
