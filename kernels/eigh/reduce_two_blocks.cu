// reduce_two_blocks.cu: tridiagonal reduction for 512 < n <= 1024, a cluster of two blocks a
// matrix.
//
// Shapes: a [batch][n][n] -> Tridiagonal of stages.h; padded in front with zeros to order 1024.
// Deterministic. The steps of a column are those of reduce_one_block.cu; this file's own parts:
//
// Tile (I, J) belongs to block (I - J) mod 2 of the pair, which splits every row block and block
// column evenly. Block columns 32-63 are resident in shared memory (272 / 256 tiles); block
// columns 0-31 live in the workspace in fragment order, small enough to stay in L2 for 60
// matrices, and are read once a column: rows by mma, columns by movmatrix + mma with partial sums
// in shared memory. Each such tile is read and written by one thread only, so no fences.
//
// One exchange a column (two for the first 512): each block sends its part of A x, of x^T A x and
// of the pivot row by st.async; everything row-wise is done in both blocks from the same sums
// (a + b = b + a), so both hold the same bits and nothing is broadcast. The 16 columns of a panel
// and the first of the next pass through a global buffer, published by one cluster barrier a panel.
// Two mbarriers alternate by column parity; a third serves the second exchange.
//
// Cost at 1024: 2 n^3 / 3 mma multiply-adds and about n^3 / 4 * 2 bytes from L2 a matrix.
#include "block_ops.cuh"
#include "cluster_ops.cuh"
#include "launch.h"
#include "reduce_routes.h"
#include "tile_ops.cuh"

