// dc_update.cuh: Z <- Z U per node: U is generated in registers from the roots, never stored.
//
// update_mma_kernel here: mma.sync, halves up to 64 rows. dc_update_wgmma.cuh has larger nodes.
#pragma once

#include "dc_secular.cuh"
#include "tile_ops.cuh"

namespace crucible::eigh {
namespace dc {

// 16 bytes from global to shared memory in the background, zeros where not ok.
__device__ __forceinline__ void copy_16_async(void* s, const void* g, bool ok) {
  unsigned a = shared_address(s);
  int sz = ok ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(a), "l"(g), "r"(sz));
}
__device__ __forceinline__ unsigned pack_halves(float a, float b) {
  half2 h = __floats2half2_rn(a, b);
  return *(unsigned*)&h;
}
// Swaps x and y across lane bit `bit`: the lane with that bit set keeps y and takes the other's y
// as x, its partner keeps x and takes the other's x as y.
__device__ __forceinline__ void exchange(bool bit_set, int bit, unsigned& x, unsigned& y) {
  const unsigned got = __shfl_xor_sync(~0u, bit_set ? x : y, bit);
  if (bit_set)
    x = got;
  else
    y = got;
}
// 4 x 4 transpose inside each quad of lanes: lane t4 ends with the four words that the lanes 0-3
// held as word t4, in their order.
__device__ __forceinline__ void transpose_quad(int t4, unsigned& v0, unsigned& v1, unsigned& v2,
                                               unsigned& v3) {
  exchange(t4 & 1, 1, v0, v1);
  exchange(t4 & 1, 1, v2, v3);
  exchange(t4 & 2, 2, v0, v2);
  exchange(t4 & 2, 2, v1, v3);
}
// New columns C[j][r] = sum_i u_ij Z[i][r] of one half of a node: u_ij = z_i / ((d_i - x_j) norm_j)
// goes straight from pole i and root j into A fragments. Grid: node, then half, column tile of
// 32 WJ, row tile of 8 NR; a warp takes 32 columns j. Shared memory: a ring of ST stages of 32 rows
// i by 8 NR entries of Z (cp.async, gathered by slot; the wait and the barrier of a step publish
// its stage and free the one before), and the poles with their slots. FP32 sums, rounded once.
template <int NR, int WJ>
__global__ void __launch_bounds__(32 * WJ)
    update_mma_kernel(Workspace w, int n, int leaf_count, int lw, int njt, int ny, const half* A,
                      half* B) {
  extern __shared__ __align__(16) char sm[];
  constexpr int PT = 8 * NR + 8, NT = 32 * WJ, ST = 3;
  const int bx = blockIdx.x / ny, y = blockIdx.x - bx * ny;
  Node nd = node(n, leaf_count, lw, bx);
  const int hb = y & 1, jt = (y >> 1) % njt, rt = (y >> 1) / njt;
  const int k = w.counts[nd.id * 8], kl = w.counts[nd.id * 8 + 1 + hb], j0 = jt * 32 * WJ;
  const int rows = hb ? nd.end - nd.mid : nd.mid - nd.base, rb = hb ? nd.mid - nd.base : 0,
            r0 = rt * 8 * NR;
  if (j0 >= k || r0 >= rows) return;
  const int KP = (kl + 31) / 32 * 32, tid = threadIdx.x, ln = tid & 31, wp = tid >> 5, gq = ln >> 2,
            t4 = ln & 3;
  half* bs = (half*)sm;
  float2* pz = (float2*)(bs + ST * 32 * PT);
  int* ps = (int*)(pz + KP + 16);
  const float4* lst = hb ? w.bottom_poles : w.top_poles;
  for (int i = tid; i < KP; i += NT) {
    float2 v = make_float2(1e30f, 0.f);
    int s = 255 << 12;
    if (i < kl) {
      float4 c = lst[nd.off + i];
      v = make_float2(c.x, c.y);
      s = __float_as_int(c.z);
    }
    pz[i] = v;
    ps[i] = s;
  }
  float dof[4], inm[4], ct[4];
  int js[4];
  const int jw = j0 + wp * 32 + gq;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int j = jw + 8 * i;
    float4 v = make_float4(0.f, -1e20f, 1.f, 0.f);
    if (j < k) v = w.roots[nd.off + j];
    dof[i] = v.x;
    inm[i] = v.z;
    ct[i] = -v.y * v.z;
    js[i] = __float_as_int(v.w) & 2047;
  }
  float acc[2][NR][4];
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int f = 0; f < NR; f++)
#pragma unroll
      for (int c = 0; c < 4; c++) acc[a][f][c] = 0.f;
  __syncthreads();
  const int u0 = (nd.base + rb + r0) >> 3;
  const half* az = A + nd.off * n + nd.base + rb + r0;
  auto load = [&](int kt, int st) {
#pragma unroll
    for (int c = tid; c < 32 * NR; c += NT) {
      int kk = c / NR, ch = c - kk * NR, i = kt * 32 + kk;
      int g = ps[i], un = u0 + ch;
      bool ok = r0 + 8 * ch < rows && un >= ((g >> 12) & 255) && un <= ((g >> 20) & 255);
      copy_16_async(bs + st * 32 * PT + kk * PT + 8 * ch,
                    az + (long)(ok ? g & 2047 : 0) * n + (ok ? 8 * ch : 0), ok);
    }
  };
  const int NK = KP / 32;
  auto gen =
      [&](int q,
          unsigned(
              &f)[2][4]) {  // w_ij = z_i / ((d_i-d_o)*nrm - tau*nrm) straight into the A fragment
        const float4 parity = *(const float4*)(pz + q * 16 + 2 * t4),
                     pb = *(const float4*)(pz + q * 16 + 2 * t4 + 8);
#pragma unroll
        for (int a = 0; a < 2; a++)
#pragma unroll
          for (int h = 0; h < 2; h++) {
            float o = dof[2 * a + h], c = ct[2 * a + h], nm = inm[2 * a + h];
            f[a][h] = pack_halves(parity.y * reciprocal_f32(fmaf(parity.x - o, nm, c)),
                                  parity.w * reciprocal_f32(fmaf(parity.z - o, nm, c)));
            f[a][h + 2] = pack_halves(pb.y * reciprocal_f32(fmaf(pb.x - o, nm, c)),
                                      pb.w * reciprocal_f32(fmaf(pb.z - o, nm, c)));
          }
      };
  unsigned af[2][4], an[2][4];
  gen(0, af);
  for (int s = 0; s < ST - 1; s++) {
    if (s < NK) load(s, s);
    asm volatile("cp.async.commit_group;");
  }
  for (int kt = 0; kt < NK; kt++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2));
    __syncthreads();
    if (kt + ST - 1 < NK) load(kt + ST - 1, (kt + ST - 1) % ST);
    asm volatile("cp.async.commit_group;");
    const half* bt = bs + (kt % ST) * 32 * PT;
