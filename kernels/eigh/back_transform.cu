// back_transform.cu: Q = NewtonSchulz(H_0 H_1 ... Z), FP16 operands, FP32 sums (wgmma, sm_90a).
//
// Works at the padded order P (512, 1024 or 2048): V is read with zeros beyond its columns, Q is
// written back at its own order. pack_kernel turns V into swizzled 64x64 tiles with the compact-WY
// factor T of every 64 reflectors, from tau = 2 / (v^T v) of the stored v, so that each block
// reflector is orthogonal to FP16 accuracy of T. back_kernel applies all panels, last first, to 64
// columns of Z held in registers as A fragments. gram_kernel makes E = half(0.5 (I - Z^T Z)), upper
// tiles; ns_kernel writes Q = Z + Z E in FP32: the residual form, so that FP16 errors of E cost
// E * 2^-11 only. Deterministic. Flops: 2 P^3 back, 1 P^3 Gram, 2 P^3 apply.
//
// Layouts. Z in: [matrix][column][row]. Packed Z: 64x64 tiles (column block, row block), one
// 128-byte line a column, 16-byte chunk index xor (column & 7). Packed V, panel by panel: T, then
// the row blocks from the panel down; one line per matrix row in the order of row_of_pos, 64
// reflectors a line, same swizzle: with that order the accumulator fragments of one product are
// the A fragments of the next. One V tile serves Z^T V (MN-major B) and W V^T (K-major B).
#include "launch.h"
#include "padded_order.h"
#include "stages.h"
#include "wgmma_ops.cuh"

