// reduce_one_block.cu: tridiagonal reduction for 64 <= n <= 512, one block a matrix, on chip.
//
// Shapes: a [batch][n][n] -> Tridiagonal of stages.h. The matrix is padded in front with zeros to
// order 512 (or 256): a zero column costs one harmless step, at most 15 of them. Deterministic.
//
// Layout. The trailing matrix is an FP16 packed lower triangle of 16x16 tiles in shared memory
// with its diagonal apart in FP32 registers (one row a thread). Tile (I, J) has the index
// J'(J'+1)/2 + I' with J' = T-1-J, I' = T-1-I, so the trailing part is a prefix, and 367 tiles fit:
// block columns 6-31 (and the lower half of 5). For n > 416 block columns 0-5 start in registers
// as mma fragments. Warp w owns row blocks w and w + T/2; each tile is read twice, once as A and
// once transposed, so no sum of the matrix-vector product crosses a warp.
//
// Column j costs two barriers. Step 1: publish x (column j below the diagonal) and its norm.
// Step 2: A x by mma, V^T x and W^T x for the panel's corrections, x^T A x. Step 3: from
// v = (x - beta e1) / (alpha - beta) (stored in FP16) and p = A v by linearity
// (A x - beta a_{j+1}), w = tau p - (tau^2/2)(v^T p) v, and the next column. Every 16 columns the
// trailing tiles take A -= V W^T + W V^T by mma. Below order 256 a second kernel goes on with two
// blocks a multiprocessor, because a column's cost there is latency.
//
// Cost at 512: 2/3 n^3 mma multiply-adds a matrix, n^3/3 * 4 bytes of shared memory reads.
// Error: the tiles round once per panel (FP16), so the scaled eigen-residual is 12-15 at n = 512
// and about 30 at n = 176 (gate 200); see docs/eigh.md.
#include "block_ops.cuh"
#include "launch.h"
#include "reduce_routes.h"
#include "tile_ops.cuh"

