// dc_update_wgmma.cuh: Z <- Z U for the large nodes: wgmma with A (= U) from registers (sm_90a).
#pragma once

#include "dc_update.cuh"
#include "wgmma_ops.cuh"

namespace crucible::eigh {
namespace dc {

// As update_mma_kernel of dc_update.cuh, for 64 columns by N rows a warpgroup, both halves of the
// node one after the other: A (= U^T, made in registers) m64 x k16, B (= gathered rows of Z) k16 by
// N in shared memory, MN-major, 128-byte swizzle. Shared memory: kPipelineStages stages of 32 rows
// i, then the poles and slots of both halves. A step: wait for its stage (cp.async, then the proxy
// fence, then the block barrier, which also says that everyone is done with the stage refilled
// next), two products, and the next fragments of A meanwhile; those alternate between two named
// arrays because ptxas serialises products whose registers are written (C7513).
constexpr int kPipelineStages = 3;
template <int N>
__global__ void __launch_bounds__(128, N == 256 ? 2 : 4)
    update_wgmma_kernel(Workspace w, int n, int leaf_count, int lw, int njt, int ny, const half* A,
                        half* B) {
  extern __shared__ __align__(16) char sm0[];
  constexpr int ST = kPipelineStages, SB = 32 * N * 2, CH = N / 8, KI = 32 * CH / 128;
  // By an offset: an address that went through an integer would make every access a generic one.
  char* sm = sm0 + ((1024 - (shared_address(sm0) & 1023)) & 1023);
  const int bx = blockIdx.x / ny, y = blockIdx.x - bx * ny;
  Node nd = node(n, leaf_count, lw, bx);
  const int jt = y % njt, rt = y / njt;
  const int k = w.counts[nd.id * 8], kl0 = w.counts[nd.id * 8 + 1], kl1 = w.counts[nd.id * 8 + 2],
            j0 = jt * 64, r0 = rt * N;
  if (j0 >= k) return;
  const int KP0 = (kl0 + 31) / 32 * 32, KP1 = (kl1 + 31) / 32 * 32, tid = threadIdx.x,
            ln = tid & 31, wp = tid >> 5, gq = ln >> 2, t4 = ln & 3;
  float2* pz = (float2*)(sm + ST * SB);
  int* ps = (int*)(pz + KP0 + KP1 + 64);
  for (int i = tid; i < KP0 + KP1; i += 128) {
    float2 v = make_float2(1e30f, 0.f);
    int s = 255 << 12;
    bool h = i >= KP0;
    int q = h ? i - KP0 : i;
    if (q < (h ? kl1 : kl0)) {
      float4 c = (h ? w.bottom_poles : w.top_poles)[nd.off + q];
      v = make_float2(c.x, c.y);
      s = __float_as_int(c.z);
    }
    pz[h ? i + 32 : i] = v;
    ps[i] = s;
  }
  float dof[2], inm[2], ct[2];
  int js[2];
  const int jw = j0 + wp * 16 + gq;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int j = jw + 8 * i;
    float4 v = make_float4(0.f, -1e20f, 1.f, 0.f);
    if (j < k) v = w.roots[nd.off + j];
    dof[i] = v.x;
    inm[i] = v.z;
    ct[i] = -v.y * v.z;
    js[i] = (__float_as_int(v.w) & 2047) * n;
  }
  __syncthreads();
  const int ch = tid % CH, k0 = tid / CH, cc = ch & 7;
  const unsigned sb = shared_address(sm), so = sb + (ch >> 3) * 4096;
  const half* ab = A + nd.off * n + nd.base + r0;
  half* ob = B + nd.off * n + nd.base + r0;
  int hb, rows, un, NK;
  bool rok;
  const half* az;
  const float2* pzh;
  const int* psh;
  auto setup = [&](int h) {
    hb = h;
    int rb = h ? nd.mid - nd.base : 0;
    rows = (h ? nd.end - nd.mid : nd.mid - nd.base) - r0;
    un = ((nd.base + rb + r0) >> 3) + ch;
    rok = 8 * ch < rows;
    az = ab + rb + (rok ? 8 * ch : 0);
    NK = (h ? KP1 : KP0) / 32;
    pzh = pz + (h ? KP0 + 32 : 0);
    psh = ps + (h ? KP0 : 0);
  };
  auto load = [&](int kt, int st) {
#pragma unroll
    for (int i = 0; i < KI; i++) {
      int kk = k0 + i * (128 / CH);
      int g = psh[kt * 32 + kk];
      bool ok = rok && un >= ((g >> 12) & 255) && un <= ((g >> 20) & 255);
      unsigned a = so + st * SB + (kk >> 3) * 1024 + (kk & 7) * 128 + ((cc ^ (kk & 7)) << 4);
      int sz = ok ? 16 : 0, o = ok ? (g & 2047) * n : 0;
      asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(a), "l"(az + o), "r"(sz));
    }
  };
  auto gen = [&](int q, unsigned(&f)[4]) {
    const float4 parity = *(const float4*)(pzh + q * 16 + 2 * t4),
                 pb = *(const float4*)(pzh + q * 16 + 2 * t4 + 8);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float o = dof[h], c = ct[h], nm = inm[h];
      f[h] = pack_halves(parity.y * reciprocal_f32(fmaf(parity.x - o, nm, c)),
                         parity.w * reciprocal_f32(fmaf(parity.z - o, nm, c)));
      f[h + 2] = pack_halves(pb.y * reciprocal_f32(fmaf(pb.x - o, nm, c)),
                             pb.w * reciprocal_f32(fmaf(pb.z - o, nm, c)));
    }
  };
  float acc[N / 2];
  unsigned a0[4], a1[4], b0[4], b1[4];
  auto body = [&](int kt, unsigned(&u0)[4], unsigned(&u1)[4], unsigned(&x0)[4], unsigned(&x1)[4]) {
    asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (kt + ST - 1 < NK) load(kt + ST - 1, (kt + ST - 1) % ST);
    asm volatile("cp.async.commit_group;");
    const unsigned bs = sb + (kt % ST) * SB;
    const uint64_t dsc = matrix_descriptor(bs, 4096, 1024);
    wgmma_fence();
    if constexpr (N == 256) {
      rs256_tb(acc, u0, dsc);
      rs256_tb(acc, u1, dsc + (2048 >> 4));
    } else {
      rs128_tb(acc, u0, dsc);
      rs128_tb(acc, u1, dsc + (2048 >> 4));
    }
    wgmma_commit();
    gen(kt * 2 + 2, x0);
    gen(kt * 2 + 3, x1);
    wgmma_wait<0>();
  };
  auto prefetch = [&]() {
    for (int s = 0; s < ST - 1; s++) {
      if (s < NK) load(s, s);
      asm volatile("cp.async.commit_group;");
    }
  };
  setup(0);
  prefetch();
