// back_apply.cuh: applies the packed block reflectors to columns of Z held as wgmma A fragments.
//
// Layouts: see back_transform.cu. Persistent blocks; a warpgroup holds 64 columns or shares them.
#pragma once

#include "back_pack.cuh"
#include "mbarrier_ops.cuh"

namespace crucible::eigh::back {
// kRowSplits: parts that the rows of 64 columns of Z are split in. 1: each warpgroup owns 64 columns
// (n <= 512); 2: both share 64 columns (n <= 1024); 4: two blocks, four warpgroups share them
// (n <= 2048).
constexpr int kStagedColumnBytes = 1088;  // bytes between staged Z columns (order 512)
template <int kRowSplits>
struct Cfg {
  static constexpr int SL = kRowSplits == 1 ? 11 : (kRowSplits == 2 ? 22 : 19);
  static constexpr int EX =
      kRowSplits == 1 ? 128 * kStagedColumnBytes : (kRowSplits == 2 ? 32768 : 65536);
  static constexpr int SMEM = SL * kTileBytes + EX + 1024 + 1024;
};
// 16 contiguous bytes of Z columns g (a) and g + 8 (c) as parts of two A fragments.
__device__ __forceinline__ void to_fragments(uint4 a, uint4 c, unsigned (&f0)[4],
                                             unsigned (&f1)[4]) {
  f0[0] = a.x;
  f0[2] = a.y;
  f1[0] = a.z;
  f1[2] = a.w;
  f0[1] = c.x;
  f0[3] = c.y;
  f1[1] = c.z;
  f1[3] = c.w;
}
// Z <- (I - V T V^T) Z for every panel of 64 reflectors, the last first.
//
// 384 threads: warpgroup 2 is the producer, one thread of it streams the packed V and T tiles into
// a ring of SL slots by bulk copies (mbarriers full / empty: the consumers arrive on empty once a
// product that read the slot is complete); warpgroups 0 and 1 hold columns of Z as FP16 A
// fragments zf[8][4] in 128 registers. A panel: W = Z^T V by the tiles of the own row blocks (FP32,
// summed over the warpgroups that share the columns; split in 2: through ex between two barriers 1
// of both warpgroups; in 4: also to the partner block by st.async on xfull, ex freed on xfree), W T,
// then Z -= W V^T tile by tile. Not split: blocks are persistent and Z is staged in ex by the
// producer (xfull / xfree). Grid: not split up to one block a multiprocessor; 2: (columns / 64,
// batch); 4: the same twice, in clusters of two.
template <int kRowSplits>
__global__ __launch_bounds__(384, 1) void back_kernel(const uint8_t* __restrict__ Vp,
                                                      const __half* __restrict__ Zt,
                                                      uint8_t* __restrict__ Zp, int n, int batch) {
  extern __shared__ uint8_t sm0[];
  constexpr int SL = Cfg<kRowSplits>::SL;
  uint8_t* sm = sm0 + ((1024 - (shared_address(sm0) & 1023)) & 1023);
  uint8_t* ring = sm;
  float* ex = (float*)(sm + SL * kTileBytes);
  uint64_t* bars = (uint64_t*)(sm + SL * kTileBytes + Cfg<kRowSplits>::EX);
  uint32_t full = shared_address(bars), empty = shared_address(bars + SL),
           xfull = shared_address(bars + 2 * SL), xfree = shared_address(bars + 2 * SL + 1);
  const int NB = n / 64, tid = threadIdx.x, wg = tid >> 7;
  int b = blockIdx.y;
  int slab, crank = 0;
  if (kRowSplits == 4) {
    slab = blockIdx.x >> 1;
    crank = blockIdx.x & 1;
  } else
    slab = blockIdx.x;
  const int items = kRowSplits == 1 ? batch * (n / 128) : 1, it0 = kRowSplits == 1 ? blockIdx.x : 0,
            its = kRowSplits == 1 ? gridDim.x : 1;
  if (tid == 0) {
    for (int i = 0; i < SL; i++) {
      mbarrier_init(full + 8 * i, 1);
      mbarrier_init(empty + 8 * i, 2 * kSignallers);
    }
    mbarrier_init(xfull, kRowSplits == 1 ? 1 : 2 * kSignallers);
    mbarrier_init(xfree, (kRowSplits == 1 ? 2 : 4) * kSignallers);
    mbarrier_init_fence();
  }
  __syncthreads();
  if (kRowSplits == 4) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
  if (wg == 2) {
    give_registers<24>();
    if (tid == 256) {
      int s = 0, ph = 1;  // first pass: empty barriers are free (parity trick)
      int zc = 0;
      auto loadz = [&](int it) {  // kRowSplits==1: stage the slab of item it
        int slab = it & 3, b = it >> 2;
        const uint8_t* src = (const uint8_t*)(Zt + (size_t)b * n * n + (size_t)slab * 128 * n);
        mbarrier_wait(xfree, (zc & 1) ^ 1);
        mbarrier_expect(xfull, 128 * 1024);
        for (int c = 0; c < 128; c++)
          bulk_copy(shared_address(ex) + c * kStagedColumnBytes, src + c * 1024, 1024, xfull);
        zc++;
      };
      if (kRowSplits == 1 && it0 < items) loadz(it0);
      for (int it = it0; it < items; it += its) {
        if (kRowSplits == 1) b = it >> 2;
        const uint8_t* Vb = Vp + (size_t)b * panel_start(NB, NB) * kTileBytes;
        for (int j = NB - 1; j >= 0; j--) {
          const uint8_t* P = Vb + (size_t)panel_start(j, NB) * kTileBytes;
          mbarrier_wait(empty + 8 * s, ph);
          mbarrier_expect(full + 8 * s, kTileBytes);
          bulk_copy(shared_address(ring + s * kTileBytes), P, kTileBytes, full + 8 * s);
          if (++s == SL) {
            s = 0;
            ph ^= 1;
          }
          for (int r = j; r < NB; r++) {
            if (kRowSplits == 4 && ((r >> 1) & 1) != crank) continue;
            mbarrier_wait(empty + 8 * s, ph);
            mbarrier_expect(full + 8 * s, kTileBytes);
            bulk_copy(shared_address(ring + s * kTileBytes), P + (size_t)(1 + r - j) * kTileBytes,
                      kTileBytes, full + 8 * s);
            if (++s == SL) {
              s = 0;
              ph ^= 1;
            }
          }
          if (kRowSplits == 1 && j == NB - 3 && it + its < items) loadz(it + its);
        }
      }
    }
    __syncwarp();
  } else {
    take_registers<240>();
    const int lane = tid & 31, w = (tid >> 5) & 3, g = lane >> 2, t = lane & 3, wt = tid & 127;
    int s0 = 0, ph0 = 0;  // slot of the panel's T tile
    uint32_t rb = shared_address(ring);
    int xp = 0;
    for (int it = it0; it < items; it += its) {
      if (kRowSplits == 1) {
        b = it >> 2;
        slab = it & 3;
      }
      const int cb = kRowSplits == 1 ? slab * 2 + wg : slab;  // 64-column block
      const int rbase = kRowSplits == 1 ? 0 : (kRowSplits == 2 ? wg : 2 * crank + wg);
      unsigned zf[8][4][4];
      if (kRowSplits == 1) {
        mbarrier_wait(xfull, xp);
        const uint8_t* zc =
            (const uint8_t*)ex + (64 * wg + 16 * w + g) * kStagedColumnBytes + 16 * t;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
          for (int qp = 0; qp < 2; qp++) {
            int off = 128 * i + 64 * qp;
            uint4 a = *(const uint4*)(zc + off),
                  c = *(const uint4*)(zc + 8 * kStagedColumnBytes + off);
            to_fragments(a, c, zf[i][2 * qp], zf[i][2 * qp + 1]);
          }
        }
        if (kSignallers == 1) asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory");
        if (signals(wt)) mbarrier_arrive(xfree);
        xp ^= 1;
      } else {
        const __half* zc = Zt + (size_t)b * n * n + (size_t)(64 * cb + 16 * w + g) * n + 8 * t;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
          for (int qp = 0; qp < 2; qp++) {
            int row = 64 * (kRowSplits * i + rbase) + 32 * qp;
            uint4 a = *(const uint4*)(zc + row), c = *(const uint4*)(zc + 8 * (size_t)n + row);
            to_fragments(a, c, zf[i][2 * qp], zf[i][2 * qp + 1]);
          }
        }
      }
      // Split in 2: a barrier of the two consumer warpgroups.
      auto meet = [&] {
        if (kSignallers == 1) {
          asm volatile("bar.sync 1,256;" ::: "memory");
        } else {
          mbarrier_arrive(xfull);
          mbarrier_wait(xfull, xp);
          xp ^= 1;
        }
      };
      for (int j = NB - 1; j >= 0; j--) {
        float W[32];
#pragma unroll
        for (int i = 0; i < 32; i++) W[i] = 0.f;
        // own tile of block group i sits at stream index 1+STEP*i+off of this panel
        constexpr int STEP = kRowSplits == 1 ? 1 : 2;
        int fj = kRowSplits == 4 ? 2 * (j >> 2) + min(max((j & 3) - 2 * crank, 0), 2) : j;
        const int off = (kRowSplits == 1 ? 0 : wg) - fj;
        const int ntile = (kRowSplits == 1 ? 8 : 16) - fj;
        auto slot = [&](int idx, int& s, int& ph) {
          s = s0 + idx;
          ph = ph0;
          if (s >= SL) {
            s -= SL;
            ph ^= 1;
          }
        };
#pragma unroll
        for (int i = 0; i < 8; i++) {
          if (kRowSplits * i + rbase >= j) {
            int s, ph;
            slot(1 + STEP * i + off, s, ph);
            mbarrier_wait(full + 8 * s, ph);
            uint64_t d = matrix_descriptor(rb + s * kTileBytes);
            wgmma_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_tb(W, zf[i][q], d + q * 128);
            wgmma_commit();
          }
        }
        wgmma_wait<0>();
        if (kRowSplits == 2) {
          float4* e = (float4*)ex + wg * 1024 + wt;
          const float4* o = (const float4*)ex + (1 - wg) * 1024 + wt;
#pragma unroll
          for (int i = 0; i < 8; i++)
            e[i * 128] = make_float4(W[4 * i], W[4 * i + 1], W[4 * i + 2], W[4 * i + 3]);
          meet();
#pragma unroll
          for (int i = 0; i < 8; i++) {
            float4 f = o[i * 128];
            W[4 * i] += f.x;
            W[4 * i + 1] += f.y;
            W[4 * i + 2] += f.z;
            W[4 * i + 3] += f.w;
          }
          meet();
        }
        if (kRowSplits ==
            4) {  // own partial to both CTAs: plain stores here, st.async to the partner
          int gidx = 2 * crank + wg;
          float4* mine = (float4*)ex + gidx * 1024 + wt;
          uint32_t rem, rbar;
          asm volatile("mapa.shared::cluster.u32 %0,%1,%2;"
                       : "=r"(rem)
                       : "r"(shared_address(mine)), "r"(crank ^ 1));
          asm volatile("mapa.shared::cluster.u32 %0,%1,%2;"
                       : "=r"(rbar)
                       : "r"(xfull), "r"(crank ^ 1));
          mbarrier_wait(xfree, xp ^ 1);
#pragma unroll
          for (int i = 0; i < 8; i++) {
            asm volatile(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                "[%0],{%1,%2,%3,%4},[%5];" ::"r"(rem + i * 2048),
                "f"(W[4 * i]), "f"(W[4 * i + 1]), "f"(W[4 * i + 2]), "f"(W[4 * i + 3]), "r"(rbar)
                : "memory");
            mine[i * 128] = make_float4(W[4 * i], W[4 * i + 1], W[4 * i + 2], W[4 * i + 3]);
          }
          if (kSignallers == 1) asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory");
          if (signals(wt)) mbarrier_expect(xfull, 16384 / kSignallers);
          mbarrier_wait(xfull, xp);
          const float4* o = (const float4*)ex + wt;
#pragma unroll
          for (int i = 0; i < 8; i++) {
            float4 f = o[i * 128], g2 = o[1024 + i * 128], h = o[2048 + i * 128],
                   k = o[3072 + i * 128];
            W[4 * i] = (f.x + g2.x) + (h.x + k.x);
            W[4 * i + 1] = (f.y + g2.y) + (h.y + k.y);
            W[4 * i + 2] = (f.z + g2.z) + (h.z + k.z);
            W[4 * i + 3] = (f.w + g2.w) + (h.w + k.w);
          }
          if (kSignallers == 1) asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory");
          if (signals(wt)) {
            mbarrier_arrive_remote(xfree, 0);
            mbarrier_arrive_remote(xfree, 1);
          }
          xp ^= 1;
        }
        unsigned Wh[4][4];
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
          for (int x = 0; x < 4; x++) Wh[q][x] = pack_half2(W[8 * q + 2 * x], W[8 * q + 2 * x + 1]);
        float W2[32];
#pragma unroll
        for (int i = 0; i < 32; i++) W2[i] = 0.f;
        mbarrier_wait(full + 8 * s0, ph0);
        {
          uint64_t d = matrix_descriptor(rb + s0 * kTileBytes);
          wgmma_fence();
#pragma unroll
          for (int q = 0; q < 4; q++) rs64_kb(W2, Wh[q], d + q * 2);
          wgmma_commit();
          wgmma_wait<0>();
        }
        if (signals(wt)) mbarrier_arrive(empty + 8 * s0);
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
          for (int x = 0; x < 4; x++)
            Wh[q][x] = pack_half2(W2[8 * q + 2 * x], W2[8 * q + 2 * x + 1]);
        auto unpackz = [&](float(&a)[32], int i) {
#pragma unroll
          for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < 4; x++) {
              float2 f = unpack_half2(zf[i][q][x]);
              a[8 * q + 2 * x] = f.x;
              a[8 * q + 2 * x + 1] = f.y;
            }
        };
        auto packz = [&](const float(&a)[32], int i) {
#pragma unroll
          for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < 4; x++)
              zf[i][q][x] = pack_half2(a[8 * q + 2 * x], a[8 * q + 2 * x + 1]);
        };
        auto rel = [&](int s) {
          if (signals(wt)) {
            if (kRowSplits == 1)
              mbarrier_arrive(empty + 8 * s);
            else
              mbarrier_arrive_twice(empty + 8 * s);
          }
        };
#pragma unroll
        for (int ip = 0; ip < 4; ip++) {
          const int i1 = 2 * ip + 1, i0 = 2 * ip;
          if (kRowSplits * i0 + rbase >= j) {
            int sA, sB, ph;
            slot(1 + STEP * i0 + off, sA, ph);
            slot(1 + STEP * i1 + off, sB, ph);
            float a[32], c[32];
            unpackz(a, i0);
            uint64_t d = matrix_descriptor(rb + sA * kTileBytes),
                     e = matrix_descriptor(rb + sB * kTileBytes);
            wgmma_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_kb_neg(a, Wh[q], d + q * 2);
            wgmma_commit();
            unpackz(c, i1);
            wgmma_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_kb_neg(c, Wh[q], e + q * 2);
            wgmma_commit();
            wgmma_wait<1>();
            packz(a, i0);
            rel(sA);
            wgmma_wait<0>();
            packz(c, i1);
            rel(sB);
          } else if (kRowSplits * i1 + rbase >= j) {
            int sB, ph;
            slot(1 + STEP * i1 + off, sB, ph);
            float c[32];
            unpackz(c, i1);
            uint64_t e = matrix_descriptor(rb + sB * kTileBytes);
            wgmma_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_kb_neg(c, Wh[q], e + q * 2);
            wgmma_commit();
            wgmma_wait<0>();
            packz(c, i1);
            rel(sB);
          }
        }
        s0 += 1 + ntile;
        if (s0 >= SL) {
          s0 -= SL;
          ph0 ^= 1;
        }
      }
      // packed output tiles: (cb, r): line = column, natural rows, 128-byte swizzle
      uint8_t* zo = Zp + (size_t)b * NB * NB * kTileBytes + (size_t)cb * NB * kTileBytes;
      int c0 = 16 * w + g, c1 = c0 + 8;
#pragma unroll
      for (int i = 0; i < 8; i++) {
        uint8_t* T = zo + (size_t)(kRowSplits * i + rbase) * kTileBytes;
#pragma unroll
        for (int qp = 0; qp < 2; qp++) {
          int ch = 4 * qp + t;
          *(uint4*)(T + c0 * 128 + ((ch ^ (c0 & 7)) << 4)) = make_uint4(
              zf[i][2 * qp][0], zf[i][2 * qp][2], zf[i][2 * qp + 1][0], zf[i][2 * qp + 1][2]);
          *(uint4*)(T + c1 * 128 + ((ch ^ (c1 & 7)) << 4)) = make_uint4(
              zf[i][2 * qp][1], zf[i][2 * qp][3], zf[i][2 * qp + 1][1], zf[i][2 * qp + 1][3]);
        }
      }
    }
  }
  if (kRowSplits == 4) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
}

}  // namespace crucible::eigh::back