namespace crucible::eigh {
namespace {

constexpr int kOrder = 512, kHalfOrder = 256, kPanel = 16, kThreads = 512;
constexpr int kRegisterColumns = 6, kResidentTiles = 367;
constexpr int kUnrollFirst = 2, kUnrollSecond = 3;
// A tail this short (against max|A| >= 0.5) is FP32 noise: the column counts as reduced.
constexpr float kTailSquared = 3.6e-15f;
constexpr size_t kHandoffBytes = 136 * 512 + 1024;  // 136 tiles and 256 diagonal entries

// Shared memory map, byte offsets. T = block rows.
template <int T>
struct Map {
  static constexpr int kTiles = T == 32 ? kResidentTiles : T * (T + 1) / 2;
  static constexpr int kHeld = T == 32 ? 11 : 8;  // block columns held in registers, last ones
  static constexpr int kHeldFrom = T - kHeld;
  static constexpr int U = kTiles * 512;   // panel [V W], two tiles a block row
  static constexpr int XS = U + T * 1024;  // x as hi and lo halves
  static constexpr int POV = XS + T * 64;  // partial sums of the register columns
  static constexpr int RED = POV + (T == 32 ? kRegisterColumns * 1024 : 0);
  static constexpr int VAV = RED + 64, Y1P = VAV + 64, SC = Y1P + 64, DOT = SC + 64;
  static constexpr int CF = DOT + 256, END = CF + 256;
};
static_assert(Map<32>::END <= 232448 && 2 * (Map<16>::END + 1024) <= 233472, "shared memory");

extern __shared__ __align__(128) char sm[];

__device__ __forceinline__ float* floats(int offset) {
  return reinterpret_cast<float*>(sm + offset);
}
__device__ __forceinline__ int tile_index(int t, int block_row, int block_column) {
  const int j = t - 1 - block_column;
  return ((j * (j + 1)) >> 1) + t - 1 - block_row;
}
// Panel tiles: row slots xor-ed so that the row threads' 2-byte stores meet no bank conflict.
template <int HT>
__device__ __forceinline__ uint32_t panel_offset(int block_row, int lane) {
  const int m = lane >> 3, r = lane & 7;
  return block_row * 1024 + m * 128 + ((r ^ (2 * (2 * (block_row >= HT) + (m & 1)))) << 4);
}

struct Arguments {
  const float* a;
  const int *exponent, *status;
  Tridiagonal t;  // t.v null: eigenvalues only
  char* handoff;
  int64_t batch;
  int n, ld;
  bool upper;
};

// Where column j (in padded coordinates) of one matrix goes; the padding's columns go nowhere.
// Addresses are made anew at each use from the kernel's parameters: registers are scarce.
struct Output {
  const Arguments& g;
  int64_t matrix;
  int order;
  __device__ __forceinline__ int64_t opaque_matrix() const {
    int64_t m = matrix;
    asm volatile("" : "+l"(m));
    return m;
  }
  __device__ __forceinline__ void put(float* base, int j, float x) const {
    const int at = j - (order - g.n);
    if (at >= 0) base[opaque_matrix() * g.ld + at] = x;
  }
  __device__ __forceinline__ void diagonal(int j, float x) const { put(g.t.d, j, x); }
  __device__ __forceinline__ void coupling(int j, float x) const { put(g.t.e, j, x); }
  __device__ __forceinline__ void reflector_scale(int j, float x) const { put(g.t.tau, j, x); }
  // Row `row` of the reflectors of columns first .. end-1 (at most 16), from the panel in shared
  // memory: a panel at a time, off the critical path of a column.
  __device__ __forceinline__ void panel(int first, int end, int row, const char* from) const {
    const int pad = order - g.n;
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

struct Context {
  uint32_t tiles, xs;
  int lane;
};

// --- the matrix-vector product, a run of tiles at a time ---
// Mode 0: nothing, 1: the tile, 2: the tile transposed.
template <int M>
__device__ __forceinline__ void load(const Context& c, int index, uint32_t* f) {
  if (M == 1)
    load_tile(c.tiles + index * 512, f);
  else
    load_tile_transposed(c.tiles + index * 512, f);
}
template <int M1, int M2, int G>
__device__ __forceinline__ void grp(float (&acc)[2][2][4], const Context& c, int& i1, int& i2,
                                    int& Jp, uint32_t& xa) {
  uint32_t f1[G][4], f2[G][4];
  uint2 x[G];
#pragma unroll
  for (int u = 0; u < G; u++) {
    x[u] = load_shared_64(xa + u * 64);
    if (M1) load<M1>(c, i1, f1[u]);
    if (M2) load<M2>(c, i2, f2[u]);
    i1 -= M1 == 1 ? Jp : 1;
    i2 -= M2 == 1 ? Jp : 1;
    Jp--;
  }
  xa += G * 64;
#pragma unroll
  for (int u = 0; u < G; u++) {
    if (M1) {
      mma(acc[0][u & 1], f1[u], x[u].x, x[u].y);
    }
    if (M2) {
      mma(acc[1][u & 1], f2[u], x[u].x, x[u].y);
    }
  }
}
template <int M1, int M2, int T, int UR>
__device__ __forceinline__ void seg(float (&acc)[2][2][4], const Context& c, int I1, int I2, int Ja,
                                    int Jb) {
  if (Ja >= Jb) return;
  const int p1 = T - 1 - I1, p2 = T - 1 - I2;
  int Jp = T - 1 - Ja, tri = (Jp * (Jp + 1)) >> 1;
  int i1 = M1 == 1 ? tri + p1 : ((p1 * (p1 + 1)) >> 1) + Jp,
      i2 = M2 == 1 ? tri + p2 : ((p2 * (p2 + 1)) >> 1) + Jp;
  uint32_t xa = c.xs + Ja * 64;
  int n = Jb - Ja;
  constexpr int UN = (M1 && M2) ? UR : 2 * UR;
#pragma unroll 1
  for (; n >= UN; n -= UN) grp<M1, M2, UN>(acc, c, i1, i2, Jp, xa);
  if (UN > 4 && (n & 4)) grp<M1, M2, 4>(acc, c, i1, i2, Jp, xa);
  if (UN > 2 && (n & 2)) grp<M1, M2, 2>(acc, c, i1, i2, Jp, xa);
  if (UN > 1 && (n & 1)) grp<M1, M2, 1>(acc, c, i1, i2, Jp, xa);
}

// A thread's row: its current column entry and its diagonal entry.
struct State {
  float av, dg;
  int tid;
};
// Copies of small values that the compiler must not keep alive (in registers) across steps.
#define OPQ(name, value) \
  int name = value;      \
  asm volatile("" : "+r"(name))
#define SEC                                                                                       \
  OPQ(tid_, s.tid);                                                                               \
  const int lane = tid_ & 31, w = tid_ >> 5, g = lane >> 2, q = lane & 3, rI = w + HT * (q >> 1), \
            r = rI * 16 + (q & 1) * 8 + g;                                                        \
  (void)lane;                                                                                     \
  (void)w;                                                                                        \
  (void)g;                                                                                        \
  (void)q;                                                                                        \
  (void)rI;                                                                                       \
  (void)r
#define UB (sm + MM::U + rI * 1024 + (q & 1) * 128 + ((g ^ (2 * q)) << 4))
#define AROW (sm + (TT - 1 - rI) * 512 + (q & 1) * 128 + g * 16)
#define XST (sm + MM::XS + rI * 64 + (((r & 7) >> 1) * 4 + ((r >> 3) & 1) * 2 + (r & 1)) * 2)
#define CTX                                                                                  \
  Context {                                                                                  \
    shared_address(sm) + lane * 16, shared_address(sm) + MM::XS + (g & 1) * 32 + q * 8, lane \
  }
// Columns jbeg .. jend-1. kFirst: block columns 0-5 are in registers R0 (row block w), R1 (w + 16).
template <bool kFirst, int TT>
__device__ __forceinline__ void columns(State& s, uint32_t (&R0)[kRegisterColumns][4],
                                        uint32_t (&R1)[kRegisterColumns - 1][4], int jbeg, int jend,
                                        const Output& out) {
  using MM = Map<TT>;
  constexpr int HT = TT / 2, NF = MM::kHeld, JF = MM::kHeldFrom;
  static_assert(JF >= HT, "forms");
  int p0 = jbeg;
  auto a0 = [&](int c) -> float {  // element (r, c), r > c
    SEC;
    const int J = c >> 4, Jp = TT - 1 - J;
    float v = 0;
    if (!kFirst || J >= kRegisterColumns - 1)
      v = (!kFirst || J >= kRegisterColumns || rI >= 16)
              ? __half2float(*(const __half*)(AROW + ((Jp * (Jp + 1)) >> 1) * 512 +
                                              ((c >> 3) & 1) * 256 + (c & 7) * 2))
              : 0.f;
    if (kFirst && J < kRegisterColumns) {
      uint32_t a = 0, b = 0, e = 0, d = 0;
      const bool h = c & 8;
#pragma unroll
      for (int k = 0; k < kRegisterColumns; k++)
        if (J == k) {
          a = h ? R0[k][2] : R0[k][0];
          b = h ? R0[k][3] : R0[k][1];
          if (k < kRegisterColumns - 1) {
            e = h ? R1[k < kRegisterColumns - 1 ? k : 0][2]
                  : R1[k < kRegisterColumns - 1 ? k : 0][0];
            d = h ? R1[k < kRegisterColumns - 1 ? k : 0][3]
                  : R1[k < kRegisterColumns - 1 ? k : 0][1];
          }
        }
      const int src = (lane & 28) | ((c & 7) >> 1);
      a = __shfl_sync(~0u, a, src);
      b = __shfl_sync(~0u, b, src);
      e = __shfl_sync(~0u, e, src);
      d = __shfl_sync(~0u, d, src);
      uint32_t z = q == 0 ? a : (q == 1 ? b : (q == 2 ? e : d));
      float2 f = to_float2(z);
      float vr = (c & 1) ? f.y : f.x;
      if (J < kRegisterColumns - 1 || rI < 16) v = vr;
    }
    return v;
  };
  {
    SEC;
    float z = a0(jbeg);
    s.av = r == jbeg ? s.dg : z;
    if (r == jbeg) out.diagonal(jbeg, s.av);
  }
  uint32_t RF[NF][4];
  if (!kFirst) {
    SEC;
    const Context ctx = CTX;
    const int I2 = w + HT;
#pragma unroll
    for (int k = 0; k < NF; k++) {
      const int J = JF + k;
      if (J <= I2)
        load_tile(ctx.tiles + tile_index(TT, I2, J) * 512, RF[k]);
      else
        load_tile_transposed(ctx.tiles + tile_index(TT, J, I2) * 512, RF[k]);
    }
  }
#pragma unroll 1
  for (int j = jbeg; j < jend; j++) {
    const int i = j - p0, J1 = (j + 1) >> 4;
    // ---- step 1
    {
      SEC;
      const bool active = w + HT >= J1;
      if (active) {
        const float xv = r > j ? s.av : 0.f;
        float sg = r > j + 1 ? xv * xv : 0.f;
        if (r >= p0) store_x(XST, xv);
        if (r == j + 1) {
          floats(MM::SC)[0] = xv;
          floats(MM::SC)[8 + (j & 1)] = s.dg;
        }
        sg = warp_sum(sg);
        if (lane == 0) floats(MM::RED)[w] = sg;
      } else {
        if (lane == 0) floats(MM::RED)[w] = 0;
        if (r == j) {
          char* xst = XST;
          *(__half*)xst = *(__half*)(xst + 32) = __ushort_as_half(0);
        }
      }
    }
    __syncthreads();
    float y = 0, ac = 0;
    // ---- step 2
    {
      SEC;
      const bool active = w + HT >= J1;
      const Context ctx = CTX;
      if (w < 6) {  // V'x (even warps), W'x (odd warps), 3 warps each; then warps 0, 1: scalars and
                    // coefficients of W (warp 0) and of V (warp 1)
        const int lb = w & 1, kq = w >> 1;
        float acc[4][4];
#pragma unroll
        for (int k = 0; k < 16; k++) acc[k >> 2][k & 3] = 0.f;
        if (i > 0) {
          const uint32_t ua = shared_address(sm) + MM::U + lb * 512;
          int I = J1 + kq;
#pragma unroll 1
          for (; I + 9 < TT; I += 12) {
            uint32_t f[4][4];
            uint2 xb[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
              load_tile_transposed(ua + panel_offset<HT>(I + 3 * k, lane), f[k]);
              xb[k] = load_shared_64(ctx.xs + (I + 3 * k) * 64);
            }
#pragma unroll
            for (int k = 0; k < 4; k++) mma(acc[k], f[k], xb[k].x, xb[k].y);
          }
#pragma unroll 1
          for (; I < TT; I += 3) {
            uint32_t f[4];
            load_tile_transposed(ua + panel_offset<HT>(I, lane), f);
            uint2 xb = load_shared_64(ctx.xs + I * 64);
            mma(acc[0], f, xb.x, xb.y);
          }
        }
        float h0 = (q & 1) ? (acc[0][2] + acc[1][2]) + (acc[2][2] + acc[3][2])
                           : (acc[0][0] + acc[1][0]) + (acc[2][0] + acc[3][0]);
        float l0 = (q & 1) ? (acc[0][3] + acc[1][3]) + (acc[2][3] + acc[3][3])
                           : (acc[0][1] + acc[1][1]) + (acc[2][1] + acc[3][1]);
        h0 = join_x(h0, l0);
        float* dp = floats(MM::DOT) + lb * 32 + g + 8 * (q & 1);
        if (kq > 0) {
          if (q < 2) dp[(kq - 1) * 16] = h0;
          if (lb)
            asm volatile("barrier.cta.arrive 2, 96;" ::: "memory");
          else
            asm volatile("barrier.cta.arrive 1, 96;" ::: "memory");
        } else {
          float4 t = {0, 0, 0, 0};
#pragma unroll
          for (int k = 0; k < HT; k += 4) {
            float4 b = *(float4*)&floats(MM::RED)[k];
            t.x += b.x;
            t.y += b.y;
            t.z += b.z;
            t.w += b.w;
          }
          float al = floats(MM::SC)[0], sg = (t.x + t.y) + (t.z + t.w), s2 = fmaf(al, al, sg),
                nr = s2 * fast_rsqrt(s2), be = -copysignf(nr, al), ti = -fast_reciprocal(be),
                inv = fast_reciprocal(al - be);
          if (!(sg > kTailSquared)) {
            be = al;
            ti = 0;
            inv = 0;
          }
          if (tid_ == 0) {
            floats(MM::SC)[4] = be;
            floats(MM::SC)[5] = ti;
            floats(MM::SC)[6] = inv;
            out.reflector_scale(j, ti == 0.f ? 0.f : 1.f - al / be);
          }
          if (lb)
            asm volatile("barrier.cta.sync 2, 96;" ::: "memory");
          else
            asm volatile("barrier.cta.sync 1, 96;" ::: "memory");
          h0 += dp[0] + dp[16];
          if (q < 2) {
            const int l = g + 8 * q, b3 = ((j + 1) >> 3) & 1;
            __half d =
                *(const __half*)(sm + MM::U + J1 * 1024 + w * 512 + (b3 + 2 * q) * 128 +
                                 ((((j + 1) & 7) ^ (2 * (2 * (J1 >= HT) + b3))) << 4) + g * 2);
            float cc = h0 - be * __half2float(d);
            if (l >= i) {
              cc = 0;
              d = __ushort_as_half(0);
            }
            __half* cd = (__half*)(sm + MM::CF) + (w ? 0 : 64) + (g >> 1) * 4 + q * 2 + (g & 1);
            __half ch = __float2half_rn(cc);
            cd[0] = ch;
            cd[16] = __float2half_rn((cc - __half2float(ch)) * kLowScale);
            cd[32] = d;
          }
        }
      }
      if (active) {
        float yR = 0;
        {
          float acc[2][2][4];
#pragma unroll
          for (int k = 0; k < 16; k++) acc[k >> 3][(k >> 2) & 1][k & 3] = 0.f;
          const int I1 = w, I2 = w + HT;
          if (kFirst) {
            const int Js = max(J1, kRegisterColumns);
#pragma unroll 1
            for (int ph = 0; ph < 2; ph++) {
              if (ph == ((w >> 2) & 1)) {
                {
                  yR = -own_row(acc, q);
                  const uint2 x1 = load_shared_64(ctx.xs + I1 * 64),
                              x2 = load_shared_64(ctx.xs + I2 * 64);
#pragma unroll
                  for (int J = 0; J < kRegisterColumns; J++) {
                    if (J >= J1) {
                      uint32_t f2[4], t[4];
                      const uint2 xj = load_shared_64(ctx.xs + J * 64);
                      float col[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
                      if (J < kRegisterColumns - 1) {
                        f2[0] = R1[J < kRegisterColumns - 1 ? J : 0][0];
                        f2[1] = R1[J < kRegisterColumns - 1 ? J : 0][1];
                        f2[2] = R1[J < kRegisterColumns - 1 ? J : 0][2];
                        f2[3] = R1[J < kRegisterColumns - 1 ? J : 0][3];
                      } else
                        load_tile(
                            ctx.tiles + ((((TT - 1 - J) * (TT - J)) >> 1) + TT - 1 - I2) * 512, f2);
                      mma(acc[1][J & 1], f2, xj.x, xj.y);
                      transpose_fragment(f2, t);
                      mma(col[0], t, x2.x, x2.y);
                      if (w > J) {
                        mma(acc[0][J & 1], R0[J], xj.x, xj.y);
                        transpose_fragment(R0[J], t);
                        mma(col[1], t, x1.x, x1.y);
                      }
                      float v0 = join_x(col[0][0] + col[1][0], col[0][1] + col[1][1]),
                            v1 = join_x(col[0][2] + col[1][2], col[0][3] + col[1][3]);
                      if (q == 0) {
                        floats(MM::POV)[(J * 16 + w) * 16 + g] = v0;
                        floats(MM::POV)[(J * 16 + w) * 16 + 8 + g] = v1;
                        if (J == J1 && g == ((j + 1) & 7))
                          floats(MM::Y1P)[w] = ((j + 1) & 8) ? v1 : v0;
                      }
                    }
                  }
                  yR += own_row(acc, q);
#pragma unroll
                  for (int J = 0; J < kRegisterColumns; J++)
                    if (w == J && J >= J1) {
                      const uint2 xj = load_shared_64(ctx.xs + J * 64);
                      mma(acc[0][0], R0[J], xj.x, xj.y);
                    }
                }
              } else {
                if (I1 >= kRegisterColumns && I1 >= J1) {
                  seg<1, 1, TT, kUnrollFirst>(acc, ctx, I1, I2, Js, I1 + 1);
                  seg<2, 1, TT, kUnrollFirst>(acc, ctx, I1, I2, I1 + 1, I2 + 1);
                  seg<2, 2, TT, kUnrollFirst>(acc, ctx, I1, I2, I2 + 1, TT);
                } else {
                  seg<0, 1, TT, kUnrollFirst>(acc, ctx, I1, I2, Js, I2 + 1);
                  seg<0, 2, TT, kUnrollFirst>(acc, ctx, I1, I2, I2 + 1, TT);
                }
              }
            }
          } else {
            const int e2 = min(I2 + 1, JF);
            if (I1 >= J1) {
              seg<1, 1, TT, kUnrollSecond>(acc, ctx, I1, I2, J1, I1 + 1);
              seg<2, 1, TT, kUnrollSecond>(acc, ctx, I1, I2, I1 + 1, e2);
              seg<2, 2, TT, kUnrollSecond>(acc, ctx, I1, I2, e2, JF);
              const int p1 = TT - 1 - I1;
              const uint32_t ta = ctx.tiles + (((p1 * (p1 + 1)) >> 1) + NF - 1) * 512,
                             xa = ctx.xs + JF * 64;
#pragma unroll
              for (int k0 = 0; k0 < NF; k0 += 4) {
                uint32_t f[4][4];
                uint2 xj[4];
#pragma unroll
                for (int k = k0; k < k0 + 4 && k < NF; k++) {
                  xj[k - k0] = load_shared_64(xa + k * 64);
                  load_tile_transposed(ta - k * 512, f[k - k0]);
                }
#pragma unroll
                for (int k = k0; k < k0 + 4 && k < NF; k++) {
                  mma(acc[1][k & 1], RF[k], xj[k - k0].x, xj[k - k0].y);
                  mma(acc[0][k & 1], f[k - k0], xj[k - k0].x, xj[k - k0].y);
                }
              }
            } else {
              seg<0, 1, TT, kUnrollSecond>(acc, ctx, I1, I2, J1, e2);
              seg<0, 2, TT, kUnrollSecond>(acc, ctx, I1, I2, max(e2, J1), JF);
              const uint32_t xa = ctx.xs + JF * 64;  // x = 0 for finished columns: no guards
#pragma unroll
              for (int k = 0; k < NF; k++) {
                const uint2 xj = load_shared_64(xa + k * 64);
                mma(acc[1][k & 1], RF[k], xj.x, xj.y);
              }
            }
          }
          y = own_row(acc, q);
        }
        const float xv = r > j ? s.av : 0.f;
        y = fmaf(s.dg, xv, y);
        if (kFirst) {
          float z = a0(j + 1);
          ac = r > j + 1 ? z : (r == j + 1 ? s.dg : 0.f);
        }
        float vav = warp_sum(xv * (y + yR));
        if (lane == 0) floats(MM::VAV)[w] = vav;
        if (r == j + 1) floats(MM::SC)[2] = y;
      } else if (lane == 0)
        floats(MM::VAV)[w] = 0;
    }
    __syncthreads();
    // ---- step 3
    {
      SEC;
      const bool active = w + HT >= J1;
      const int lane3 = lane;
      if (active) {
        if (!kFirst) {
          float z = a0(j + 1);
          ac = r > j + 1 ? z : (r == j + 1 ? s.dg : 0.f);
        }
        const float beta = floats(MM::SC)[4], ti = floats(MM::SC)[5], inv = floats(MM::SC)[6],
                    dj = floats(MM::SC)[8 + (j & 1)];
        float y1 = floats(MM::SC)[2];
        float S1 = 0, S2 = 0, T1 = 0, T2 = 0;
        if (i > 0) {
          const uint2 bv = load_shared_64(shared_address(sm) + MM::CF + (g & 3) * 32 + q * 8),
                      bw = load_shared_64(shared_address(sm) + MM::CF + (g & 3) * 32 + q * 8 + 128);
          uint32_t fa[4];
          float k2[4] = {0, 0, 0, 0}, k1[4] = {0, 0, 0, 0}, kt[4] = {0, 0, 0, 0};
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w + HT, lane3), fa);
          mma(k2, fa, bv.x, bv.y);
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w + HT, lane3), fa);
          mma(k2, fa, bw.x, bw.y);
          if (w >= J1) {
            load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w, lane3), fa);
            mma(k1, fa, bv.x, bv.y);
            load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w, lane3), fa);
            mma(k1, fa, bw.x, bw.y);
          }
          uint32_t at[4] = {g < 4 ? bv.x : 0u, 0u, g < 4 ? bv.y : 0u, 0u};
          mma(kt, at, bw.x, bw.y);  // rows: cW hi, lo, dW; columns: cV hi, lo, dV
          float e = join(kt[0], kt[1]);
          float e00 = __shfl_sync(~0u, e, 0), e10 = __shfl_sync(~0u, e, 4),
                e20 = __shfl_sync(~0u, e, 8), e01 = __shfl_sync(~0u, kt[0], 1),
                e11 = __shfl_sync(~0u, kt[0], 5);
          T2 = join(e00, e10);
          T1 = e20 + join(e01, e11);
          // lane q even holds S1 (hi, lo) of four rows, q odd S2
          float m0 = (q & 1) ? k1[0] : join(k1[0], k1[1]),
                m1 = (q & 1) ? k1[2] : join(k1[2], k1[3]);
          float n0 = (q & 1) ? k2[0] : join(k2[0], k2[1]),
                n1 = (q & 1) ? k2[2] : join(k2[2], k2[3]);
          float b0 = q < 2 ? m0 : n0, b1 = q < 2 ? m1 : n1;  // rows g and g+8 of my block
          float keep = (q & 1) ? b1 : b0, give = (q & 1) ? b0 : b1;
          float got = __shfl_xor_sync(~0u, give, 1);
          S1 = (q & 1) ? got : keep;
          S2 = (q & 1) ? keep : got;
        }
        float4 va = {0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < HT; k += 4) {
          float4 b = *(float4*)&floats(MM::VAV)[k];
          va.x += b.x;
          va.y += b.y;
          va.z += b.z;
          va.w += b.w;
        }
        const float xax = (va.x + va.y) + (va.z + va.w);
        if (kFirst && J1 < kRegisterColumns) {
          float4 ya = *(float4*)floats(MM::Y1P), yb = *(float4*)(floats(MM::Y1P) + 4),
                 yc = *(float4*)(floats(MM::Y1P) + 8), yd = *(float4*)(floats(MM::Y1P) + 12);
          y1 += (((ya.x + ya.y) + (ya.z + ya.w)) + ((yb.x + yb.y) + (yb.z + yb.w))) +
                (((yc.x + yc.y) + (yc.z + yc.w)) + ((yd.x + yd.y) + (yd.z + yd.w)));
          if (w < kRegisterColumns && w >= J1 && q < 2) {
            float t0 = 0, t1 = 0;
#pragma unroll
            for (int k = 0; k < 16; k += 2) {
              t0 += floats(MM::POV)[(w * 16 + k) * 16 + (r & 15)];
              t1 += floats(MM::POV)[(w * 16 + k + 1) * 16 + (r & 15)];
            }
            y += t0 + t1;
          }
        }
        const float p1 = y1 - beta * dj - T1;
        const float pu = xax - 2.f * beta * y1 + beta * beta * dj - 2.f * T2;
        const float al2 = -0.5f * ti * ti * pu;
        const float w1 = __half2float(__float2half_rn(fmaf(ti, p1, al2)));
        if (r > j) {
          float p = y - beta * ac - S1;
          float v = r == j + 1 ? (ti == 0.f ? 0.f : 1.f) : s.av * inv;
          float ww = fmaf(ti, p, al2 * v);
          __half vh = __float2half_rn(v), wh = __float2half_rn(ww);
          char* pd = UB + (i >> 3) * 256 + (i & 7) * 2;
          *(__half*)pd = vh;
          *(__half*)(pd + 512) = wh;
          s.av = ac - S2 - (__half2float(vh) * w1 + __half2float(wh));
          if (r == j + 1) {
            out.coupling(j, beta);
            if (i < kPanel - 1) out.diagonal(j + 1, s.av);
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
      const Context ctx = CTX;
      {
        if (kFirst) {
          uint32_t v1[4], w1[4], v2[4], w2[4];
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w, lane4), v1);
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w, lane4), w1);
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w + HT, lane4), v2);
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w + HT, lane4), w2);
#pragma unroll
          for (int J = 0; J < kRegisterColumns; J++)
            if (J >= J0) {
              uint32_t bw[4], bv[4];
              load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(J, lane4), bw);
              load_tile(shared_address(sm) + MM::U + panel_offset<HT>(J, lane4), bv);
              if (w >= J)
                update_tile(R0[J], v1, w1, bw, bv, w == J ? Diagonal::kBothHalves : Diagonal::kNone,
                            g, q);
              if (J < kRegisterColumns - 1)
                update_tile(R1[J < kRegisterColumns - 1 ? J : 0], v2, w2, bw, bv, Diagonal::kNone,
                            g, q);
            }
        }
        if (!kFirst && w + HT >= J0) {
          uint32_t v2[4], w2[4];
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w + HT, lane4), v2);
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w + HT, lane4), w2);
#pragma unroll
          for (int k = 0; k < NF; k++)
            if (JF + k >= J0) {
              uint32_t bw[4], bv[4];
              load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(JF + k, lane4), bw);
              load_tile(shared_address(sm) + MM::U + panel_offset<HT>(JF + k, lane4), bv);
              update_tile(RF[k], v2, w2, bw, bv,
                          w + HT == JF + k ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
              if (JF + k <= w + HT) {
                store_tile(shared_address(sm) + tile_index(TT, w + HT, JF + k) * 512, lane4, RF[k]);
              }
            }
        }