#pragma unroll 1
  for (int h_ = 0; h_ < 2; h_++) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) acc[i] = 0.f;
    gen(0, a0);
    gen(1, a1);
    for (int kt = 0; kt < NK; kt += 2) {
      body(kt, a0, a1, b0, b1);
      if (kt + 1 < NK) body(kt + 1, b0, b1, a0, a1);
    }
    half* oz = ob + (hb ? nd.mid - nd.base : 0);
    const int rw = rows;
    if (h_ == 0) {
      __syncthreads();
      setup(1);
      prefetch();
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      bool ok = jw + 8 * h < k;
#pragma unroll
      for (int f = 0; f < N / 8; f += 4) {
        unsigned v0 = pack_halves(acc[4 * f + 2 * h], acc[4 * f + 2 * h + 1]),
                 v1 = pack_halves(acc[4 * f + 4 + 2 * h], acc[4 * f + 5 + 2 * h]);
        unsigned v2 = pack_halves(acc[4 * f + 8 + 2 * h], acc[4 * f + 9 + 2 * h]),
                 v3 = pack_halves(acc[4 * f + 12 + 2 * h], acc[4 * f + 13 + 2 * h]);
        transpose_quad(t4, v0, v1, v2, v3);
        int r = 8 * (f + t4);
        if (ok && r < rw) *(uint4*)(oz + js[h] + r) = make_uint4(v0, v1, v2, v3);
      }
    }
  }
}
}  // namespace dc
}  // namespace crucible::eigh