namespace crucible::eigh {
namespace {

constexpr int TB = 8192;  // bytes of a 64x64 FP16 tile
__device__ __forceinline__ unsigned pk(float a, float b) {
  __half2 h = __floats2half2_rn(a, b);
  return *(unsigned*)&h;
}
__device__ __forceinline__ float2 up(unsigned u) { return __half22float2(*(__half2*)&u); }
// Packed V of one matrix: for panel j: [T tile][tile r=j][tile r=j+1]...; start of panel j in
// tiles:
__host__ __device__ __forceinline__ int pstart(int j, int NB) {
  return j * (NB + 1) - j * (j - 1) / 2;
}
// A V tile: line p (position of a matrix row), 64 reflectors contiguous, 128-byte swizzle.
// position p <-> row within the block (so that a thread's A fragments are 16 contiguous bytes of a
// Z column)
__device__ __forceinline__ int row_of_pos(int p) {
  int q = p >> 4, h = (p >> 3) & 1, t = (p >> 1) & 3, e = p & 1;
  return 32 * (q >> 1) + 8 * t + 4 * (q & 1) + 2 * h + e;
}

// V (float or half) [b][k][row] -> packed tiles + T; two warpgroups take alternate row blocks
__global__ __launch_bounds__(256) void pack_kernel(const __half* __restrict__ V,
                                                   uint8_t* __restrict__ Vp, int n, int nv,
                                                   int ld) {
  __shared__ __align__(1024) uint8_t tiles[2 * TB];
  __shared__ __align__(16) float U[64][68];
  __shared__ float inv[64];
  const int NB = n / 64, j = blockIdx.x, b = blockIdx.y, tid = threadIdx.x, wg = tid >> 7,
            wt = tid & 127;
  uint8_t* tile = tiles + wg * TB;
  const int w = wt >> 5, lane = wt & 31;
  const __half* Vb = V + (size_t)b * nv * ld;
  uint8_t* out = Vp + (size_t)b * (pstart(NB, NB)) * TB + (size_t)pstart(j, NB) * TB;
  float S[32];
#pragma unroll
  for (int i = 0; i < 32; i++) S[i] = 0.f;
  __half v[4][8];  // item (chunk, line half): warp w: half hf=w&1, chunks (w>>1)*4 .. +3
  const int p = 32 * (w & 1) + lane, row = row_of_pos(p), ch0 = (w >> 1) * 4;
  auto load = [&](int r) {
#pragma unroll
    for (int c = 0; c < 4; c++)
#pragma unroll
      for (int x = 0; x < 8; x++) {
        int col = 64 * j + 8 * (ch0 + c) + x, rr = 64 * r + row;
        v[c][x] = (col < nv && rr < ld) ? Vb[(size_t)col * ld + rr] : __half(0.f);
      }
  };
  int r = j + wg;
  if (r < NB) load(r);
  for (; r < NB; r += 2) {
#pragma unroll
    for (int c = 0; c < 4; c++) {
      unsigned u[4];
#pragma unroll
      for (int x = 0; x < 4; x++) {
        __half2 h = __halves2half2(v[c][2 * x], v[c][2 * x + 1]);
        u[x] = *(unsigned*)&h;
      }
      uint4 q = make_uint4(u[0], u[1], u[2], u[3]);
      int sw = p * 128 + (((ch0 + c) ^ (p & 7)) << 4);
      *(uint4*)(tile + sw) = q;
    }
    if (r + 2 < NB) load(r + 2);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0,128;" ::"r"(1 + wg) : "memory");
    uint64_t d = mkdesc(sa(tile));
    wg_fence();
#pragma unroll
    for (int q = 0; q < 4; q++) ss64_tt(S, d + q * 128, d + q * 128);
    wg_commit();
    if (wt == 0)
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group "
          "[%0],[%1],%2;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(
              out + (size_t)(1 + r - j) * TB),
          "r"(sa(tile)), "r"(TB)
          : "memory");
    wg_wait<0>();
    asm volatile("bar.sync %0,128;" ::"r"(1 + wg) : "memory");
  }
  const int g = lane >> 2, t = lane & 3;
  if (wg == 0) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      U[16 * w + g][8 * i + 2 * t] = S[4 * i];
      U[16 * w + g][8 * i + 2 * t + 1] = S[4 * i + 1];
      U[16 * w + g + 8][8 * i + 2 * t] = S[4 * i + 2];
      U[16 * w + g + 8][8 * i + 2 * t + 1] = S[4 * i + 3];
    }
  }
  __syncthreads();
  if (wg == 1) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      U[16 * w + g][8 * i + 2 * t] += S[4 * i];
      U[16 * w + g][8 * i + 2 * t + 1] += S[4 * i + 1];
      U[16 * w + g + 8][8 * i + 2 * t] += S[4 * i + 2];
      U[16 * w + g + 8][8 * i + 2 * t + 1] += S[4 * i + 3];
    }
  }
  __syncthreads();
  if (tid < 64) {
    float s = U[tid][tid];
    inv[tid] = s > 0.f ? 2.f / s : 1.f;
  }
  __syncthreads();
  if (tid < 64) {  // column tid of inv(U), U = striu(S)+diag(S)/2
    int c = tid;
    float x[64];
#pragma unroll
    for (int i = 63; i >= 0; i--) {
      float s0 = (i == c) ? 1.f : 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
#pragma unroll
      for (int l = (i + 1) & ~3; l < 64; l += 4) {
        float4 u = *(const float4*)&U[i][l];
        if (l > i) s0 = fmaf(-u.x, x[l], s0);
        if (l + 1 > i) s1 = fmaf(-u.y, x[l + 1], s1);
        if (l + 2 > i) s2 = fmaf(-u.z, x[l + 2], s2);
        if (l + 3 > i) s3 = fmaf(-u.w, x[l + 3], s3);
      }
      x[i] = (i <= c) ? ((s0 + s1) + (s2 + s3)) * inv[i] : 0.f;
    }
#pragma unroll
    for (int i = 0; i < 64; i++)
      *(__half*)(tiles + i * 128 + ((((c >> 3) ^ (i & 7))) << 4) + (c & 7) * 2) =
          __float2half_rn(x[i]);
  }
  __syncthreads();
  uint4* o = (uint4*)out;
#pragma unroll
  for (int i = 0; i < 2; i++) o[tid + 256 * i] = ((uint4*)tiles)[tid + 256 * i];
}