#pragma unroll 1
        for (int h = 0; h < 2; h++) {
          const int I = h ? w : TT - 1 - w;
          if (I < J0) continue;
          uint32_t fv[4], fw[4];
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(I, lane4), fv);
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(I, lane4), fw);
          const int Ip = TT - 1 - I;
          const int Jb = kFirst ? max(J0, I >= 16 ? kRegisterColumns - 1 : kRegisterColumns) : J0;
          const int Je =
              kFirst
                  ? I
                  : min(I, JF - 1);  // tiles from column JF on: written by the register forms above
#pragma unroll 2
          for (int J = Jb; J <= Je; J++) {
            const int Jp = TT - 1 - J, u = ((Jp * (Jp + 1)) >> 1) + Ip;
            uint32_t f[4], b1[4], b2[4];
            load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(J, lane4), b1);
            load_tile(shared_address(sm) + MM::U + panel_offset<HT>(J, lane4), b2);
            load_tile(ctx.tiles + u * 512, f);
            update_tile(f, fv, fw, b1, b2, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
            store_tile(shared_address(sm) + u * 512, lane4, f);
          }
        }
      }
      if (r >= p0 - kPanel) out.panel(p0 - kPanel, p0, r, UB);
      if (r >= p0) {
        float sacc = 0;
#pragma unroll
        for (int c = 0; c < 2; c++) {
          uint4 v4 = *(const uint4*)(UB + c * 256), w4 = *(const uint4*)(UB + 512 + c * 256);
          uint32_t vu[4] = {v4.x, v4.y, v4.z, v4.w}, wu[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
          for (int k = 0; k < 4; k++) {
            float2 fv = to_float2(vu[k]), fw = to_float2(wu[k]);
            sacc = fmaf(fv.x, fw.x, sacc);
            sacc = fmaf(fv.y, fw.y, sacc);
          }
        }
        s.dg -= 2.f * sacc;
      }
      __syncthreads();
      if (j + 1 < jend) {
        float z = a0(j + 1);
        if (r > j) {
          s.av = r == j + 1 ? s.dg : z;
          if (r == j + 1) out.diagonal(j + 1, s.av);
        }
      }
    }
  }
  SEC;
  if (p0 < jend && r >= p0) out.panel(p0, jend, r, UB);  // an unfinished panel
}

