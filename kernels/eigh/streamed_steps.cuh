// streamed_steps.cuh: the steps of a column of the streamed reduction and what its blocks share.
//
// See reduce_streamed.cu for the algorithm. Blocks of a group meet at rendezvous(); everything they
// exchange is written with st.cg before it and read with ld.cg after it.
#pragma once

#include "block_ops.cuh"
#include "reduce_routes.h"
#include "tile_ops.cuh"

namespace crucible::eigh::streamed {

constexpr int kGroup = 16, kThreads = 512, kPanel = 32, kPaddedMax = 2048;
constexpr int kOwnRows = kPaddedMax / kGroup;  // 128: eight block rows, one thread a row
constexpr float kTailSquared = 3.6e-15f;       // see reduce_one_block.cu
constexpr int kPublished = 2 * kPanel + 2;     // a block's part: V^T x, W^T x, x^T A x, y_{j+1}

// The last kHeldWidth block rows and columns of the trailing matrix are held on chip: a block has
// at most kHeldRows of those rows.
constexpr int kHeldWidth = 72, kHeldRows = (kHeldWidth + kGroup - 1) / kGroup;

// What a group shares, in the workspace.
struct Shared {
  uint4* tiles;       // [T][T][32 lanes], T = padded / 16; the held ones are not used
  __half* panel;      // [T][4][32 lanes][8]: V (k 0-15, 16-31), W (same), fragment order
  float* x;           // [padded]
  float* norm;        // [kGroup]
  float* pivot;       // row j+1 of V and W, then its diagonal entry
  float* partial;     // [kGroup][kPublished]
  unsigned* arrived;  // barrier counter, zero at launch
};

struct Arguments {
  const float* a;
  const int *exponent, *status;
  Tridiagonal t;  // t.v null: eigenvalues only
  Shared first;   // of group 0; the others at the strides below
  int64_t batch;
  int n, ld, padded, groups;
  bool upper;
};

struct alignas(16) Panel {  // shared memory of a block
  float v[kOwnRows][kPanel + 1], w[kOwnRows][kPanel + 1];
  char x[kPaddedMax / 16 * 64];
  float y[kThreads / 32][16], own_x[kOwnRows];
  float dots[2 * kPanel], coefficient[2 * kPanel];  // V^T u, then W^T u; u = x - beta e1
  float pivot[2 * kPanel + 1];
  float sums[kPublished], warp[4], norm[kGroup], scratch[32];
};
constexpr int kSharedBytes = sizeof(Panel) + kHeldRows * kHeldWidth * 512;  // the held tiles behind
static_assert(kSharedBytes <= 232448, "shared memory");

// All blocks of a group; `target` counts arrivals. Data is read with ld.cg afterwards.
__device__ __forceinline__ void rendezvous(unsigned* arrived, unsigned* target) {
  *target += kGroup;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
    } while (static_cast<int>(seen - *target) < 0);
    __threadfence();
  }
  __syncthreads();
}

// Where element (row, k) of a 16-row, 16-wide block sits in fragment order, in halves.
__device__ __forceinline__ int fragment_at(int row, int k) {
  const int lane = (row & 7) * 4 + ((k & 7) >> 1), word = ((row >> 3) & 1) + 2 * (k >> 3);
  return lane * 8 + word * 2 + (k & 1);
}

struct Block {
  Shared g;
  Panel* s;
  uint4* held;           // [kHeldRows][kHeldWidth][32 lanes], in shared memory
  int rank, tiles, own;  // own: this thread's row among the block's, -1 without one
  int row;               // the same in padded coordinates
  unsigned target;