namespace crucible::eigh {
namespace {

constexpr int kOrder = 1024, kTiles = 64, kPanel = 16, kThreads = 512;
constexpr int kCold = 32;                              // block columns 0 .. kCold-1 are in L2
constexpr int kResidentTiles = 272, kColdTiles = 784;  // a block, at most
constexpr int kUnrollFirst = 2, kUnrollSecond = 4;
constexpr int kPanelBuffer = (kPanel + 1) * kOrder;  // a panel's columns and the one behind it
// A tail this short (against max|A| >= 0.5) is FP32 noise: the column counts as reduced.
constexpr float kTailSquared = 3.6e-15f;
// Shared memory map, byte offsets.
constexpr int oU = kResidentTiles * 512, oXS = oU + kTiles * 1024, oPOV = oXS + kTiles * 64;
constexpr int oRB = oPOV + kCold * 8 * 64, oRA = oRB + 4096, oRED = oRA + 2048, oVAV = oRED + 64;
constexpr int oSC = oVAV + 256, oCF = oSC + 64, oY1X = oCF + 256, oY1S = oY1X + 64;
constexpr int oMB = oY1S + 16, kSharedBytes = oMB + 32;
static_assert(kSharedBytes <= 232448, "shared memory");

extern __shared__ __align__(128) char sm[];

__device__ __forceinline__ float* floats(int offset) {
  return reinterpret_cast<float*>(sm + offset);
}
// Panel tiles: row slots xor-ed so that the row threads' 2-byte stores meet no bank conflict.
__device__ __forceinline__ int panel_offset(int block_row, int lane) {
  const int m = lane >> 3, r = lane & 7;
  return block_row * 1024 + m * 128 + ((r ^ (2 * (2 * ((block_row >> 4) & 1) + (m & 1)))) << 4);
}

struct Arguments {
  const float* a;
  const int *exponent, *status;
  Tridiagonal t;   // t.v null: eigenvalues only
  uint4* cold;     // kColdTiles tiles a block
  __half* panels;  // 2 * kPanelBuffer a matrix
  int n, ld;
  bool upper;
};

// Where column j (in padded coordinates) goes; the padding's columns go nowhere.
struct Output {
  const Arguments& g;
  int64_t matrix;
  __device__ __forceinline__ int64_t opaque_matrix() const {
    int64_t m = matrix;
    asm volatile("" : "+l"(m));
    return m;
  }
  __device__ __forceinline__ void put(float* base, int j, float x) const {
    const int at = j - (kOrder - g.n);
    if (at >= 0) base[opaque_matrix() * g.ld + at] = x;
  }
  __device__ __forceinline__ void diagonal(int j, float x) const { put(g.t.d, j, x); }
  __device__ __forceinline__ void coupling(int j, float x) const { put(g.t.e, j, x); }
  __device__ __forceinline__ void reflector_scale(int j, float x) const { put(g.t.tau, j, x); }
  // Row `row` of the reflectors of columns first .. end-1 (at most 16), from the panel in shared
  // memory: a panel at a time, off the critical path of a column.
  __device__ __forceinline__ void panel(int first, int end, int row, const char* from) const {
    const int pad = kOrder - g.n;
    if (g.t.v == nullptr || row < pad) return;
    __half* to = g.t.v + (opaque_matrix() * g.n + (first - pad)) * g.ld + (row - pad);
#pragma unroll
    for (int k = 0; k < kPanel; ++k) {
      const int column = first + k;
      const __half x = *(const __half*)(from + (k >> 3) * 256 + (k & 7) * 2);
      if (column >= pad && column < end && column < row) to[static_cast<int64_t>(k) * g.ld] = x;
    }
  }
};

template <int M1, int M2, int G>
__device__ __forceinline__ void grp(float (&acc)[2][2][4], uint32_t tl, int& i1, int& i2, int& m,
                                    uint32_t& xa) {
  uint32_t f1[G][4], f2[G][4];
  uint2 x[G];
#pragma unroll
  for (int u = 0; u < G; u++) {
    x[u] = load_shared_64(xa + u * 128);
    if (M1 == 1) load_tile(tl + i1 * 512, f1[u]);
    if (M1 == 2) load_tile_transposed(tl + i1 * 512, f1[u]);
    if (M2 == 1) load_tile(tl + i2 * 512, f2[u]);
    if (M2 == 2) load_tile_transposed(tl + i2 * 512, f2[u]);
    i1 -= M1 == 1 ? m - 1 : 1;
    i2 -= M2 == 1 ? m - 1 : 1;
    m -= 2;
  }
  xa += G * 128;
#pragma unroll
  for (int u = 0; u < G; u++) {
    if (M1) mma(acc[0][u & 1], f1[u], x[u].x, x[u].y);
    if (M2) mma(acc[1][u & 1], f2[u], x[u].x, x[u].y);
  }
}
template <int M1, int M2, int UR>
__device__ __forceinline__ void seg(float (&acc)[2][2][4], uint32_t tl, uint32_t xs, int I1, int I2,
                                    int c, int Ja, int Jb) {
  Ja += (Ja ^ I1 ^ c) & 1;
  if (Ja >= Jb) return;
  const int p1 = kTiles - 1 - I1, p2 = kTiles - 1 - I2, Jp = kTiles - 1 - Ja;
  int m = Jp + 1 - c, tri = (m * m) >> 2;
  int i1 = M1 == 1 ? tri + (p1 >> 1) : (((p1 + 1 - c) * (p1 + 1 - c)) >> 2) + (Jp >> 1),
      i2 = M2 == 1 ? tri + (p2 >> 1) : (((p2 + 1 - c) * (p2 + 1 - c)) >> 2) + (Jp >> 1);
  uint32_t xa = xs + Ja * 64;
  int n = (Jb - Ja + 1) >> 1;
  constexpr int UN = (M1 && M2) ? UR : 2 * UR;
#pragma unroll 1
  for (; n >= UN; n -= UN) grp<M1, M2, UN>(acc, tl, i1, i2, m, xa);
  if (UN > 4 && (n & 4)) grp<M1, M2, 4>(acc, tl, i1, i2, m, xa);
  if (UN > 2 && (n & 2)) grp<M1, M2, 2>(acc, tl, i1, i2, m, xa);
  if (UN > 1 && (n & 1)) grp<M1, M2, 1>(acc, tl, i1, i2, m, xa);
}
// L2 tiles (w+16h, J), h = 0..3, J < 32; diagonal tiles there hold the strict lower part only, so
// every tile is used in both directions
__device__ __forceinline__ void load_cold(uint32_t (&f)[4][4], const uint4* gt, int w, int c,
                                          int J) {
  if (J < kCold) {
    const int m = kTiles - J - c;
    const uint4* p = gt + (((m * m) >> 2) + ((15 - w) >> 1)) * 32;
#pragma unroll
    for (int h = 0; h < 4; h++)
      if (h >= 2 || J <= w + 16 * h) {
        uint4 v = __ldcg(p + 8 * (3 - h) * 32);
        f[h][0] = v.x;
        f[h][1] = v.y;
        f[h][2] = v.z;
        f[h][3] = v.w;
      }
  }
}
__device__ __forceinline__ void multiply_cold(const uint32_t (&f)[4][4], float (&aA)[2][2][4],
                                              float (&aB)[2][2][4], const uint2 (&xi)[4],
                                              uint32_t xs, int w, int lane, int J, int J1, int jr,
                                              uint32_t peerY1, uint32_t mb) {
  const int q = lane & 3, g = lane >> 2;
  if (J < kCold) {
    const uint2 xj = load_shared_64(xs + J * 64);
    float col[4] = {0, 0, 0, 0};
#pragma unroll
    for (int h = 3; h >= 0; h--)
      if (h >= 2 || J <= w + 16 * h) {
        uint32_t t[4];
        mma(h < 2 ? aA[h & 1][0] : aB[h & 1][0], f[h], xj.x, xj.y);
        transpose_fragment(f[h], t);
        mma(col, t, xi[h].x, xi[h].y);
      }
    float v = q == 0 ? join_x(col[0], col[1]) : join_x(col[2], col[3]);
    if (q < 2) {
      floats(oPOV)[(J * 8 + (w >> 1)) * 16 + g + 8 * q] = v;
      if (J == J1 && g + 8 * q == jr) st_async(peerY1 + (w >> 1) * 4, v, mb);
    }
  }
}
#define OPQ(n, v) \
  int n = v;      \
  asm volatile("" : "+r"(n))
// A thread's two rows: current column entries and diagonal entries; c: rank in the pair.
struct State {
  float av[2], dg[2];
  int tid, c;
  uint32_t peer;
  const uint4* gt;
  __half* pb;
};
#define SEC                                                                                        \
  OPQ(tid_, s.tid);                                                                                \
  const int lane = tid_ & 31, w = tid_ >> 5, g = lane >> 2, q = lane & 3, rIa = w + 16 * (q >> 1), \
            ra = rIa * 16 + (q & 1) * 8 + g;                                                       \
  (void)lane;                                                                                      \
  (void)w;                                                                                         \
  (void)g;                                                                                         \
  (void)q;                                                                                         \
  (void)rIa;                                                                                       \
  (void)ra
#define UBA (sm + oU + rIa * 1024 + (q & 1) * 128 + ((g ^ (2 * q)) << 4))
#define XSTA (sm + oXS + rIa * 64 + (((ra & 7) >> 1) * 4 + ((ra >> 3) & 1) * 2 + (ra & 1)) * 2)
__device__ __forceinline__ float sum8(const float* p) {
  float4 a = *(const float4*)p, b = *(const float4*)(p + 4);
  return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}
__device__ __forceinline__ float sum16(const float* p) { return sum8(p) + sum8(p + 8); }
__device__ __forceinline__ void put_pb(__half* pb, int I, int g, int q, const uint32_t* f) {
  __half* p = pb + (2 * q) * kOrder + I * 16 + g;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    __half2 h = *(const __half2*)&f[k];
    __half* d = p + (k >> 1) * 8 * kOrder + (k & 1) * 8;
    d[0] = h.x;
    d[kOrder] = h.y;
  }
}
// Tile (I, J) of the next panel's block column J0, and the first column of the one after it.
__device__ __forceinline__ void publish(__half* pb, int I, int J, int J0, int g, int q,
                                        const uint32_t* f) {
  if (J == J0) put_pb(pb, I, g, q, f);
  if (J == J0 + 1 && q == 0) {
    pb[16 * kOrder + I * 16 + g] = ((const __half2*)&f[0])->x;
    pb[16 * kOrder + I * 16 + g + 8] = ((const __half2*)&f[1])->x;
  }
}
// Columns jbeg .. jend-1. kFirst: the cold block columns 0-31 still count.
template <bool kFirst>
__device__ __forceinline__ void columns(State& s, int jbeg, int jend, const Output& out) {
  constexpr int S0 = kFirst ? 0 : 1;
  int p0 = jbeg;
  // The buffer of the panel that starts at p0; the next one goes to the other buffer, so that a
  // peer that runs ahead never overwrites a column that is still being read.
  auto panel_buffer = [&] { return s.pb + ((p0 >> 4) & 1) * kPanelBuffer; };
  auto start = [&](int c) {
    SEC;
#pragma unroll
    for (int k = S0; k < 2; k++) {
      const int r = ra + 512 * k;
      float z = r > c ? __half2float(__ldcg(panel_buffer() + r)) : 0.f;
      s.av[k] = r == c ? s.dg[k] : z;
      if (r == c && s.c == 0) out.diagonal(c, s.av[k]);
    }
  };
  uint32_t F0[4][4], F1[4][4];
  auto prefetch = [&](int J1) {
    if (kFirst) {
      SEC;
      const int Jm = J1 + ((J1 ^ w ^ s.c) & 1);
      load_cold(F0, s.gt + lane, w, s.c, Jm);
      load_cold(F1, s.gt + lane, w, s.c, Jm + 2);
    }
  };
  prefetch((jbeg + 1) >> 4);
  start(jbeg);
  const uint32_t smb = shared_address(sm);
#pragma unroll 1
  for (int j = jbeg; j < jend; j++) {
    const int i = j - p0, J1 = (j + 1) >> 4, par = j & 1;
    const uint32_t mbB = smb + oMB + par * 8, mbA = smb + oMB + 16;
    const bool useA = kFirst && J1 < kCold;
    // step 1: publish x, norm
    {
      SEC;
      const bool active = kFirst || w + 48 >= J1;
      if (active) {
        float sg = 0;
#pragma unroll
        for (int k = S0; k < 2; k++) {
          const int r = ra + 512 * k;
          const float xv = r > j ? s.av[k] : 0.f;
          if (r > j + 1) sg = fmaf(xv, xv, sg);
          if (r >= p0) store_x(XSTA + 2048 * k, xv);
          if (r == j + 1) {
            floats(oSC)[0] = xv;
            floats(oSC)[8 + par] = s.dg[k];
          }
        }
        sg = warp_sum(sg);
        if (lane == 0) floats(oRED)[w] = sg;
      } else if (lane == 0)
        floats(oRED)[w] = 0;
      if (tid_ == 0) {
        const int na = kFirst ? 16 : min(16, kTiles - J1);
        expect_bytes(mbB, na * 132 + 4 + ((useA) ? 32 : 0));
        if (useA) expect_bytes(mbA, 2048);
      }
    }
    __syncthreads();
    float y[2] = {0, 0};
    unsigned short an[2] = {0, 0};
    // step 2
    {
      SEC;
      const bool active = kFirst || w + 48 >= J1;
      const uint32_t xs = smb + oXS + (g & 1) * 32 + q * 8, tl = smb + lane * 16;
      if (active) {
#pragma unroll
        for (int k = S0; k < 2; k++)
          asm volatile("ld.global.cg.u16 %0, [%1];"
                       : "=h"(an[k])
                       : "l"(panel_buffer() + (i + 1) * kOrder + ra + 512 * k)
                       : "memory");
      }
      {  // dots: V'x by even warps, W'x by odd warps
        const int lb = w & 1, kq = w >> 1;
        float acc[4][4];
#pragma unroll
        for (int k = 0; k < 16; k++) acc[k >> 2][k & 3] = 0.f;
        if (i > 0) {
          const uint32_t ua = smb + oU + lb * 512;
          int I = J1 + kq;
#pragma unroll 1
          for (; I + 24 < kTiles; I += 32) {
            uint32_t f[4][4];
            uint2 xb[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
              load_tile_transposed(ua + panel_offset(I + 8 * k, lane), f[k]);
              xb[k] = load_shared_64(xs + (I + 8 * k) * 64);
            }
#pragma unroll
            for (int k = 0; k < 4; k++) mma(acc[k], f[k], xb[k].x, xb[k].y);
          }
#pragma unroll 1
          for (; I < kTiles; I += 8) {
            uint32_t f[4];
            load_tile_transposed(ua + panel_offset(I, lane), f);
            uint2 xb = load_shared_64(xs + I * 64);
            mma(acc[0], f, xb.x, xb.y);
          }
        }
        float h0 = (q & 1) ? (acc[0][2] + acc[1][2]) + (acc[2][2] + acc[3][2])
                           : (acc[0][0] + acc[1][0]) + (acc[2][0] + acc[3][0]);
        float l0 = (q & 1) ? (acc[0][3] + acc[1][3]) + (acc[2][3] + acc[3][3])
                           : (acc[0][1] + acc[1][1]) + (acc[2][1] + acc[3][1]);
        h0 = join_x(h0, l0);
        float* dp = floats(oRA) + lb * 128 + g + 8 * (q & 1);
        if (kq > 0) {
          if (q < 2) dp[(kq - 1) * 16] = h0;
          if (lb)
            asm volatile("barrier.cta.arrive 2, 256;" ::: "memory");
          else
            asm volatile("barrier.cta.arrive 1, 256;" ::: "memory");
        } else {
          const float al = floats(oSC)[0], sg = sum16(floats(oRED));
          float s2 = fmaf(al, al, sg), nr = s2 * fast_rsqrt(s2), be = -copysignf(nr, al),
                ti = -fast_reciprocal(be), inv = fast_reciprocal(al - be);
          if (!(sg > kTailSquared)) {
            be = al;
            ti = 0;
            inv = 0;
          }
          if (tid_ == 0) {
            floats(oSC)[4] = be;
            floats(oSC)[5] = ti;
            floats(oSC)[6] = inv;
            if (s.c == 0) out.reflector_scale(j, ti == 0.f ? 0.f : 1.f - al / be);
          }
          if (lb)
            asm volatile("barrier.cta.sync 2, 256;" ::: "memory");
          else
            asm volatile("barrier.cta.sync 1, 256;" ::: "memory");
          h0 += ((dp[0] + dp[16]) + (dp[32] + dp[48])) + ((dp[64] + dp[80]) + dp[96]);
          if (q < 2) {
            const int l = g + 8 * q, b3 = ((j + 1) >> 3) & 1;
            __half d =
                *(const __half*)(sm + oU + J1 * 1024 + w * 512 + (b3 + 2 * q) * 128 +
                                 ((((j + 1) & 7) ^ (2 * (2 * ((J1 >> 4) & 1) + b3))) << 4) + g * 2);
            float cc = h0 - be * __half2float(d);
            if (l >= i) {
              cc = 0;
              d = __ushort_as_half(0);
            }
            __half* cd = (__half*)(sm + oCF) + (w ? 0 : 64) + (g >> 1) * 4 + q * 2 + (g & 1);
            __half ch = __float2half_rn(cc);
            cd[0] = ch;
            cd[16] = __float2half_rn((cc - __half2float(ch)) * kLowScale);
            cd[32] = d;
          }
        }
      }
      if (active) {
        float yR[2] = {0, 0};
        float aA[2][2][4], aB[2][2][4];
#pragma unroll
        for (int k = 0; k < 16; k++)
          aA[k >> 3][(k >> 2) & 1][k & 3] = aB[k >> 3][(k >> 2) & 1][k & 3] = 0.f;
        const int I1 = w + 32, I2 = w + 48;
        if (kFirst) {
#pragma unroll 1
          for (int ph = 0; ph < 2; ph++) {
            if (ph == (((w >> 2) & 1))) {
              if (useA) {
                yR[1] = -own_row(aB, q);
                uint2 xi[4];
#pragma unroll
                for (int h = 0; h < 4; h++) xi[h] = load_shared_64(xs + (w + 16 * h) * 64);
                const int jr = (j + 1) & 15;
                const uint32_t py = s.peer + oY1X + par * 32, pm = s.peer + oMB + par * 8;
                const uint4* gt = s.gt + lane;
                int J = J1 + ((J1 ^ w ^ s.c) & 1);
#pragma unroll 1
                for (; J < kCold; J += 4) {
                  multiply_cold(F0, aA, aB, xi, xs, w, lane, J, J1, jr, py, pm);
                  load_cold(F0, gt, w, s.c, J + 4);
                  multiply_cold(F1, aA, aB, xi, xs, w, lane, J + 2, J1, jr, py, pm);
                  load_cold(F1, gt, w, s.c, J + 6);
                }
                yR[1] += own_row(aB, q);
                yR[0] = own_row(aA, q);
                if (i < kPanel - 1) {
                  const int Jn = (j + 2) >> 4, Jm = Jn + ((Jn ^ w ^ s.c) & 1);
                  load_cold(F0, gt, w, s.c, Jm);
                  load_cold(F1, gt, w, s.c, Jm + 2);
                }
              }
            } else {
              seg<1, 1, kUnrollFirst>(aB, tl, xs, I1, I2, s.c, kCold, I1 + 1);
              seg<2, 1, kUnrollFirst>(aB, tl, xs, I1, I2, s.c, I1 + 1, I2 + 1);
              seg<2, 2, kUnrollFirst>(aB, tl, xs, I1, I2, s.c, I2 + 1, kTiles);
            }
          }
        } else {
          if (I1 >= J1) {
            seg<1, 1, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, J1, I1 + 1);
            seg<2, 1, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, I1 + 1, I2 + 1);
            seg<2, 2, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, I2 + 1, kTiles);
          } else {
            seg<0, 1, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, J1, I2 + 1);
            seg<0, 2, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, I2 + 1, kTiles);
          }
        }
        float vav = 0;
        y[1] = own_row(aB, q);
        if (kFirst) y[0] = yR[0];