__device__ __forceinline__ PaddedInput input_of(const Arguments& g, int64_t matrix, int order) {
  return PaddedInput{g.a + matrix * g.n * g.n, g.n,     order - g.n,
                     g.exponent[matrix],       g.upper, g.status[matrix] != 0};
}
__device__ __forceinline__ void unpack_index(int t, int index, int* block_row, int* block_column) {
  const int j = static_cast<int>((sqrtf(8.f * index + 1.f) - 1.f) * 0.5f);
  *block_row = t - 1 - (index - ((j * (j + 1)) >> 1));
  *block_column = t - 1 - j;
}
__device__ __forceinline__ void to_fragment(float2* v, Diagonal kind, int g, int q, uint32_t* f) {
  clear_diagonal(v, kind, g, q);
#pragma unroll
  for (int k = 0; k < 4; ++k) f[k] = to_half2(v[k]);
}
// Fills the resident tiles from the input, four tiles in flight a warp.
template <int T, int kWarps>
__device__ __forceinline__ void load_resident(const PaddedInput& in, int w, int lane) {
  constexpr int kFlight = 4;
  const int g = lane >> 2, q = lane & 3;
  for (int first = w; first < Map<T>::kTiles; first += kWarps * kFlight) {
    float2 v[kFlight][4];
#pragma unroll
    for (int z = 0; z < kFlight; ++z) {
      const int u = first + z * kWarps;
      int I, J;
      unpack_index(T, u, &I, &J);
      if (u < Map<T>::kTiles) in.tile(I, J, g, q, v[z]);
    }
#pragma unroll
    for (int z = 0; z < kFlight; ++z) {
      const int u = first + z * kWarps;
      int I, J;
      unpack_index(T, u, &I, &J);
      uint32_t f[4];
      if (u >= Map<T>::kTiles) break;
      to_fragment(v[z], I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q, f);
      store_tile(shared_address(sm) + u * 512, lane, f);
    }
  }
}

