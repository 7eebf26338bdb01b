// single_layout.cuh: shared memory and per-thread state of the one-block reduction.
//
// See reduce_one_block.cu for the algorithm. TT is the number of block rows of the kernel's order.
#pragma once

#include "block_ops.cuh"
#include "reduction_output.cuh"
#include "tile_ops.cuh"

namespace crucible::eigh::single {

constexpr int kOrder = 512, kMiddleOrder = 384, kHalfOrder = 256, kPanel = 16, kThreads = 512;
constexpr int kRegisterColumns = 6, kResidentTiles = 367;
constexpr int kUnrollFirst = 2, kUnrollSecond = 3;
// A tail this short (against max|A| >= 0.5) is FP32 noise: the column counts as reduced.
constexpr float kTailSquared = 3.6e-15f;
constexpr size_t kHandoffBytes = 136 * 512 + 1024;  // 136 tiles and 256 diagonal entries

// Shared memory map, byte offsets. T = block rows.
template <int T>
struct Map {
  static constexpr int kTiles = T == 32 ? kResidentTiles : T * (T + 1) / 2;
  static constexpr int kHeld =
      T == 32 ? 11 : (T == 24 ? 10 : 8);  // block columns held in registers, last ones
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

using Output = ReductionOutput<Arguments, kPanel>;
// A thread's row: its current column entry and its diagonal entry.
struct State {
  float av, dg;
  int tid;
};
#define SEC                                                                                       \
  CRUCIBLE_OPAQUE_INT(tid_, s.tid);                                                               \
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
// Tiles a thread holds in registers: R0, R1 the first block columns (kFirst), of the row blocks w
// and w + TT / 2; RF the last ones.
template <int TT>
struct Registers {
  uint32_t R0[kRegisterColumns][4], R1[kRegisterColumns - 1][4], RF[Map<TT>::kHeld][4];
};

// The column at hand.
struct Column {
  int j, i, panel;  // column, its place in the panel that starts at column `panel`
  int next_tile;    // block column of j + 1
};

// Element (r, c) of the trailing matrix, r > c, r the thread's row.
template <bool kFirst, int TT>
__device__ __forceinline__ float element(const State& s, const Registers<TT>& registers, int c) {
  constexpr int HT = TT / 2;
  const auto& R0 = registers.R0;
  const auto& R1 = registers.R1;
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
          e = h ? R1[k < kRegisterColumns - 1 ? k : 0][2] : R1[k < kRegisterColumns - 1 ? k : 0][0];
          d = h ? R1[k < kRegisterColumns - 1 ? k : 0][3] : R1[k < kRegisterColumns - 1 ? k : 0][1];
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
}

}  // namespace crucible::eigh::single
