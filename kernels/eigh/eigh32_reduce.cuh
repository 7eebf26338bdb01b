// eigh32_reduce.cuh: the first phase of eigh32.cu: one warp reduces a 32 x 32 matrix to T in FP32.
//
// Lane = column. The registers rotate so that the current column is always a[0]; broadcasts go
// through shared memory, so no shuffle is on the chain.
#pragma once

#include "block_ops.cuh"

namespace crucible::eigh::small32 {

struct Householder {  // in shared memory
  alignas(16) float x[32], p[32];
  alignas(16) float v[30][32];  // reflectors
  float tau[32], d[32], e[32];
};

// Column k, `Wd` (a multiple of 4) entries of which still count. A warp calls it.
template <int Wd>
__device__ __forceinline__ void householder_step(Householder& h, float (&a)[32], int lane, int k) {
  float *sx = h.x, *sp = h.p, *sd = h.d, *se = h.e, *tau = h.tau;
  auto& V = h.v;
  float x = lane > k ? a[0] : 0.f;
  int pos = (lane - k) & 31;
  if (lane == k) sd[k] = a[0];
  sx[pos] = x;
  __syncwarp();
  float xv[Wd];

#pragma unroll
  for (int i = 0; i < Wd; i += 4) {
    float4 f = *(const float4*)(sx + i);
    xv[i] = f.x;
    xv[i + 1] = f.y;
    xv[i + 2] = f.z;
    xv[i + 3] = f.w;
  }
  float xx0 = 0, xx1 = 0, xx2 = xv[2] * xv[2], xx3 = xv[3] * xv[3], y0 = 0, y1 = a[1] * xv[1],
        y2 = a[2] * xv[2], y3 = a[3] * xv[3];

#pragma unroll
  for (int i = 4; i < Wd; i += 4) {
    xx0 = fmaf(xv[i], xv[i], xx0);
    xx1 = fmaf(xv[i + 1], xv[i + 1], xx1);
    xx2 = fmaf(xv[i + 2], xv[i + 2], xx2);
    xx3 = fmaf(xv[i + 3], xv[i + 3], xx3);
  }
  float al = xv[1], t2s = (xx0 + xx1) + (xx2 + xx3), n2 = fmaf(al, al, t2s);
  // The least tail: tu v tu below is 2 / |x|^3, which a tail of 1e-14 (max|A| ~ 1) made infinite.
  bool live = t2s > 1e-24f;
  float rn = rsqrtf(n2), nr = n2 * rn;
  nr = fmaf(0.5f * rn, fmaf(-nr, nr, n2), nr);

#pragma unroll
  for (int i = 4; i < Wd; i += 4) {
    y0 = fmaf(a[i], xv[i], y0);
    y1 = fmaf(a[i + 1], xv[i + 1], y1);
    y2 = fmaf(a[i + 2], xv[i + 2], y2);
    y3 = fmaf(a[i + 3], xv[i + 3], y3);
  }
  float beta = live ? -copysignf(nr, al) : al;
  float v1 = live ? al - beta : 0.f;
  float den = fmaf(fabsf(al), nr, n2);
  float tu = live ? __fdividef(1.f, den) : 0.f;
  tu = fmaf(tu, fmaf(-den, tu, 1.f), tu);
  if (!live) tu = 0.f;
  float p = ((y0 + y1) + (y2 + y3)) - (live ? beta : 0.f) * a[1];
  xv[1] = v1;
  float vj = (lane == k + 1) ? v1 : (lane > k + 1 ? x : 0.f);
  p = lane > k ? p : 0.f;
  sp[pos] = p;
  V[k][lane] = vj;
  if (lane == 0) {
    tau[k] = tu;
    se[k] = beta;
  }
  __syncwarp();
  float pv[Wd];

#pragma unroll
  for (int i = 0; i < Wd; i += 4) {
    float4 f = *(const float4*)(sp + i);
    pv[i] = f.x;
    pv[i + 1] = f.y;
    pv[i + 2] = f.z;
    pv[i + 3] = f.w;
  }
  float q0 = 0, q1 = xv[1] * pv[1], q2 = xv[2] * pv[2], q3 = xv[3] * pv[3];

#pragma unroll
  for (int i = 4; i < Wd; i += 4) {
    q0 = fmaf(xv[i], pv[i], q0);
    q1 = fmaf(xv[i + 1], pv[i + 1], q1);
    q2 = fmaf(xv[i + 2], pv[i + 2], q2);
    q3 = fmaf(xv[i + 3], pv[i + 3], q3);
  }
  float c2 = tu * vj, tp = tu * p, ttv = -tu * c2;

#pragma unroll
  for (int i = 1; i < Wd; i++) a[i - 1] = fmaf(-pv[i], c2, a[i]);
  float vp = (q0 + q1) + (q2 + q3);
  float c1 = fmaf(ttv, vp, tp);

#pragma unroll
  for (int i = 1; i < Wd; i++) a[i - 1] = fmaf(-xv[i], c1, a[i - 1]);
  // positions beyond the active size hold stale values, always multiplied by zero x
}

// A diagonal matrix: ranked by counting, an exact answer. Lane = column; sd and se are scratch.
__device__ __forceinline__ void answer_diagonal(const float (&a)[32], int lane, float* sd,
                                                float* se, float* L, float* Qo) {
  float d = 0;

#pragma unroll
  for (int i = 0; i < 32; i++)
    if (i == lane) d = a[i];
  sd[lane] = d;
  __syncwarp();
  int rk = 0;

#pragma unroll
  for (int i = 0; i < 32; i++) {
    float o = sd[i];
    rk += (o < d) || (o == d && i < lane);
  }
  L[rk] = d;
  se[rk] = __int_as_float(lane);
  __syncwarp();
  int src = __float_as_int(se[lane]);

#pragma unroll
  for (int i = 0; i < 32; i++) Qo[i * 32 + lane] = (src == i) ? 1.f : 0.f;
}

// A matrix with NaN or Inf.
__device__ __forceinline__ void answer_nan(int lane, float* L, float* Qo) {
  L[lane] = __int_as_float(0x7fc00000);
  for (int i = 0; i < 32; i++) Qo[i * 32 + lane] = __int_as_float(0x7fc00000);
}

}  // namespace crucible::eigh::small32