  // Tiles (I, J) with I, J >= held_from() are on chip.
  __device__ __forceinline__ int held_from() const { return max(0, tiles - kHeldWidth); }
  __device__ __forceinline__ bool holds(int I, int J) const { return min(I, J) >= held_from(); }
  // Tile (I, J) of an own block row I: where it is held, and where it is otherwise.
  __device__ __forceinline__ uint4* held_tile(int I, int J) const {
    const int first = (held_from() - rank + kGroup - 1) / kGroup;  // own block row, the first held
    return held + (((I - rank) / kGroup - first) * kHeldWidth + J - held_from()) * 32;
  }
  __device__ __forceinline__ uint4* far_tile(int I, int J) const {
    return g.tiles + (static_cast<int64_t>(I) * tiles + J) * 32;
  }
  __device__ __forceinline__ uint4 load(int I, int J, int lane) const {
    return holds(I, J) ? held_tile(I, J)[lane] : __ldcg(far_tile(I, J) + lane);
  }
  __device__ __forceinline__ void store(int I, int J, int lane, uint4 f) const {
    if (holds(I, J)) {
      held_tile(I, J)[lane] = f;
    } else {
      __stcg(far_tile(I, J) + lane, f);
    }
  }
  // Entry (row, column) of the thread's row, as of the last update.
  __device__ __forceinline__ float entry(int column) const {
    const int I = row >> 4, J = column >> 4, at = fragment_at(row & 15, column & 15);
    unsigned short bits;
    if (holds(I, J)) {
      bits = reinterpret_cast<const unsigned short*>(held_tile(I, J))[at];
    } else {
      bits = __ldcg(reinterpret_cast<const unsigned short*>(far_tile(I, J)) + at);
    }
    return __half2float(__ushort_as_half(bits));
  }
};

__device__ void load_input(const Block& b, const PaddedInput& in) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, q = lane & 3;
  for (int I = b.rank; I < b.tiles; I += kGroup) {
    for (int J = warp; J < b.tiles; J += kThreads / 32) {
      float2 v[4];
      if (I >= J) {
        in.tile(I, J, g, q, v);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int r = I * 16 + g + 8 * (k & 1), c = J * 16 + 2 * q + 8 * (k >> 1);
          v[k] = make_float2(in.at(r, c), in.at(r, c + 1));
        }
      }
      clear_diagonal(v, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
      b.store(I, J, lane,
              make_uint4(to_half2(v[0]), to_half2(v[1]), to_half2(v[2]), to_half2(v[3])));
    }
  }
}

// How the 16 warps share the block rows that still count: `split` warps a row.
struct Share {
  int first, split;  // first own block row (among the block's eight) at or below the pivot
};
__device__ __forceinline__ Share share_of(const Block& b, int first_tile) {
  const int first = max(0, (first_tile - b.rank + kGroup - 1) / kGroup);
  const int rows = (b.tiles - b.rank + kGroup - 1) / kGroup - first;
  return {first, rows > 4 ? 2 : (rows > 2 ? 4 : (rows > 1 ? 8 : 16))};
}

// acc += tiles J, J + step, ... below `end` of a block row, kFlight of them in flight; load(J)
// gives a tile, xs is the address of x.
template <int kFlight, typename Load>
__device__ __forceinline__ void multiply_run(float (&acc)[2][4], int J, int end, int step,
                                             uint32_t xs, const Load& load) {
  for (; J < end; J += step * kFlight) {
    uint4 f[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      f[k] = J + step * k < end ? load(J + step * k) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      if (J + step * k < end) {
        const uint2 x = load_shared_64(xs + (J + step * k) * 64);
        const uint32_t a[4] = {f[k].x, f[k].y, f[k].z, f[k].w};
        mma(acc[k & 1], a, x.x, x.y);
      }
    }
  }
}

// s->y[warp] = that warp's part of A x for its 16 rows: first the tiles in L2, then those held.
__device__ __forceinline__ void multiply(const Block& b, int first_tile) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, q = lane & 3;
  const Share share = share_of(b, first_tile);
  const int I = b.rank + kGroup * (share.first + warp / share.split), step = share.split;
  if (I >= b.tiles) return;
  float acc[2][4] = {};
  const uint32_t xs = shared_address(b.s->x) + (g & 1) * 32 + q * 8;
  const int first = first_tile + warp % step, from = I < b.held_from() ? b.tiles : b.held_from();
  const uint4* far = b.far_tile(I, 0) + lane;
  multiply_run<8>(acc, first, from, step, xs, [&](int at) { return __ldcg(far + at * 32); });
  if (from < b.tiles) {
    // step is a power of two: the first of this warp's block columns that is held.
    const int J = first < from ? from + ((first - from) & (step - 1)) : first;
    const uint4* held = b.held_tile(I, from) + lane;
    multiply_run<4>(acc, J, b.tiles, step, xs, [&](int at) { return held[(at - from) * 32]; });
  }
  if (q == 0) {
    b.s->y[warp][g] = join_x(acc[0][0] + acc[1][0], acc[0][1] + acc[1][1]);
    b.s->y[warp][g + 8] = join_x(acc[0][2] + acc[1][2], acc[0][3] + acc[1][3]);
  }
}