// 256 < n <= 512: columns up to order 256, the rest handed over.
__global__ void __launch_bounds__(kThreads, 1)
    reduce_first_kernel(const __grid_constant__ Arguments args) {
  constexpr int TT = 32, HT = 16;
  using MM = Map<TT>;
  State s;
  const int tid = threadIdx.x;
  s.tid = tid;
  for (int i = tid; i < TT * 64; i += kThreads) ((uint4*)(sm + MM::U))[i] = make_uint4(0, 0, 0, 0);
  if (tid < 128) ((__half*)(sm + MM::CF))[tid] = __ushort_as_half(0);
  const int start = (kOrder - args.n) / kPanel * kPanel;
  for (int64_t matrix = blockIdx.x; matrix < args.batch; matrix += gridDim.x) {
    const PaddedInput in = input_of(args, matrix, kOrder);
    const Output out{args, matrix, kOrder};
    SEC;
    __syncthreads();
    load_resident<TT, 16>(in, w, lane);
    uint32_t R0[kRegisterColumns][4], R1[kRegisterColumns - 1][4];
    if (start < kRegisterColumns * kPanel) {
#pragma unroll
      for (int J = 0; J < kRegisterColumns; ++J) {
        float2 v[4];
        const int I = max(w, J);
        in.tile(I, J, g, q, v);
        to_fragment(v, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q, R0[J]);
        if (J < kRegisterColumns - 1) {
          in.tile(w + HT, J, g, q, v);
          to_fragment(v, Diagonal::kNone, g, q, R1[J < kRegisterColumns - 1 ? J : 0]);
        }
      }
    }
    s.dg = in.at(r, r);
    __syncthreads();
    int at = start;
    if (at < kRegisterColumns * kPanel) {
      columns<true, TT>(s, R0, R1, at, kRegisterColumns * kPanel, out);
      at = kRegisterColumns * kPanel;
    }
    columns<false, TT>(s, R0, R1, at, kHalfOrder, out);
    char* h = args.handoff + matrix * kHandoffBytes;
    for (int k = tid; k < 136 * 32; k += kThreads) ((uint4*)h)[k] = *(uint4*)(sm + k * 16);
    if (r >= kHalfOrder) ((float*)(h + 136 * 512))[r - kHalfOrder] = s.dg;
  }
}