#pragma unroll
        for (int k = S0; k < 2; k++) {
          const int r = ra + 512 * k;
          const float xv = r > j ? s.av[k] : 0.f;
          if (s.c == 0) y[k] = fmaf(s.dg[k], xv, y[k]);
          vav = fmaf(xv, y[k] + yR[k], vav);
          if (r == j + 1) {
            floats(oSC)[2] = y[k];
            st_async(s.peer + oY1S + par * 4, y[k], s.peer + oMB + par * 8);
          }
        }
        st_async(s.peer + oRB + par * 2048 + tid_ * 4, y[1], s.peer + oMB + par * 8);
        vav = warp_sum(vav);
        if (lane == 0) {
          floats(oVAV)[w] = vav;
          st_async(s.peer + oVAV + 64 + par * 64 + w * 4, vav, s.peer + oMB + par * 8);
        }
      } else if (lane == 0) {
        floats(oVAV)[w] = 0;
        floats(oVAV)[16 + w] = 0;
        floats(oVAV)[32 + w] = 0;
      }
    }
    __syncthreads();
    // step 3
    {
      SEC;
      const bool active = kFirst || w + 48 >= J1;
      const int lane3 = lane;
      if (active) {
        if (useA) {
          if (rIa >= J1) {
            float t0 = 0, t1 = 0;
#pragma unroll
            for (int k = 0; k < 8; k += 2) {
              t0 += floats(oPOV)[(rIa * 8 + k) * 16 + (ra & 15)];
              t1 += floats(oPOV)[(rIa * 8 + k + 1) * 16 + (ra & 15)];
            }
            y[0] += t0 + t1;
          }
          {
            mbarrier_wait(mbB, (j >> 1) & 1);
            st_async(s.peer + oRA + tid_ * 4, y[0], s.peer + oMB + 16);
          }
        }
        const float beta = floats(oSC)[4], ti = floats(oSC)[5], inv = floats(oSC)[6],
                    dj = floats(oSC)[8 + par];
        float S1[2] = {0, 0}, S2[2] = {0, 0}, T1 = 0, T2 = 0;
        if (i > 0) {
          const uint2 bv = load_shared_64(smb + oCF + (g & 3) * 32 + q * 8),
                      bw = load_shared_64(smb + oCF + (g & 3) * 32 + q * 8 + 128);
          float kt[4] = {0, 0, 0, 0};
          uint32_t at[4] = {g < 4 ? bv.x : 0u, 0u, g < 4 ? bv.y : 0u, 0u};
          mma(kt, at, bw.x, bw.y);
#pragma unroll
          for (int k = S0; k < 2; k++) {
            uint32_t fa[4];
            float k2[4] = {0, 0, 0, 0}, k1[4] = {0, 0, 0, 0};
            const int Ia = w + 32 * k, Ib = Ia + 16;
            if (Ib >= J1) {
              load_tile(smb + oU + panel_offset(Ib, lane3), fa);
              mma(k2, fa, bv.x, bv.y);
              load_tile(smb + oU + 512 + panel_offset(Ib, lane3), fa);
              mma(k2, fa, bw.x, bw.y);
            }
            if (Ia >= J1) {
              load_tile(smb + oU + panel_offset(Ia, lane3), fa);
              mma(k1, fa, bv.x, bv.y);
              load_tile(smb + oU + 512 + panel_offset(Ia, lane3), fa);
              mma(k1, fa, bw.x, bw.y);
            }
            float m0 = (q & 1) ? k1[0] : join(k1[0], k1[1]),
                  m1 = (q & 1) ? k1[2] : join(k1[2], k1[3]);
            float n0 = (q & 1) ? k2[0] : join(k2[0], k2[1]),
                  n1 = (q & 1) ? k2[2] : join(k2[2], k2[3]);
            float b0 = q < 2 ? m0 : n0, b1 = q < 2 ? m1 : n1;
            float keep = (q & 1) ? b1 : b0, give = (q & 1) ? b0 : b1;
            float got = __shfl_xor_sync(~0u, give, 1);
            S1[k] = (q & 1) ? got : keep;
            S2[k] = (q & 1) ? keep : got;
          }
          float e = join(kt[0], kt[1]);
          float e00 = __shfl_sync(~0u, e, 0), e10 = __shfl_sync(~0u, e, 4),
                e20 = __shfl_sync(~0u, e, 8), e01 = __shfl_sync(~0u, kt[0], 1),
                e11 = __shfl_sync(~0u, kt[0], 5);
          T2 = join(e00, e10);
          T1 = e20 + join(e01, e11);
        }
        {
          if (!useA)
            mbarrier_wait(mbB, (j >> 1) & 1);
          else
            mbarrier_wait(mbA, j & 1);
        }
        float xax = sum16(floats(oVAV)) + sum16(floats(oVAV + 64 + par * 64));
        float y1o = floats(oSC)[2], y1p = floats(oY1S)[par];
        if (useA) {
          float t[8];
#pragma unroll
          for (int k = 0; k < 8; k++) t[k] = floats(oPOV)[(J1 * 8 + k) * 16 + ((j + 1) & 15)];
          y1o += ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
          y1p += sum8(floats(oY1X + par * 32));
          y[0] += floats(oRA)[tid_];
        }
        y[1] += floats(oRB + par * 2048)[tid_];
        const float y1 = y1o + y1p;
        const float p1 = y1 - beta * dj - T1;
        const float pu = xax - 2.f * beta * y1 + beta * beta * dj - 2.f * T2;
        const float al2 = -0.5f * ti * ti * pu;
        const float w1 = __half2float(__float2half_rn(fmaf(ti, p1, al2)));
#pragma unroll
        for (int k = S0; k < 2; k++) {
          const int r = ra + 512 * k;
          if (r > j) {
            const float ac = r == j + 1 ? s.dg[k] : __half2float(__ushort_as_half(an[k]));
            float p = y[k] - beta * ac - S1[k];
            float v = r == j + 1 ? (ti == 0.f ? 0.f : 1.f) : s.av[k] * inv;
            float ww = fmaf(ti, p, al2 * v);
            __half vh = __float2half_rn(v), wh = __float2half_rn(ww);
            char* pd = UBA + 32768 * k + (i >> 3) * 256 + (i & 7) * 2;
            *(__half*)pd = vh;
            *(__half*)(pd + 512) = wh;
            s.av[k] = ac - S2[k] - (__half2float(vh) * w1 + __half2float(wh));
            if (r == j + 1 && s.c == 0) {
              out.coupling(j, beta);
              if (i < kPanel - 1) out.diagonal(j + 1, s.av[k]);
            }
          }
        }
      }
    }
    // ---- trailing update
    if (i == kPanel - 1) {
      __syncthreads();
      p0 += kPanel;
      const int J0 = p0 >> 4;
      SEC;
      const int lane4 = lane;
      {
        auto pbw = [&](int I, int J, const uint32_t* f) { publish(panel_buffer(), I, J, J0, g, q, f); };
        uint32_t fv[4][4], fw[4][4];
#pragma unroll
        for (int h = 2 * S0; h < 4; h++) {
          load_tile(smb + oU + panel_offset(w + 16 * h, lane4), fv[h]);
          load_tile(smb + oU + 512 + panel_offset(w + 16 * h, lane4), fw[h]);
        }
        if (kFirst) {
          const uint4* gt = s.gt + lane4;
          auto proc = [&](uint32_t(&f)[4][4], int J) {
            if (J < kCold) {
              const int m = kTiles - J - s.c;
              uint4* p = (uint4*)gt + (((m * m) >> 2) + ((15 - w) >> 1)) * 32;
              uint32_t b1[4], b2[4];
              load_tile(smb + oU + 512 + panel_offset(J, lane4), b1);
              load_tile(smb + oU + panel_offset(J, lane4), b2);
#pragma unroll
              for (int h = 0; h < 4; h++)
                if (h >= 2 || J <= w + 16 * h) {
                  update_tile(f[h], fv[h], fw[h], b1, b2,
                              w + 16 * h == J ? Diagonal::kStrictLower : Diagonal::kNone, g, q);
                  __stcg(p + 8 * (3 - h) * 32, make_uint4(f[h][0], f[h][1], f[h][2], f[h][3]));
                  if (J <= J0 + 1) pbw(w + 16 * h, J, f[h]);
                }
            }
          };
          int J = J0 + ((J0 ^ w ^ s.c) & 1);
          load_cold(F0, gt, w, s.c, J);
          load_cold(F1, gt, w, s.c, J + 2);
#pragma unroll 1
          for (; J < kCold; J += 4) {
            proc(F0, J);
            load_cold(F0, gt, w, s.c, J + 4);
            proc(F1, J + 2);
            load_cold(F1, gt, w, s.c, J + 6);
          }
        }
        {
          const int Js = max(J0, kCold);
#pragma unroll 1
          for (int J = Js + ((Js ^ w ^ s.c) & 1); J <= w + 48; J += 2) {
            const int m = kTiles - J - s.c, idx = ((m * m) >> 2) + ((15 - w) >> 1);
            uint32_t b1[4], b2[4], f[4], f2[4];
            load_tile(smb + oU + 512 + panel_offset(J, lane4), b1);
            load_tile(smb + oU + panel_offset(J, lane4), b2);
            load_tile(smb + idx * 512 + lane4 * 16, f);
            if (J <= w + 32) load_tile(smb + (idx + 8) * 512 + lane4 * 16, f2);
            update_tile(f, fv[3], fw[3], b1, b2,
                        w + 48 == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
            store_tile(smb + idx * 512, lane4, f);
            if (J <= J0 + 1) pbw(w + 48, J, f);
            if (J <= w + 32) {
              update_tile(f2, fv[2], fw[2], b1, b2,
                          w + 32 == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
              store_tile(smb + (idx + 8) * 512, lane4, f2);
              if (J <= J0 + 1) pbw(w + 32, J, f2);
            }
          }
        }
      }
#pragma unroll
      for (int k = S0; k < 2; k++) {
        const int r = ra + 512 * k;
        if (s.c == k && r >= p0 - kPanel) out.panel(p0 - kPanel, p0, r, UBA + 32768 * k);
      }
#pragma unroll
      for (int k = S0; k < 2; k++)
        if (ra + 512 * k >= p0) {
          float sacc = 0;
#pragma unroll
          for (int c = 0; c < 2; c++) {
            uint4 v4 = *(const uint4*)(UBA + 32768 * k + c * 256),
                  w4 = *(const uint4*)(UBA + 32768 * k + 512 + c * 256);
            uint32_t vu[4] = {v4.x, v4.y, v4.z, v4.w}, wu[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
            for (int z = 0; z < 4; z++) {
              float2 fv = to_float2(vu[z]), fw = to_float2(wu[z]);
              sacc = fmaf(fv.x, fw.x, sacc);
              sacc = fmaf(fv.y, fw.y, sacc);
            }
          }
          s.dg[k] -= 2.f * sacc;
        }
      cluster_barrier();
      if (j + 1 < jend) {
        prefetch((j + 2) >> 4);
        start(j + 1);
      }
    }
  }
  SEC;
#pragma unroll
  for (int k = S0; k < 2; k++) {  // an unfinished panel
    const int r = ra + 512 * k;
    if (s.c == k && p0 < jend && r >= p0) out.panel(p0, jend, r, UBA + 32768 * k);
  }
}

// Loads this block's tiles: resident ones to shared memory, cold ones to the workspace, block
// column 0 and the first column of block column 1 to the panel buffer.
__device__ __forceinline__ void load_input(const State& s, const PaddedInput& in) {
  SEC;
#pragma unroll 1
  for (int h = 0; h < 4; ++h) {
    const int I = w + 16 * h, first = (kOrder - in.n) / kPanel;
#pragma unroll 1
    for (int J = (w ^ s.c) & 1; J <= I; J += 2 * 4) {
      float2 v[4][4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (J + 2 * u <= I) in.tile(I, J + 2 * u, g, q, v[u]);
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int Ju = J + 2 * u, m = kTiles - Ju - s.c;
        if (Ju > I) break;
        const int index = ((m * m) >> 2) + ((kTiles - 1 - I) >> 1);
        clear_diagonal(v[u],
                       Ju != I ? Diagonal::kNone
                               : (Ju < kCold ? Diagonal::kStrictLower : Diagonal::kBothHalves),
                       g, q);
        uint32_t f[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) f[k] = to_half2(v[u][k]);
        if (Ju < kCold) {
          __stcg((uint4*)s.gt + index * 32 + lane, make_uint4(f[0], f[1], f[2], f[3]));
        } else {
          store_tile(shared_address(sm) + index * 512, lane, f);
        }
        publish(s.pb + (first & 1) * kPanelBuffer, I, Ju, first, g, q, f);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) const_cast<State&>(s).dg[k] = in.at(ra + 512 * k, ra + 512 * k);
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads, 1)
    reduce_pair_kernel(const __grid_constant__ Arguments args) {
  State s;
  const int tid = threadIdx.x;
  s.tid = tid;
  s.c = blockIdx.x & 1;
  const int64_t matrix = blockIdx.x >> 1;
  s.peer = map_to_peer(shared_address(sm), s.c ^ 1);
  const int resident = ((33 - s.c) * (33 - s.c)) >> 2;  // cold tiles are numbered behind these
  s.gt = args.cold + (static_cast<int64_t>(blockIdx.x) * kColdTiles - resident) * 32;
  s.pb = args.panels + matrix * 2 * kPanelBuffer;
  for (int i = tid; i < kTiles * 64; i += kThreads) ((uint4*)(sm + oU))[i] = make_uint4(0, 0, 0, 0);
  if (tid < 128) ((__half*)(sm + oCF))[tid] = __ushort_as_half(0);
  if (tid == 0) {
    for (int k = 0; k < 3; ++k) mbarrier_init(shared_address(sm) + oMB + 8 * k);
    mbarrier_init_fence();
  }
  const PaddedInput in{
      args.a + matrix * args.n * args.n, args.n, kOrder - args.n, args.exponent[matrix], args.upper,
      args.status[matrix] != 0};
  load_input(s, in);
  cluster_barrier();
  const Output out{args, matrix};
  const int start = (kOrder - args.n) / kPanel * kPanel;
  columns<true>(s, start, 512, out);
  columns<false>(s, 512, kOrder - 1, out);
  cluster_barrier();  // the peer may still write here
}

}  // namespace

size_t reduce_two_blocks_bytes(const Shape& shape) {
  Carver carver(nullptr);
  carver.take<uint4>(static_cast<size_t>(shape.batch) * 2 * kColdTiles * 32);
  carver.take<__half>(static_cast<size_t>(shape.batch) * 2 * kPanelBuffer);
  return carver.used();
}

cudaError_t reduce_two_blocks(const Shape& shape, const float* a, bool upper,
                              const int* scale_exponent, const int* status, const Tridiagonal& t,
                              void* workspace, cudaStream_t stream) {
  const cudaError_t error = cudaFuncSetAttribute(
      reduce_pair_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;
  constexpr int64_t kMatricesMax = 1 << 20;  // a launch
  Carver carver(workspace);
  uint4* cold = carver.take<uint4>(static_cast<size_t>(shape.batch) * 2 * kColdTiles * 32);
  __half* panels = carver.take<__half>(static_cast<size_t>(shape.batch) * 2 * kPanelBuffer);
  for (int64_t first = 0; first < shape.batch; first += kMatricesMax) {
    const int64_t count = std::min(kMatricesMax, shape.batch - first);
    Tridiagonal part = t;
    part.d += first * shape.ld();
    part.e += first * shape.ld();
    part.tau += first * shape.ld();
    part.v = shape.vectors ? t.v + first * shape.n * shape.ld() : nullptr;
    const Arguments args{a + first * shape.n * shape.n,
                         scale_exponent + first,
                         status + first,
                         part,
                         cold + first * 2 * kColdTiles * 32,
                         panels + first * 2 * kPanelBuffer,
                         shape.n,
                         shape.ld(),
                         upper};
    reduce_pair_kernel<<<static_cast<unsigned>(2 * count), kThreads, kSharedBytes, stream>>>(args);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