// s->dots[k] = this block's part of V^T x (k < kPanel) and W^T x: eight lanes an output.
__device__ __forceinline__ void partial_dots(const Block& b) {
  const int output = threadIdx.x >> 3, part = threadIdx.x & 7, k = output & (kPanel - 1);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kOwnRows / 8; ++i) {
    const int row = i * 8 + part;
    sum = fmaf(output < kPanel ? b.s->v[row][k] : b.s->w[row][k], b.s->own_x[row], sum);
  }
#pragma unroll
  for (int offset = 4; offset > 0; offset >>= 1) sum += __shfl_xor_sync(kAllLanes, sum, offset);
  if (part == 0) b.s->dots[output] = sum;
}

// A -= V W^T + W V^T on the block's tiles from block row and column `first_tile` on.
__device__ void update_trailing(const Block& b, int first_tile) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, q = lane & 3;
  const int I = b.rank + kGroup * (warp >> 1);
  if (I >= b.tiles || I < first_tile) return;
  const uint4* panel = reinterpret_cast<const uint4*>(b.g.panel) + lane;
  uint4 own[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) own[k] = __ldcg(panel + (I * 4 + k) * 32);
  for (int J = first_tile + (warp & 1); J < b.tiles; J += 2) {
    const uint4 f = b.load(I, J, lane);
    uint4 other[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) other[k] = __ldcg(panel + (J * 4 + k) * 32);
    const float2 x0 = to_float2(f.x), x1 = to_float2(f.y), x2 = to_float2(f.z), x3 = to_float2(f.w);
    float left[4] = {-x0.x, -x0.y, -x1.x, -x1.y}, right[4] = {-x2.x, -x2.y, -x3.x, -x3.y};
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // V_I with W_J, then W_I with V_J
      const uint32_t a[4] = {own[k].x, own[k].y, own[k].z, own[k].w};
      const uint4 o = other[(k + 2) & 3];
      mma(left, a, o.x, o.z);
      mma(right, a, o.y, o.w);
    }
    float2 out[4] = {
        {-left[0], -left[1]}, {-left[2], -left[3]}, {-right[0], -right[1]}, {-right[2], -right[3]}};
    clear_diagonal(out, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
    b.store(I, J, lane,
            make_uint4(to_half2(out[0]), to_half2(out[1]), to_half2(out[2]), to_half2(out[3])));
  }
}

struct Reflector {
  float alpha, beta, scale, inverse;  // w = scale (A u) + ..., v = x * inverse, u = x - beta e1
};

// Step 1: own rows of x and what else the group needs of them.
__device__ __forceinline__ void publish_column(Block& b, int j, int i, float av, float dg) {
  float tail = 0;
  if (b.own >= 0) {
    const float x = b.row > j ? av : 0.f;
    b.s->own_x[b.own] = x;
    __stcg(b.g.x + b.row, x);
    tail = b.row > j + 1 ? x * x : 0.f;
    if (b.row == j + 1) __stcg(b.g.pivot + 2 * kPanel, dg);
  }
  tail = block_sum(tail, b.s->scratch);
  if (threadIdx.x == 0) __stcg(b.g.norm + b.rank, tail);
  const int block_row = (j + 1) >> 4, k = threadIdx.x & (kPanel - 1);
  if (block_row % kGroup == b.rank && threadIdx.x < 2 * kPanel) {  // the owner of row j+1
    const int own = block_row / kGroup * 16 + ((j + 1) & 15);
    const float entry = threadIdx.x < kPanel ? b.s->v[own][k] : b.s->w[own][k];
    __stcg(b.g.pivot + threadIdx.x, k < i ? entry : 0.f);
  }
}