#pragma unroll
    for (int ks = 0; ks < 2; ks++) {
      gen(kt * 2 + ks + 1, an);
#pragma unroll
      for (int f = 0; f < NR; f += 2) {
        unsigned b0, b1, b2, b3;
        unsigned ad = shared_address(bt + (ks * 16 + (ln & 15)) * PT + 8 * f + (ln >> 4) * 8);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                     : "=r"(b0), "=r"(b1), "=r"(b2), "=r"(b3)
                     : "r"(ad));
#pragma unroll
        for (int a = 0; a < 2; a++) {
          mma(acc[a][f], af[a], b0, b1);
          mma(acc[a][f + 1], af[a], b2, b3);
        }
      }
#pragma unroll
      for (int a = 0; a < 2; a++)
#pragma unroll
        for (int h = 0; h < 4; h++) af[a][h] = an[a][h];
    }
  }
  half* oz = B + nd.off * n + nd.base + rb + r0;
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int j = jw + 16 * a + 8 * h;
      bool ok = j < k;
      long ro = (long)js[2 * a + h] * n;
      if constexpr (NR >= 4) {
#pragma unroll
        for (int f = 0; f < NR; f += 4) {  // 4x4 transpose inside each quad: lane t4 ends with the
                                           // 8 columns of fragment f+t4
          unsigned v0 = pack_halves(acc[a][f][2 * h], acc[a][f][2 * h + 1]),
                   v1 = pack_halves(acc[a][f + 1][2 * h], acc[a][f + 1][2 * h + 1]);
          unsigned v2 = pack_halves(acc[a][f + 2][2 * h], acc[a][f + 2][2 * h + 1]),
                   v3 = pack_halves(acc[a][f + 3][2 * h], acc[a][f + 3][2 * h + 1]);
          transpose_quad(t4, v0, v1, v2, v3);
          int r = 8 * (f + t4);
          if (ok && r0 + r < rows) *(uint4*)(oz + ro + r) = make_uint4(v0, v1, v2, v3);
        }
      } else {
#pragma unroll
        for (int f = 0; f < NR; f++) {
          int r = 8 * f;
          if (ok && r0 + r < rows)
            *(unsigned*)(oz + ro + r + 2 * t4) =
                pack_halves(acc[a][f][2 * h], acc[a][f][2 * h + 1]);
        }
      }
    }
}
}  // namespace dc
}  // namespace crucible::eigh
