// dc_leaf.cuh: leaves of at most 16 rows by implicit QL, S lanes a leaf, each owning rows of Z.
#pragma once

#include "dc_node.cuh"

namespace crucible::eigh {
namespace dc {

// Eigenvalues and vectors of every leaf of T (m <= LEAF rows; its end entries reduced by |e| of the
// cuts), by implicit QL as in Golub & Van Loan 8.3. Grid: ceil(total / (32 / S)) warps; S lanes a
// leaf. Shared memory, lane by lane (stride 32): d, e and R = LEAF / S rows of Z of the lane. Every
// lane runs the scalar recurrence on its own copy of d and e, so nothing is synchronised. At most
// 60 sweeps an eigenvalue. Writes eigenvalues, first and last rows, meta, and Z in FP16.
template <int LEAF, int S>
__global__ void __launch_bounds__(32)
    leaf_kernel(Workspace w, int n, int leaf_count, int total, half* Z) {
  constexpr int R = LEAF / S;
  extern __shared__ __align__(16) char sm[];
  float *D = (float*)sm + threadIdx.x, *E = D + 32 * LEAF, *z = E + 32 * LEAF;
  long leaf = (long)blockIdx.x * (32 / S) + threadIdx.x / S;
  const int sub = threadIdx.x % S, r0 = sub * R;
  if (leaf >= total) return;
  int b = leaf / leaf_count, q = leaf - (long)b * leaf_count, base = boundary(q, n, leaf_count),
      end = boundary(q + 1, n, leaf_count), m = end - base;
  const float *d = w.d + (long)b * n + base, *e = w.e + (long)b * (n - 1) + base;
  for (int i = 0; i < m; i++) {
    float v = d[i];
    if (i == 0 && base > 0) v -= fabsf(e[-1]);
    float ei = base + i < n - 1 ? e[i] : 0.f;
    if (i == m - 1) {
      v -= fabsf(ei);
      ei = 0.f;
    }
    D[i * 32] = v;
    E[i * 32] = ei;
#pragma unroll
    for (int r = 0; r < R; r++) z[(i * R + r) * 32] = (i == r0 + r) ? 1.f : 0.f;
  }
  const float eps = 5.9604645e-8f;
  for (int l = 0; l < m; l++) {
    for (int iter = 0; iter < 60; iter++) {
      float dl = D[l * 32], dk = dl;
      int mm = l;
      for (; mm < m - 1; mm++) {
        float dn = D[(mm + 1) * 32];
        if (fabsf(E[mm * 32]) <= eps * (fabsf(dk) + fabsf(dn)) + 1e-12f) break;
        dk = dn;
      }
      if (mm == l) break;
      float el = E[l * 32], g = __fdividef(D[(l + 1) * 32] - dl, 2.f * el),
            r = sqrtf(fmaf(g, g, 1.f)), dcur = dk;
      g = dcur - dl + __fdividef(el, g + copysignf(r, g));
      float s = 1.f, c = 1.f, p = 0.f, zc[R];
      bool brk = false;
#pragma unroll
      for (int q2 = 0; q2 < R; q2++) zc[q2] = z[(mm * R + q2) * 32];
      for (int i = mm - 1; i >= l; i--) {
        float ei = E[i * 32], di = D[i * 32], f = s * ei, bb = c * ei, r2 = fmaf(f, f, g * g);
        if (r2 < 1e-36f) {
          D[(i + 1) * 32] = dcur - p;
          E[(i + 1) * 32] = 0.f;
          E[mm * 32] = 0.f;
          brk = true;
#pragma unroll
          for (int q2 = 0; q2 < R; q2++) z[((i + 1) * R + q2) * 32] = zc[q2];
          break;
        }
        float ri = rsqrtf(r2);
        ri = ri * fmaf(-0.5f * r2, ri * ri, 1.5f);
        E[(i + 1) * 32] = (i + 1 == mm) ? 0.f : r2 * ri;
        s = f * ri;
        c = g * ri;
        g = dcur - p;
        float rr = fmaf(di - g, s, 2.f * c * bb);
        p = s * rr;
        D[(i + 1) * 32] = g + p;
        g = fmaf(c, rr, -bb);
#pragma unroll
        for (int q2 = 0; q2 < R; q2++) {
          float zi = z[(i * R + q2) * 32];
          z[((i + 1) * R + q2) * 32] = fmaf(s, zi, c * zc[q2]);
          zc[q2] = fmaf(c, zi, -s * zc[q2]);
        }
        dcur = di;
      }
      if (!brk) {
        D[l * 32] = dcur - p;
        E[l * 32] = g;
        E[mm * 32] = 0.f;
#pragma unroll
        for (int q2 = 0; q2 < R; q2++) z[(l * R + q2) * 32] = zc[q2];
      }
    }
  }
  long off = (long)b * n + base;
  for (int c = 0; c < m; c++) {
    if (sub == 0) {
      w.eigenvalue[off + c] = D[c * 32];
      w.meta[off + c] = (base >> 3) << 12 | ((end >> 3) - 1) << 20;
      w.first_row[off + c] = z[(c * R) * 32];
    }
    if (r0 <= m - 1 && m - 1 < r0 + R) w.last_row[off + c] = z[(c * R + m - 1 - r0) * 32];
    half* o = Z + (off + c) * n + base + r0;
    if (r0 < m) {
#pragma unroll
      for (int r = 0; r < R; r += 4)
        if (r0 + r < m) {
          half2 x = __floats2half2_rn(z[(c * R + r) * 32], z[(c * R + r + 1) * 32]),
                y = __floats2half2_rn(z[(c * R + r + 2) * 32], z[(c * R + r + 3) * 32]);
          uint2 u;
          u.x = *(unsigned*)&x;
          u.y = *(unsigned*)&y;
          *(uint2*)(o + r) = u;
        }
    }
  }
}
}  // namespace dc
}  // namespace crucible::eigh