// RSP row splits: 1: each warpgroup owns 64 columns (n<=512); 2: both share 64 columns (n<=1024);
// 4: two CTAs, four warpgroups share 64 columns (n<=2048)
constexpr int ZP = 1088;  // bytes between staged Z columns (order 512)
template <int RSP>
struct Cfg {
  static constexpr int SL = RSP == 1 ? 11 : (RSP == 2 ? 22 : 19);
  static constexpr int EX = RSP == 1 ? 128 * ZP : (RSP == 2 ? 32768 : 65536);
  static constexpr int SMEM = SL * TB + EX + 1024 + 1024;
};
template <int RSP>
__global__ __launch_bounds__(384, 1) void back_kernel(const uint8_t* __restrict__ Vp,
                                                      const __half* __restrict__ Zt,
                                                      uint8_t* __restrict__ Zp, int n, int batch) {
  extern __shared__ uint8_t sm0[];
  constexpr int SL = Cfg<RSP>::SL;
  uint8_t* sm = sm0 + ((1024 - (sa(sm0) & 1023)) & 1023);
  uint8_t* ring = sm;
  float* ex = (float*)(sm + SL * TB);
  uint64_t* bars = (uint64_t*)(sm + SL * TB + Cfg<RSP>::EX);
  uint32_t full = sa(bars), empty = sa(bars + SL), xfull = sa(bars + 2 * SL),
           xfree = sa(bars + 2 * SL + 1);
  const int NB = n / 64, tid = threadIdx.x, wg = tid >> 7;
  int b = blockIdx.y;
  int slab, crank = 0;
  if (RSP == 4) {
    slab = blockIdx.x >> 1;
    crank = blockIdx.x & 1;
  } else
    slab = blockIdx.x;
  const int items = RSP == 1 ? batch * (n / 128) : 1, it0 = RSP == 1 ? blockIdx.x : 0,
            its = RSP == 1 ? gridDim.x : 1;
  if (tid == 0) {
    for (int i = 0; i < SL; i++) {
      mb_init(full + 8 * i, 1);
      mb_init(empty + 8 * i, 2);
    }
    mb_init(xfull, RSP == 1 ? 1 : 2);
    mb_init(xfree, RSP == 1 ? 2 : 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (RSP == 4) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
  if (wg == 2) {
    CRUCIBLE_SM90A(asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"))
    if (tid == 256) {
      int s = 0, ph = 1;  // first pass: empty barriers are free (parity trick)
      int zc = 0;
      auto loadz = [&](int it) {  // RSP==1: stage the slab of item it
        int slab = it & 3, b = it >> 2;
        const uint8_t* src = (const uint8_t*)(Zt + (size_t)b * n * n + (size_t)slab * 128 * n);
        mb_wait(xfree, (zc & 1) ^ 1);
        mb_expect(xfull, 128 * 1024);
        for (int c = 0; c < 128; c++) bulk(sa(ex) + c * ZP, src + c * 1024, 1024, xfull);
        zc++;
      };
      if (RSP == 1 && it0 < items) loadz(it0);
      for (int it = it0; it < items; it += its) {
        if (RSP == 1) b = it >> 2;
        const uint8_t* Vb = Vp + (size_t)b * pstart(NB, NB) * TB;
        for (int j = NB - 1; j >= 0; j--) {
          const uint8_t* P = Vb + (size_t)pstart(j, NB) * TB;
          mb_wait(empty + 8 * s, ph);
          mb_expect(full + 8 * s, TB);
          bulk(sa(ring + s * TB), P, TB, full + 8 * s);
          if (++s == SL) {
            s = 0;
            ph ^= 1;
          }
          for (int r = j; r < NB; r++) {
            if (RSP == 4 && ((r >> 1) & 1) != crank) continue;
            mb_wait(empty + 8 * s, ph);
            mb_expect(full + 8 * s, TB);
            bulk(sa(ring + s * TB), P + (size_t)(1 + r - j) * TB, TB, full + 8 * s);
            if (++s == SL) {
              s = 0;
              ph ^= 1;
            }
          }
          if (RSP == 1 && j == NB - 3 && it + its < items) loadz(it + its);
        }
      }
    }
    __syncwarp();
  } else {
    CRUCIBLE_SM90A(asm volatile("setmaxnreg.inc.sync.aligned.u32 240;"))
    const int lane = tid & 31, w = (tid >> 5) & 3, g = lane >> 2, t = lane & 3, wt = tid & 127;
    int s0 = 0, ph0 = 0;  // slot of the panel's T tile
    uint32_t rb = sa(ring);
    int xp = 0;
    for (int it = it0; it < items; it += its) {
      if (RSP == 1) {
        b = it >> 2;
        slab = it & 3;
      }
      const int cb = RSP == 1 ? slab * 2 + wg : slab;  // 64-column block
      const int rbase = RSP == 1 ? 0 : (RSP == 2 ? wg : 2 * crank + wg);
      unsigned zf[8][4][4];
      if (RSP == 1) {
        mb_wait(xfull, xp);
        const uint8_t* zc = (const uint8_t*)ex + (64 * wg + 16 * w + g) * ZP + 16 * t;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
          for (int qp = 0; qp < 2; qp++) {
            int off = 128 * i + 64 * qp;
            uint4 a = *(const uint4*)(zc + off), c = *(const uint4*)(zc + 8 * ZP + off);
            zf[i][2 * qp][0] = a.x;
            zf[i][2 * qp][2] = a.y;
            zf[i][2 * qp + 1][0] = a.z;
            zf[i][2 * qp + 1][2] = a.w;
            zf[i][2 * qp][1] = c.x;
            zf[i][2 * qp][3] = c.y;
            zf[i][2 * qp + 1][1] = c.z;
            zf[i][2 * qp + 1][3] = c.w;
          }
        }
        asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory");
        if (wt == 0) mb_arrive(xfree);
        xp ^= 1;
      } else {
        const __half* zc = Zt + (size_t)b * n * n + (size_t)(64 * cb + 16 * w + g) * n + 8 * t;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
          for (int qp = 0; qp < 2; qp++) {
            int row = 64 * (RSP * i + rbase) + 32 * qp;
            uint4 a = *(const uint4*)(zc + row), c = *(const uint4*)(zc + 8 * (size_t)n + row);
            zf[i][2 * qp][0] = a.x;
            zf[i][2 * qp][2] = a.y;
            zf[i][2 * qp + 1][0] = a.z;
            zf[i][2 * qp + 1][2] = a.w;
            zf[i][2 * qp][1] = c.x;
            zf[i][2 * qp][3] = c.y;
            zf[i][2 * qp + 1][1] = c.z;
            zf[i][2 * qp + 1][3] = c.w;
          }
        }
      }
      for (int j = NB - 1; j >= 0; j--) {
        float W[32];
#pragma unroll
        for (int i = 0; i < 32; i++) W[i] = 0.f;
        // own tile of block group i sits at stream index 1+STEP*i+off of this panel
        constexpr int STEP = RSP == 1 ? 1 : 2;
        int fj = RSP == 4 ? 2 * (j >> 2) + min(max((j & 3) - 2 * crank, 0), 2) : j;
        const int off = (RSP == 1 ? 0 : wg) - fj;
        const int ntile = (RSP == 1 ? 8 : 16) - fj;
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
          if (RSP * i + rbase >= j) {
            int s, ph;
            slot(1 + STEP * i + off, s, ph);
            mb_wait(full + 8 * s, ph);
            uint64_t d = mkdesc(rb + s * TB);
            wg_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_tb(W, zf[i][q], d + q * 128);
            wg_commit();
          }
        }
        wg_wait<0>();
        if (RSP == 2) {
          float4* e = (float4*)ex + wg * 1024 + wt;
          const float4* o = (const float4*)ex + (1 - wg) * 1024 + wt;
#pragma unroll
          for (int i = 0; i < 8; i++)
            e[i * 128] = make_float4(W[4 * i], W[4 * i + 1], W[4 * i + 2], W[4 * i + 3]);
          asm volatile("bar.sync 1,256;" ::: "memory");
#pragma unroll
          for (int i = 0; i < 8; i++) {
            float4 f = o[i * 128];
            W[4 * i] += f.x;
            W[4 * i + 1] += f.y;
            W[4 * i + 2] += f.z;
            W[4 * i + 3] += f.w;
          }
          asm volatile("bar.sync 1,256;" ::: "memory");
        }
        if (RSP == 4) {  // own partial to both CTAs: plain stores here, st.async to the partner
          int gidx = 2 * crank + wg;
          float4* mine = (float4*)ex + gidx * 1024 + wt;
          uint32_t rem, rbar;
          asm volatile("mapa.shared::cluster.u32 %0,%1,%2;"
                       : "=r"(rem)
                       : "r"(sa(mine)), "r"(crank ^ 1));
          asm volatile("mapa.shared::cluster.u32 %0,%1,%2;"
                       : "=r"(rbar)
                       : "r"(xfull), "r"(crank ^ 1));
          mb_wait(xfree, xp ^ 1);
#pragma unroll
          for (int i = 0; i < 8; i++) {
            asm volatile(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                "[%0],{%1,%2,%3,%4},[%5];" ::"r"(rem + i * 2048),
                "f"(W[4 * i]), "f"(W[4 * i + 1]), "f"(W[4 * i + 2]), "f"(W[4 * i + 3]), "r"(rbar)
                : "memory");
            mine[i * 128] = make_float4(W[4 * i], W[4 * i + 1], W[4 * i + 2], W[4 * i + 3]);
          }
          asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory");
          if (wt == 0) mb_expect(xfull, 16384);
          mb_wait(xfull, xp);
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
          asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory");
          if (wt == 0) {
            mb_arrive_remote(xfree, 0);
            mb_arrive_remote(xfree, 1);
          }
          xp ^= 1;
        }
        unsigned Wh[4][4];
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
          for (int x = 0; x < 4; x++) Wh[q][x] = pk(W[8 * q + 2 * x], W[8 * q + 2 * x + 1]);
        float W2[32];
#pragma unroll
        for (int i = 0; i < 32; i++) W2[i] = 0.f;
        mb_wait(full + 8 * s0, ph0);
        {
          uint64_t d = mkdesc(rb + s0 * TB);
          wg_fence();
#pragma unroll
          for (int q = 0; q < 4; q++) rs64_kb(W2, Wh[q], d + q * 2);
          wg_commit();
          wg_wait<0>();
        }
        if (wt == 0) mb_arrive(empty + 8 * s0);
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
          for (int x = 0; x < 4; x++) Wh[q][x] = pk(W2[8 * q + 2 * x], W2[8 * q + 2 * x + 1]);
        auto unpackz = [&](float(&a)[32], int i) {
#pragma unroll
          for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < 4; x++) {
              float2 f = up(zf[i][q][x]);
              a[8 * q + 2 * x] = f.x;
              a[8 * q + 2 * x + 1] = f.y;
            }
        };
        auto packz = [&](const float(&a)[32], int i) {
#pragma unroll
          for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < 4; x++) zf[i][q][x] = pk(a[8 * q + 2 * x], a[8 * q + 2 * x + 1]);
        };
        auto rel = [&](int s) {
          if (wt == 0) {
            if (RSP == 1)
              mb_arrive(empty + 8 * s);
            else
              mb_arrive2(empty + 8 * s);
          }
        };
#pragma unroll
        for (int ip = 0; ip < 4; ip++) {
          const int i1 = 2 * ip + 1, i0 = 2 * ip;
          if (RSP * i0 + rbase >= j) {
            int sA, sB, ph;
            slot(1 + STEP * i0 + off, sA, ph);
            slot(1 + STEP * i1 + off, sB, ph);
            float a[32], c[32];
            unpackz(a, i0);
            uint64_t d = mkdesc(rb + sA * TB), e = mkdesc(rb + sB * TB);
            wg_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_kb_neg(a, Wh[q], d + q * 2);
            wg_commit();
            unpackz(c, i1);
            wg_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_kb_neg(c, Wh[q], e + q * 2);
            wg_commit();
            wg_wait<1>();
            packz(a, i0);
            rel(sA);
            wg_wait<0>();
            packz(c, i1);
            rel(sB);
          } else if (RSP * i1 + rbase >= j) {
            int sB, ph;
            slot(1 + STEP * i1 + off, sB, ph);
            float c[32];
            unpackz(c, i1);
            uint64_t e = mkdesc(rb + sB * TB);
            wg_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) rs64_kb_neg(c, Wh[q], e + q * 2);
            wg_commit();
            wg_wait<0>();
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
      uint8_t* zo = Zp + (size_t)b * NB * NB * TB + (size_t)cb * NB * TB;
      int c0 = 16 * w + g, c1 = c0 + 8;
#pragma unroll
      for (int i = 0; i < 8; i++) {
        uint8_t* T = zo + (size_t)(RSP * i + rbase) * TB;
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
  if (RSP == 4) {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  }
}

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
      mb_init(empty + 8 * i, 2);
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
        if ((tid & 127) == 0) mb_arrive(empty + 8 * ((k - 1) % GST));
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
      mb_init(empty + 8 * i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  auto kmap = [&](int k) { return k < 2 ? 2 * J + k : (k - 2 < 2 * J ? k - 2 : k); };
  if (wg == 2) {
    if constexpr (MT == 2) CRUCIBLE_SM90A(asm volatile("setmaxnreg.dec.sync.aligned.u32 24;"))
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
    if constexpr (MT == 2) CRUCIBLE_SM90A(asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"))
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
        if ((tid & 127) == 0) mb_arrive(empty + 8 * ((k - 1) % QST));
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

struct Buffers {
  uint8_t *v, *z, *e;
  size_t bytes;
  Buffers(const Shape& shape, void* workspace) {
    const size_t p = padded_order(shape.n), blocks = p / 64, batch = shape.batch;
    Carver carver(workspace);
    v = carver.take<uint8_t>(batch * pstart(blocks, blocks) * TB + 1024);
    z = carver.take<uint8_t>(batch * blocks * blocks * TB + 1024);
    e = carver.take<uint8_t>(batch * blocks * blocks * TB + 1024);
    bytes = carver.used();
  }
};

template <typename Kernel>
cudaError_t set_shared(Kernel kernel, int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

cudaError_t launch_back(const uint8_t* v, const __half* z, uint8_t* out, int p, unsigned batch,
                        cudaStream_t stream) {
  if (p == 512) {
    if (cudaError_t error = set_shared(back_kernel<1>, Cfg<1>::SMEM); error != cudaSuccess) {
      return error;
    }
    back_kernel<1><<<grid_for(batch * 4ll, 132), 384, Cfg<1>::SMEM, stream>>>(v, z, out, p, batch);
    return cudaGetLastError();
  }
  if (p == 1024) {
    if (cudaError_t error = set_shared(back_kernel<2>, Cfg<2>::SMEM); error != cudaSuccess) {
      return error;
    }
    back_kernel<2><<<dim3(p / 64, batch), 384, Cfg<2>::SMEM, stream>>>(v, z, out, p, batch);
    return cudaGetLastError();
  }
  if (cudaError_t error = set_shared(back_kernel<4>, Cfg<4>::SMEM); error != cudaSuccess) {
    return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(p / 64 * 2, batch);
  config.blockDim = dim3(384);
  config.dynamicSmemBytes = Cfg<4>::SMEM;
  config.stream = stream;
  cudaLaunchAttribute pair[1];
  pair[0].id = cudaLaunchAttributeClusterDimension;
  pair[0].val.clusterDim = {2, 1, 1};
  config.attrs = pair;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, back_kernel<4>, v, z, out, p, static_cast<int>(batch));
}

}  // namespace

size_t back_transform_bytes(const Shape& shape) { return Buffers(shape, nullptr).bytes; }

cudaError_t back_transform(const Shape& shape, void* z, const Tridiagonal& t, float* q,
                           void* workspace, cudaStream_t stream) {
  const int p = padded_order(shape.n), blocks = p / 64, tiles = p / 128;
  const Buffers w(shape, workspace);
  constexpr int kGramShared = GST * 4 * TB + 2048;
  cudaError_t error = set_shared(gram_kernel, kGramShared);
  if (error == cudaSuccess) error = set_shared(ns_kernel<2>, NC<2>::SMEM);
  if (error != cudaSuccess) return error;
  constexpr int64_t kMatricesMax = 32768;  // a launch: gridDim.y
  const size_t square = static_cast<size_t>(p) * p;
  for (int64_t first = 0; first < shape.batch; first += kMatricesMax) {
    const unsigned count = static_cast<unsigned>(std::min(kMatricesMax, shape.batch - first));
    uint8_t* v = w.v + first * pstart(blocks, blocks) * TB;
    uint8_t* zp = w.z + first * square * 2;
    uint8_t* e = w.e + first * square * 2;
    pack_kernel<<<dim3(blocks, count), 256, 0, stream>>>(t.v + first * shape.n * shape.ld(), v, p,
                                                         shape.n, shape.ld());
    error = launch_back(v, static_cast<const __half*>(z) + first * square, zp, p, count, stream);
    if (error != cudaSuccess) return error;
    gram_kernel<<<dim3(tiles * (tiles + 1) / 2, count), 288, kGramShared, stream>>>(zp, e, p);
    ns_kernel<2><<<dim3(tiles * (p / 256), count), 384, NC<2>::SMEM, stream>>>(
        zp, e, q + first * shape.n * shape.n, p, shape.n);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