// Step 2's input: x as halves, the pivot row, the reflector from the summed norm.
__device__ __forceinline__ Reflector receive_column(Block& b, int j, int padded) {
  Panel* s = b.s;
  constexpr int kRounds = kPaddedMax / kThreads;
  const int first = (j + 1) / 16 * 16 + threadIdx.x;
  float x[kRounds];
#pragma unroll
  for (int z = 0; z < kRounds; ++z) {
    const int r = first + z * kThreads;
    x[z] = r < padded && r > j ? __ldcg(b.g.x + r) : 0.f;
  }
#pragma unroll
  for (int z = 0; z < kRounds; ++z) {
    const int r = first + z * kThreads, e = r & 15;
    char* at = s->x + (r >> 4) * 64 + (((e & 7) >> 1) * 4 + (e >> 3) * 2 + (e & 1)) * 2;
    if (r < padded) store_x(at, x[z]);
  }
  if (threadIdx.x < 2 * kPanel + 1) s->pivot[threadIdx.x] = __ldcg(b.g.pivot + threadIdx.x);
  if (threadIdx.x >= 96 && threadIdx.x < 96 + kGroup) {
    s->norm[threadIdx.x - 96] = __ldcg(b.g.norm + threadIdx.x - 96);
  }
  Reflector h;
  h.alpha = __ldcg(b.g.x + j + 1);
  __syncthreads();
  float tail = 0;
#pragma unroll
  for (int k = 0; k < kGroup; ++k) tail += s->norm[k];
  const float norm = sqrtf(fmaf(h.alpha, h.alpha, tail));
  const bool live = tail > kTailSquared;
  h.beta = live ? -copysignf(norm, h.alpha) : h.alpha;
  h.scale = live ? -1.f / h.beta : 0.f;
  h.inverse = live ? 1.f / (h.alpha - h.beta) : 0.f;
  return h;
}

// Step 2: the products over own rows, published. Returns y of the own row.
__device__ __forceinline__ float multiply_and_publish(Block& b, int j, float dg) {
  Panel* s = b.s;
  multiply(b, (j + 1) >> 4);
  partial_dots(b);
  __syncthreads();
  float y = 0, product = 0;
  if (b.own >= 0 && b.row > j) {
    const float x = s->own_x[b.own];
    const Share share = share_of(b, (j + 1) >> 4);
    const int slot = ((b.own >> 4) - share.first) * share.split;
    for (int k = 0; k < share.split; ++k) y += s->y[slot + k][b.own & 15];
    y = fmaf(dg, x, y);
    product = x * y;
    if (b.row == j + 1) __stcg(b.g.partial + b.rank * kPublished + 2 * kPanel + 1, y);
  }
  if (threadIdx.x < kOwnRows) {
    product = warp_sum(product);
    if ((threadIdx.x & 31) == 0) s->warp[threadIdx.x >> 5] = product;
  }
  __syncthreads();
  float* out = b.g.partial + b.rank * kPublished;
  if (threadIdx.x < 2 * kPanel) __stcg(out + threadIdx.x, s->dots[threadIdx.x]);
  if (threadIdx.x == 2 * kPanel) {
    __stcg(out + 2 * kPanel, (s->warp[0] + s->warp[1]) + (s->warp[2] + s->warp[3]));
  }
  return y;
}

// Step 3, before the rows: sums over the group, then the coefficients of the panel's corrections.
__device__ __forceinline__ void sum_published(Block& b, int j, int i, float beta) {
  Panel* s = b.s;
  const int k = threadIdx.x, owner = ((j + 1) >> 4) % kGroup;
  if (k < kPublished) {
    float sum = 0;
    if (k == kPublished - 1) {
      sum = __ldcg(b.g.partial + owner * kPublished + k);
    } else {
      float part[kGroup];
#pragma unroll
      for (int c = 0; c < kGroup; ++c) part[c] = __ldcg(b.g.partial + c * kPublished + k);
#pragma unroll
      for (int c = 0; c < kGroup; ++c) sum += part[c];
    }
    s->sums[k] = sum;
    if (k < 2 * kPanel) {
      s->coefficient[k] = (k & (kPanel - 1)) < i ? sum - beta * s->pivot[k] : 0.f;
    }
  }
  __syncthreads();
}

}  // namespace crucible::eigh::streamed