// The last 256 columns, from the hand-over (kFromInput false) or the whole matrix, n <= 256.
template <bool kFromInput>
__global__ void __launch_bounds__(256, 2)
    reduce_tail_kernel(const __grid_constant__ Arguments args) {
  constexpr int HT = 8, TT = 16;
  using MM = Map<TT>;
  State s;
  const int tid = threadIdx.x;
  s.tid = tid;
  for (int i = tid; i < TT * 64; i += 256) ((uint4*)(sm + MM::U))[i] = make_uint4(0, 0, 0, 0);
  if (tid < 128) ((__half*)(sm + MM::CF))[tid] = __ushort_as_half(0);
  const int start = kFromInput ? (kHalfOrder - args.n) / kPanel * kPanel : 0;
  for (int64_t matrix = blockIdx.x; matrix < args.batch; matrix += gridDim.x) {
    const Output out{args, matrix, kHalfOrder};
    SEC;
    __syncthreads();
    if (kFromInput) {
      const PaddedInput in = input_of(args, matrix, kHalfOrder);
      load_resident<TT, 8>(in, w, lane);
      s.dg = in.at(r, r);
    } else {
      const char* h = args.handoff + matrix * kHandoffBytes;
#pragma unroll 4
      for (int k = tid; k < 136 * 32; k += 256)
        *(uint4*)(sm + k * 16) = __ldcs((const uint4*)h + k);
      s.dg = ((const float*)(h + 136 * 512))[r];
    }
    __syncthreads();
    uint32_t R0[kRegisterColumns][4], R1[kRegisterColumns - 1][4];
    columns<false, TT>(s, R0, R1, start, kHalfOrder - 1, out);
  }
}

}  // namespace

