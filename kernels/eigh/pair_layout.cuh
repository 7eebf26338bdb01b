// pair_layout.cuh: shared memory, buffers and per-thread state of the two-block reduction.
//
// See reduce_two_blocks.cu for the algorithm. Tile (I, J) is in block (I - J) mod 2 of the pair.
#pragma once

#include "block_ops.cuh"
#include "cluster_ops.cuh"
#include "reduction_output.cuh"
#include "tile_ops.cuh"

namespace crucible::eigh::pair {

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

using Output = ReductionOutput<Arguments, kPanel>;
// A thread's two rows: current column entries and diagonal entries; c: rank in the pair.
struct State {
  float av[2], dg[2];
  int tid, c;
  uint32_t peer;
  const uint4* gt;
  __half* pb;
};
#define SEC                                                                                        \
  CRUCIBLE_OPAQUE_INT(tid_, s.tid);                                                                \
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
// The column at hand.
struct Column {
  int j, i, panel;  // column, its place in the panel that starts at column `panel`
  int next_tile;    // block column of j + 1
  uint32_t memory;  // address of shared memory
  bool cold;        // block columns in L2 still count
  __device__ __forceinline__ uint32_t first_barrier() const { return memory + oMB + (j & 1) * 8; }
  __device__ __forceinline__ uint32_t second_barrier() const { return memory + oMB + 16; }
};
// The buffer of the panel that starts at column `panel`; the next one goes to the other buffer, so
// that a peer that runs ahead never overwrites a column that is still being read.
__device__ __forceinline__ __half* panel_buffer(const State& s, int panel) {
  return s.pb + ((panel >> 4) & 1) * kPanelBuffer;
}

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
}  // namespace crucible::eigh::pair
