// newton_schulz.cuh: one Newton-Schulz step in residual form, Q = Z + Z half(0.5 (I - Z^T Z)).
//
// Layouts: see back_transform.cu. gram_kernel makes the correction's upper tiles, ns_kernel applies
// it and writes Q in FP32.
#pragma once

#include "back_pack.cuh"
#include "mbarrier_ops.cuh"

namespace crucible::eigh::back {
// E = half(0.5*(I - Z^T Z)), upper 128x128 tiles only; E tiles (ib,jb): line = ib column index, jb
// contiguous, swizzled
constexpr int kGramStages = 3;  // stages of the Gram kernel's ring
__global__ __launch_bounds__(288, 2) void gram_kernel(const uint8_t* __restrict__ Zp,
                                                      uint8_t* __restrict__ E, int n) {
  extern __shared__ uint8_t sm0[];
  uint8_t* sm = sm0 + ((1024 - (shared_address(sm0) & 1023)) & 1023);
  uint64_t* bars = (uint64_t*)(sm + kGramStages * 4 * kTileBytes);
  uint32_t full = shared_address(bars), empty = shared_address(bars + kGramStages);
  int NB = n / 64, tid = threadIdx.x, wg = tid >> 7, b = blockIdx.y;
  int x = blockIdx.x, I = 0, NT = NB / 2;
  while (x >= NT - I) {
    x -= NT - I;
    I++;
  }
  int J = I + x;
  const uint8_t* Zb = Zp + (size_t)b * NB * NB * kTileBytes;
  if (tid == 0) {
    for (int i = 0; i < kGramStages; i++) {
      mbarrier_init(full + 8 * i, 1);
      mbarrier_init(empty + 8 * i, 2 * kSignallers);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (wg == 2) {
    if (tid == 256) {
      for (int k = 0; k < NB; k++) {
        int s = k % kGramStages, ph = ((k / kGramStages) & 1) ^ 1;
        mbarrier_wait(empty + 8 * s, ph);
        mbarrier_expect(full + 8 * s, (I == J ? 2 : 4) * kTileBytes);
        uint32_t d = shared_address(sm + s * 4 * kTileBytes);
        bulk_copy(d, Zb + ((size_t)(2 * I) * NB + k) * kTileBytes, kTileBytes, full + 8 * s);
        bulk_copy(d + kTileBytes, Zb + ((size_t)(2 * I + 1) * NB + k) * kTileBytes, kTileBytes,
                  full + 8 * s);
        if (I != J) {
          bulk_copy(d + 2 * kTileBytes, Zb + ((size_t)(2 * J) * NB + k) * kTileBytes, kTileBytes,
                    full + 8 * s);
          bulk_copy(d + 3 * kTileBytes, Zb + ((size_t)(2 * J + 1) * NB + k) * kTileBytes,
                    kTileBytes, full + 8 * s);
        }
      }
    }
  } else {
    float acc[64];
#pragma unroll
    for (int i = 0; i < 64; i++) acc[i] = 0.f;
    int boff = (I == J) ? 0 : 2 * kTileBytes;
    for (int k = 0; k < NB; k++) {
      int s = k % kGramStages;
      mbarrier_wait(full + 8 * s, (k / kGramStages) & 1);
      uint32_t base = shared_address(sm + s * 4 * kTileBytes);
      uint64_t da = matrix_descriptor(base + wg * kTileBytes), db = matrix_descriptor(base + boff);
      wgmma_fence();
#pragma unroll
      for (int q = 0; q < 4; q++) ss128_kk(acc, da + 2 * q, db + 2 * q);
      wgmma_commit();
      if (k > 0) {
        wgmma_wait<1>();
        if (signals(tid & 127)) mbarrier_arrive(empty + 8 * ((k - 1) % kGramStages));
      }
    }
    wgmma_wait<0>();
    int lane = tid & 31, w = (tid >> 5) & 3, g = lane >> 2, t = lane & 3;
    int ib = 2 * I + wg;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int jb = 2 * J + h;
      if (jb >= ib) {
        uint8_t* T = E + (size_t)b * NB * NB * kTileBytes + ((size_t)ib * NB + jb) * kTileBytes;
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
            *(unsigned*)(T + m * 128 + ((i ^ (m & 7)) << 4) + 4 * t) = pack_half2(e0, e1);
          }
        }
      }
    }
  }
}
// Q = Z + Z E, float, row-major, tile 128*MT rows x 128 columns; MT=1 runs two CTAs an SM
template <int MT>
struct NC {
  static constexpr int kStages = MT == 2 ? 4 : 3, ST = 2 * MT + 2,
                       SMEM = kStages * ST * kTileBytes + 2048;
};
template <int MT>
__global__ __launch_bounds__(MT == 2 ? 384 : 288,
                             MT == 2 ? 1 : 2) void ns_kernel(const uint8_t* __restrict__ Zp,
                                                             const uint8_t* __restrict__ E,
                                                             float* __restrict__ Q, int n, int nq) {
  constexpr int kStages = NC<MT>::kStages, ST = NC<MT>::ST;
  extern __shared__ uint8_t sm0[];
  uint8_t* sm = sm0 + ((1024 - (shared_address(sm0) & 1023)) & 1023);
  uint64_t* bars = (uint64_t*)(sm + kStages * ST * kTileBytes);
  uint32_t full = shared_address(bars), empty = shared_address(bars + kStages);
  int NB = n / 64, tid = threadIdx.x, wg = tid >> 7, b = blockIdx.y;
  int NT = NB / 2, J = blockIdx.x % NT, I = blockIdx.x / NT;
  const uint8_t* Zb = Zp + (size_t)b * NB * NB * kTileBytes;
  const uint8_t* Eb = E + (size_t)b * NB * NB * kTileBytes;
  if (tid == 0) {
    for (int i = 0; i < kStages; i++) {
      mbarrier_init(full + 8 * i, 1);
      mbarrier_init(empty + 8 * i, 2 * kSignallers);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  auto kmap = [&](int k) { return k < 2 ? 2 * J + k : (k - 2 < 2 * J ? k - 2 : k); };
  if (wg == 2) {
    if constexpr (MT == 2) give_registers<24>();
    if (tid == 256) {
      for (int k = 0; k < NB; k++) {
        int s = k % kStages, ph = ((k / kStages) & 1) ^ 1, kb = kmap(k);
        mbarrier_wait(empty + 8 * s, ph);
        mbarrier_expect(full + 8 * s, ST * kTileBytes);
        uint32_t d = shared_address(sm + s * ST * kTileBytes);
        bulk_copy(d, Zb + ((size_t)kb * NB + 2 * MT * I) * kTileBytes, 2 * MT * kTileBytes,
                  full + 8 * s);
        if (kb <= 2 * J)
          bulk_copy(d + 2 * MT * kTileBytes, Eb + ((size_t)kb * NB + 2 * J) * kTileBytes,
                    2 * kTileBytes, full + 8 * s);
        else {
          bulk_copy(d + 2 * MT * kTileBytes, Eb + ((size_t)(2 * J) * NB + kb) * kTileBytes,
                    kTileBytes, full + 8 * s);
          bulk_copy(d + (2 * MT + 1) * kTileBytes,
                    Eb + ((size_t)(2 * J + 1) * NB + kb) * kTileBytes, kTileBytes, full + 8 * s);
        }
      }
    }
  } else {
    if constexpr (MT == 2) take_registers<232>();
    int lane = tid & 31, w = (tid >> 5) & 3, g = lane >> 2, t = lane & 3;
    float acc[MT][64];
    mbarrier_wait(full, 0);
    mbarrier_wait(full + 8, 0);
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t base = shared_address(sm + h * ST * kTileBytes) + (MT * wg + m) * kTileBytes;
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
          f = unpack_half2(r0);
          acc[m][32 * h + 4 * i] = f.x;
          acc[m][32 * h + 4 * i + 1] = f.y;
          f = unpack_half2(r1);
          acc[m][32 * h + 4 * i + 2] = f.x;
          acc[m][32 * h + 4 * i + 3] = f.y;
          f = unpack_half2(r2);
          acc[m][32 * h + 4 * i + 4] = f.x;
          acc[m][32 * h + 4 * i + 5] = f.y;
          f = unpack_half2(r3);
          acc[m][32 * h + 4 * i + 6] = f.x;
          acc[m][32 * h + 4 * i + 7] = f.y;
        }
      }
    for (int k = 0; k < NB; k++) {
      int s = k % kStages, kb = kmap(k);
      mbarrier_wait(full + 8 * s, (k / kStages) & 1);
      uint32_t base = shared_address(sm + s * ST * kTileBytes);
      uint64_t d0 = matrix_descriptor(base + (MT * wg) * kTileBytes),
               d1 = matrix_descriptor(base + (MT * wg + 1) * kTileBytes);
      wgmma_fence();
      if (kb <= 2 * J) {
        uint64_t db = matrix_descriptor(base + 2 * MT * kTileBytes, kTileBytes, 1024);
#pragma unroll
        for (int q = 0; q < 4; q++) {
          ss128_tt(acc[0], d0 + 128 * q, db + 128 * q);
          if constexpr (MT == 2) ss128_tt(acc[MT - 1], d1 + 128 * q, db + 128 * q);
        }
      } else {
        uint64_t db = matrix_descriptor(base + 2 * MT * kTileBytes);
#pragma unroll
        for (int q = 0; q < 4; q++) {
          ss128_tk(acc[0], d0 + 128 * q, db + 2 * q);
          if constexpr (MT == 2) ss128_tk(acc[MT - 1], d1 + 128 * q, db + 2 * q);
        }
      }
      wgmma_commit();
      if (k > 0) {
        wgmma_wait<1>();
        if (signals(tid & 127)) mbarrier_arrive(empty + 8 * ((k - 1) % kStages));
      }
    }
    wgmma_wait<0>();
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
