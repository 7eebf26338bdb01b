// single_layout.cuh: shared memory and per-thread state of the one-block reduction.
//
// See reduce_one_block.cu for the algorithm. TT is the number of block rows (of 16) of the kernel's
// order; the block has TT / 2 warps, and warp k owns block rows k and k + TT / 2: a thread one row.
#pragma once

#include "block_ops.cuh"
#include "reduction_output.cuh"
#include "reflector_ops.cuh"
#include "tile_ops.cuh"

namespace crucible::eigh::single {

constexpr int kOrder = 512, kMiddleOrder = 384, kHalfOrder = 256, kPanel = 16, kThreads = 512;
constexpr int kRegisterColumns = 6, kResidentTiles = 367;
constexpr int kUnrollFirst = 2, kUnrollSecond = 3;
constexpr size_t kHandoffBytes = 136 * 512 + 1024;  // 136 tiles and 256 diagonal entries

// Shared memory map, byte offsets. T = block rows. Written in / read in (steps of single_steps.cuh;
// U is the update after a panel): tiles U / 2, U; panel 3 / 2, 3, U; x 1 / 2; column and pivot sums
// 2 / 3; tail sums 1 / 2; quadratic sums 2 / 3; dots 2 / 2 (partial barriers 1 and 2);
// coefficients 2 / 3.
template <int T>
struct MemoryMap {
  static constexpr int kTiles = T == 32 ? kResidentTiles : T * (T + 1) / 2;
  static constexpr int kHeld =
      T == 32 ? 11 : (T == 24 ? 10 : 8);  // block columns held in registers, last ones
  static constexpr int kHeldFrom = T - kHeld;
  static constexpr int kPanelAt = kTiles * 512;      // panel [V W], two tiles a block row
  static constexpr int kXAt = kPanelAt + T * 1024;   // x as hi and lo halves
  static constexpr int kColumnSums = kXAt + T * 64;  // partial sums of the register columns
  static constexpr int kTailSums = kColumnSums + (T == 32 ? kRegisterColumns * 1024 : 0);
  static constexpr int kQuadraticSums = kTailSums + 64, kPivotSums = kQuadraticSums + 64,
                       kScalars = kPivotSums + 64, kDots = kScalars + 64;
  static constexpr int kCoefficients = kDots + 256, kBytes = kCoefficients + 256;
};
static_assert(MemoryMap<32>::kBytes <= 232448 && 2 * (MemoryMap<16>::kBytes + 1024) <= 233472,
              "shared memory");

extern __shared__ __align__(128) char sm[];

__device__ __forceinline__ float* floats(int offset) {
  return reinterpret_cast<float*>(sm + offset);
}
template <int T>
__device__ __forceinline__ float& scalar(int slot) {
  return floats(MemoryMap<T>::kScalars)[slot];
}
__device__ __forceinline__ int tile_index(int t, int block_row, int block_column) {
  const int j = t - 1 - block_column;
  return ((j * (j + 1)) >> 1) + t - 1 - block_row;
}
// Panel tiles: row slots xor-ed so that the row threads' 2-byte stores meet no bank conflict.
template <int kHalf>
__device__ __forceinline__ uint32_t panel_offset(int block_row, int lane) {
  const int m = lane >> 3, row = lane & 7;
  return block_row * 1024 + m * 128 + ((row ^ (2 * (2 * (block_row >= kHalf) + (m & 1)))) << 4);
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
  float entry, diagonal_entry;
  int tid;
};

// Where the thread is, made anew in each step: warp; g, q: lane / 4 and lane % 4, its place in mma
// fragments; row and block_row: the row of the matrix it owns.
#define THREAD_PLACE                                                                     \
  CRUCIBLE_OPAQUE_INT(tid_, s.tid);                                                      \
  const int lane = tid_ & 31, warp = tid_ >> 5, g = lane >> 2, q = lane & 3,             \
            block_row = warp + kHalf * (q >> 1), row = block_row * 16 + (q & 1) * 8 + g; \
  (void)lane;                                                                            \
  (void)warp;                                                                            \
  (void)g;                                                                               \
  (void)q;                                                                               \
  (void)block_row;                                                                       \
  (void)row
// In shared memory: the thread's row of V (W is 512 bytes on), of block column 0, and of x.
#define PANEL_ROW (sm + Memory::kPanelAt + block_row * 1024 + (q & 1) * 128 + ((g ^ (2 * q)) << 4))
#define TILE_ROW (sm + (TT - 1 - block_row) * 512 + (q & 1) * 128 + g * 16)
#define X_SLOT                          \
  (sm + Memory::kXAt + block_row * 64 + \
   (((row & 7) >> 1) * 4 + ((row >> 3) & 1) * 2 + (row & 1)) * 2)
#define PRODUCT_CONTEXT                                                                            \
  Context {                                                                                        \
    shared_address(sm) + lane * 16, shared_address(sm) + Memory::kXAt + (g & 1) * 32 + q * 8, lane \
  }
// Tiles a thread holds in registers, as mma fragments: the first block columns while they count
// (kFirst), of the warp's first and second block row; and, after those are done, the last ones of
// its second block row (beyond the diagonal: the transposed tile).
template <int TT>
struct Registers {
  uint32_t first_upper[kRegisterColumns][4], first_lower[kRegisterColumns - 1][4],
      held[MemoryMap<TT>::kHeld][4];
};

// The column at hand.
struct Column {
  int j, i, panel;  // column, its place in the panel that starts at column `panel`
  int next_block;   // block column of j + 1
};

// Element (r, c) of the trailing matrix, r > c, r the thread's row.
template <bool kFirst, int TT>
__device__ __forceinline__ float element(const State& s, const Registers<TT>& registers, int c) {
  constexpr int kHalf = TT / 2;
  const auto& first_upper = registers.first_upper;
  const auto& first_lower = registers.first_lower;
  THREAD_PLACE;
  const int J = c >> 4, Jp = TT - 1 - J;
  float v = 0;
  if (!kFirst || J >= kRegisterColumns - 1)
    v = (!kFirst || J >= kRegisterColumns || block_row >= 16)
            ? __half2float(*(const __half*)(TILE_ROW + ((Jp * (Jp + 1)) >> 1) * 512 +
                                            ((c >> 3) & 1) * 256 + (c & 7) * 2))
            : 0.f;
  if (kFirst && J < kRegisterColumns) {
    uint32_t a = 0, b = 0, e = 0, d = 0;
    const bool h = c & 8;
#pragma unroll
    for (int k = 0; k < kRegisterColumns; k++)
      if (J == k) {
        a = h ? first_upper[k][2] : first_upper[k][0];
        b = h ? first_upper[k][3] : first_upper[k][1];
        if (k < kRegisterColumns - 1) {
          e = h ? first_lower[k < kRegisterColumns - 1 ? k : 0][2]
                : first_lower[k < kRegisterColumns - 1 ? k : 0][0];
          d = h ? first_lower[k < kRegisterColumns - 1 ? k : 0][3]
                : first_lower[k < kRegisterColumns - 1 ? k : 0][1];
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
    if (J < kRegisterColumns - 1 || block_row < 16) v = vr;
  }
  return v;
}

}  // namespace crucible::eigh::single
