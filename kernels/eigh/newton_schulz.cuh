// newton_schulz.cuh: one Newton-Schulz step in residual form, Q = Z + Z half(0.5 (I - Z^T Z)).
//
// Layouts: see back_transform.cu. gram_kernel makes the correction's upper tiles, ns_kernel applies
// it and writes Q in FP32.
#pragma once

#include "back_pack.cuh"

namespace crucible::eigh::back {
// E = half(0.5*(I - Z^T Z)), upper 128x128 tiles only; E tiles (ib,jb): line = ib column index, jb
// contiguous, swizzled
constexpr int GST = 3;  // stages of the Gram kernel's ring
__global__ __launch_bounds__(288, 2) void gram_kernel(const uint8_t* __restrict__ Zp,
                                                      uint8_t* __restrict__ E, int n) {
  extern __shared__ uint8_t sm0[];
  uint8_t* sm = sm0 + ((1024 - (sa(sm0) & 1023)) & 1023);
  uint64_t* bars = (uint64_t*)(sm + GST * 4 * TB);
  uint32_t full = sa(bars), empty = sa(bars + GST);
  int NB = n / 64, tid = threadIdx.x, wg = tid >> 7, b = blockIdx.y;
  int x = blockIdx.x, I = 0, NT = NB / 2;
  while (x >= NT - I) {
    x -= NT - I;
    I++;
  }
  int J = I + x;
  const uint8_t* Zb = Zp + (size_t)b * NB * NB * TB;
  if (tid == 0) {
    for (int i = 0; i < GST; i++) {
      mb_init(full + 8 * i, 1);
      mb_init(empty + 8 * i, 2 * kSignallers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (wg == 2) {
    if (tid == 256) {
      for (int k = 0; k < NB; k++) {
        int s = k % GST, ph = ((k / GST) & 1) ^ 1;
        mb_wait(empty + 8 * s, ph);
        mb_expect(full + 8 * s, (I == J ? 2 : 4) * TB);
        uint32_t d = sa(sm + s * 4 * TB);
        bulk(d, Zb + ((size_t)(2 * I) * NB + k) * TB, TB, full + 8 * s);
        bulk(d + TB, Zb + ((size_t)(2 * I + 1) * NB + k) * TB, TB, full + 8 * s);
        if (I != J) {
          bulk(d + 2 * TB, Zb + ((size_t)(2 * J) * NB + k) * TB, TB, full + 8 * s);
          bulk(d + 3 * TB, Zb + ((size_t)(2 * J + 1) * NB + k) * TB, TB, full + 8 * s);
        }
      }
    }
  } else {
    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; i++) acc[i] = 0.f;
    int boff = (I == J) ? 0 : 2 * TB;
    for (int k = 0; k < NB; k++) {
      int s = k % GST;
      mb_wait(full + 8 * s, (k / GST) & 1);
      uint32_t base = sa(sm + s * 4 * TB);
      uint64_t da = mkdesc(base + wg * TB), db = mkdesc(base + boff);
      wg_fence();
#pragma unroll
      for (int q = 0; q < 4; q++) ss128_kk(acc, da + 2 * q, db + 2 * q);
      wg_commit();
      if (k > 0) {
        wg_wait<1>();
        if (signals(tid & 127)) mb_arrive(empty + 8 * ((k - 1) % GST));
      }
    }
    wg_wait<0>();
    int lane = tid & 31, w = (tid >> 5) & 3, g = lane >> 2, t = lane & 3;
    int ib = 2 * I + wg;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int jb = 2 * J + h;
      if (jb >= ib) {
        uint8_t* T = E + (size_t)b * NB * NB * TB + ((size_t)ib * NB + jb) * TB;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
          for (int r = 0; r < 2; r++) {
            int m = 16 * w + g + 8 * r, c = 8 * i + 2 * t;
            float e0 = -0.5f * acc[32 * h + 4 * i + 2 * r],
                  e1 = -0.5f * acc[32 * h + 4 * i + 2 * r + 1];
            if (ib == jb) {
              if (m == c) e0 += 0.5f;
              if (m == c + 1) e1 += 0.5f;
            }
            *(unsigned*)(T + m * 128 + ((i ^ (m & 7)) << 4) + 4 * t) = pk(e0, e1);
          }
        }
      }
    }
  }
}
// Q = Z + Z E, float, row-major, tile 128*MT rows x 128 columns; MT=1 runs two CTAs an SM
template <int MT>
struct NC {
  static constexpr int QST = MT == 2 ? 4 : 3, ST = 2 * MT + 2, SMEM = QST * ST * TB + 2048;
};
template <int MT>
__global__ __launch_bounds__(MT == 2 ? 384 : 288,
                             MT == 2 ? 1 : 2) void ns_kernel(const uint8_t* __restrict__ Zp,
                                                             const uint8_t* __restrict__ E,
                                                             float* __restrict__ Q, int n, int nq) {
  constexpr int QST = NC<MT>::QST, ST = NC<MT>::ST;
  extern __shared__ uint8_t sm0[];
  uint8_t* sm = sm0 + ((1024 - (sa(sm0) & 1023)) & 1023);
  uint64_t* bars = (uint64_t*)(sm + QST * ST * TB);
  uint32_t full = sa(bars), empty = sa(bars + QST);
  int NB = n / 64, tid = threadIdx.x, wg = tid >> 7, b = blockIdx.y;
  int NT = NB / 2, J = blockIdx.x % NT, I = blockIdx.x / NT;
  const uint8_t* Zb = Zp + (size_t)b * NB * NB * TB;
  const uint8_t* Eb = E + (size_t)b * NB * NB * TB;
  if (tid == 0) {
    for (int i = 0; i < QST; i++) {
      mb_init(full + 8 * i, 1);
      mb_init(empty + 8 * i, 2 * kSignallers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  auto kmap = [&](int k) { return k < 2 ? 2 * J + k : (k - 2 < 2 * J ? k - 2 : k); };
  if (wg == 2) {
    if constexpr (MT == 2) CRUCIBLE_SM90A(asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"));
    if (tid == 256) {
      for (int k = 0; k < NB; k++) {
        int s = k % QST, ph = ((k / QST) & 1) ^ 1, kb = kmap(k);
        mb_wait(empty + 8 * s, ph);
        mb_expect(full + 8 * s, ST * TB);
        uint32_t d = sa(sm + s * ST * TB);
        bulk(d, Zb + ((size_t)kb * NB + 2 * MT * I) * TB, 2 * MT * TB, full + 8 * s);
        if (kb <= 2 * J)
          bulk(d + 2 * MT * TB, Eb + ((size_t)kb * NB + 2 * J) * TB, 2 * TB, full + 8 * s);
        else {
          bulk(d + 2 * MT * TB, Eb + ((size_t)(2 * J) * NB + kb) * TB, TB, full + 8 * s);
          bulk(d + (2 * MT + 1) * TB, Eb + ((size_t)(2 * J + 1) * NB + kb) * TB, TB, full + 8 * s);
        }
      }
    }
  } else {
    if constexpr (MT == 2) CRUCIBLE_SM90A(asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"));
    int lane = tid & 31, w = (tid >> 5) & 3, g = lane >> 2, t = lane & 3;
    float acc[MT][64];
    mb_wait(full, 0);
    mb_wait(full + 8, 0);
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t base = sa(sm + h * ST * TB) + (MT * wg + m) * TB;
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
          int mat = lane >> 3, col = 8 * (i + (mat >> 1)) + (lane & 7), ch = 2 * w + (mat & 1);
          uint32_t a = base + col * 128 + ((ch ^ (col & 7)) << 4);
          unsigned r0, r1, r2, r3;
          asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                       : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                       : "r"(a)
                       : "memory");
          float2 f;
          f = up(r0);
          acc[m][32 * h + 4 * i] = f.x;
          acc[m][32 * h + 4 * i + 1] = f.y;
          f = up(r1);
          acc[m][32 * h + 4 * i + 2] = f.x;
          acc[m][32 * h + 4 * i + 3] = f.y;
          f = up(r2);
          acc[m][32 * h + 4 * i + 4] = f.x;
          acc[m][32 * h + 4 * i + 5] = f.y;
          f = up(r3);
          acc[m][32 * h + 4 * i + 6] = f.x;
          acc[m][32 * h + 4 * i + 7] = f.y;
        }
      }
    for (int k = 0; k < NB; k++) {
      int s = k % QST, kb = kmap(k);
      mb_wait(full + 8 * s, (k / QST) & 1);
      uint32_t base = sa(sm + s * ST * TB);
      uint64_t d0 = mkdesc(base + (MT * wg) * TB), d1 = mkdesc(base + (MT * wg + 1) * TB);
      wg_fence();
      if (kb <= 2 * J) {
        uint64_t db = mkdesc(base + 2 * MT * TB, TB, 1024);
#pragma unroll
        for (int q = 0; q < 4; q++) {
          ss128_tt(acc[0], d0 + 128 * q, db + 128 * q);
          if constexpr (MT == 2) ss128_tt(acc[MT - 1], d1 + 128 * q, db + 128 * q);
        }
      } else {
        uint64_t db = mkdesc(base + 2 * MT * TB);
#pragma unroll
        for (int q = 0; q < 4; q++) {
          ss128_tk(acc[0], d0 + 128 * q, db + 2 * q);
          if constexpr (MT == 2) ss128_tk(acc[MT - 1], d1 + 128 * q, db + 2 * q);
        }
      }
      wg_commit();
      if (k > 0) {
        wg_wait<1>();
        if (signals(tid & 127)) mb_arrive(empty + 8 * ((k - 1) % QST));
      }
    }
    wg_wait<0>();
    float* Qb = Q + (size_t)b * nq * nq;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int row = 64 * (2 * MT * I + MT * wg + m) + 16 * w + g + 8 * r, col = 128 * J + 2 * t;
        float* q = Qb + (size_t)row * nq + col;
        if (nq == n) {
#pragma unroll
          for (int i = 0; i < 16; i++)
            __stcs((float2*)(q + 8 * i),
                   make_float2(acc[m][4 * i + 2 * r], acc[m][4 * i + 2 * r + 1]));
        } else if (row < nq) {
#pragma unroll
          for (int i = 0; i < 16; i++) {
            if (col + 8 * i < nq) q[8 * i] = acc[m][4 * i + 2 * r];
            if (col + 8 * i + 1 < nq) q[8 * i + 1] = acc[m][4 * i + 2 * r + 1];
          }
        }
      }
  }
}

}  // namespace crucible::eigh::back