size_t reduce_one_block_bytes(const Shape& shape) {
  return shape.n > kHalfOrder ? shape.batch * kHandoffBytes : 0;
}

cudaError_t reduce_one_block(const Shape& shape, const float* a, bool upper,
                             const int* scale_exponent, const int* status, const Tridiagonal& t,
                             void* workspace, cudaStream_t stream) {
  Arguments args{a,           scale_exponent, status,     t,    static_cast<char*>(workspace),
                 shape.batch, shape.n,        shape.ld(), upper};
  if (!shape.vectors) args.t.v = nullptr;
  const auto set_shared = [](const void* kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  const unsigned blocks = grid_for(shape.batch, 132), tail_blocks = grid_for(shape.batch, 264);
  if (shape.n <= kHalfOrder) {
    const cudaError_t error = set_shared((const void*)reduce_tail_kernel<true>, Map<16>::END);
    if (error != cudaSuccess) return error;
    reduce_tail_kernel<true><<<tail_blocks, 256, Map<16>::END, stream>>>(args);
    return cudaGetLastError();
  }
  cudaError_t error = set_shared((const void*)reduce_first_kernel, Map<32>::END);
  if (error == cudaSuccess) {
    error = set_shared((const void*)reduce_tail_kernel<false>, Map<16>::END);
  }
  if (error != cudaSuccess) return error;
  reduce_first_kernel<<<blocks, kThreads, Map<32>::END, stream>>>(args);
  reduce_tail_kernel<false><<<tail_blocks, 256, Map<16>::END, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace crucible::eigh
