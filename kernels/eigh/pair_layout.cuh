// pair_layout.cuh: shared memory, buffers and per-thread state of the two-block reduction.
//
// See reduce_two_blocks.cu for the algorithm. Tile (I, J) is in block (I - J) mod 2 of the pair.
#pragma once

#include "block_ops.cuh"
#include "cluster_ops.cuh"
#include "reduction_output.cuh"
#include "reflector_ops.cuh"
#include "tile_ops.cuh"

namespace crucible::eigh::pair {

constexpr int kOrder = 1024, kTiles = 64, kPanel = 16, kThreads = 512;
constexpr int kCold = 32;                              // block columns 0 .. kCold-1 are in L2
constexpr int kResidentTiles = 272, kColdTiles = 784;  // a block, at most
constexpr int kUnrollFirst = 2, kUnrollSecond = 4;
constexpr int kPanelBuffer = (kPanel + 1) * kOrder;  // a panel's columns and the one behind it
// Shared memory map, byte offsets. Written in / read in (steps of pair_steps.cuh; U is the update
// after a panel; * by the peer's st_async): tiles U / 2, U; panel 3 / 2, 3, U; x 1 / 2; column sums
// 2 / 3; kPeerProduct *2 / 3; kPeerColdProduct *3 / 3, and before that the dots of step 2; tail
// sums 1 / 2; quadratic sums 2 and *2 / 3; scalars 1, 2 / 2, 3; coefficients 2 / 3; kPeerPivotSums
// and kPeerPivot *2 / 3. What the peer writes in step 2 is doubled by column parity.
constexpr int kPanelAt = kResidentTiles * 512, kXAt = kPanelAt + kTiles * 1024,
              kColumnSums = kXAt + kTiles * 64;
constexpr int kPeerProduct = kColumnSums + kCold * 8 * 64, kPeerColdProduct = kPeerProduct + 4096,
              kTailSums = kPeerColdProduct + 2048, kQuadraticSums = kTailSums + 64;
constexpr int kScalars = kQuadraticSums + 256, kCoefficients = kScalars + 64,
              kPeerPivotSums = kCoefficients + 256, kPeerPivot = kPeerPivotSums + 64;
constexpr int kBarriers = kPeerPivot + 16, kSharedBytes = kBarriers + 32;
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

using Output = ReductionOutput<Arguments, kPanel>;
// A thread's two rows: current column entries and diagonal entries; c: rank in the pair; peer:
// address of the peer's shared memory; and the pair's buffers.
struct State {
  float entry[2], diagonal_entry[2];
  int tid, c;
  uint32_t peer;
  const uint4* cold_tiles;
  __half* panel_columns;
};

// Where the thread is, made anew in each step: warp; g, q: lane / 4 and lane % 4, its place in mma
// fragments; row, block_row: the first of the two rows it owns; the other is 512 on.
#define THREAD_PLACE                                                                  \
  CRUCIBLE_OPAQUE_INT(tid_, s.tid);                                                   \
  const int lane = tid_ & 31, warp = tid_ >> 5, g = lane >> 2, q = lane & 3,          \
            block_row = warp + 16 * (q >> 1), row = block_row * 16 + (q & 1) * 8 + g; \
  (void)lane;                                                                         \
  (void)warp;                                                                         \
  (void)g;                                                                            \
  (void)q;                                                                            \
  (void)block_row;                                                                    \
  (void)row
// In shared memory: the first row of V (W is 512 bytes on), and of x.
#define PANEL_ROW (sm + kPanelAt + block_row * 1024 + (q & 1) * 128 + ((g ^ (2 * q)) << 4))
#define X_SLOT \
  (sm + kXAt + block_row * 64 + (((row & 7) >> 1) * 4 + ((row >> 3) & 1) * 2 + (row & 1)) * 2)
// The column at hand.
struct Column {
  int j, i, panel;  // column, its place in the panel that starts at column `panel`
  int next_block;   // block column of j + 1
  uint32_t memory;  // address of shared memory
  bool cold;        // block columns in L2 still count
  __device__ __forceinline__ uint32_t first_barrier() const {
    return memory + kBarriers + (j & 1) * 8;
  }
  __device__ __forceinline__ uint32_t second_barrier() const { return memory + kBarriers + 16; }
};
// The buffer of the panel that starts at column `panel`; the next one goes to the other buffer, so
// that a peer that runs ahead never overwrites a column that is still being read.
__device__ __forceinline__ __half* panel_buffer(const State& s, int panel) {
  return s.panel_columns + ((panel >> 4) & 1) * kPanelBuffer;
}

__device__ __forceinline__ float sum8(const float* p) {
  float4 a = *(const float4*)p, b = *(const float4*)(p + 4);
  return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}
__device__ __forceinline__ float sum16(const float* p) { return sum8(p) + sum8(p + 8); }
__device__ __forceinline__ void put_columns(__half* panel_columns, int I, int g, int q,
                                            const uint32_t* f) {
  __half* p = panel_columns + (2 * q) * kOrder + I * 16 + g;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    __half2 h = *(const __half2*)&f[k];
    __half* d = p + (k >> 1) * 8 * kOrder + (k & 1) * 8;
    d[0] = h.x;
    d[kOrder] = h.y;
  }
}
// Tile (I, J) of the next panel's block column J0, and the first column of the one after it.
__device__ __forceinline__ void publish(__half* panel_columns, int I, int J, int first_block, int g,
                                        int q, const uint32_t* f) {
  if (J == first_block) put_columns(panel_columns, I, g, q, f);
  if (J == first_block + 1 && q == 0) {
    panel_columns[16 * kOrder + I * 16 + g] = ((const __half2*)&f[0])->x;
    panel_columns[16 * kOrder + I * 16 + g + 8] = ((const __half2*)&f[1])->x;
  }
}
}  // namespace crucible::eigh::pair
