// reduce_streamed.cu: tridiagonal reduction for 1024 < n <= 2048, sixteen blocks a matrix.
//
// Shapes: a [batch][n][n] -> Tridiagonal of stages.h; padded in front with zeros to a multiple of
// 32. Deterministic: fixed owners, fixed orders of summation. A cooperative launch, because the
// blocks of a group wait for each other; groups take matrices g, g + groups, ...
//
// Layout. The trailing matrix is a full square of FP16 16x16 tiles in mma fragment order in the
// workspace (8 MB a matrix at 2048, mostly L2), its diagonal apart in FP32 registers. Block row I
// belongs to block I mod 16 of the group, which so computes its rows of A x alone: nothing of a
// product crosses blocks. The full square costs twice the triangle's bytes and saves an exchange.
//
// Column j takes two rendezvous through flags in L2. Step 1: publish x (own rows), the partial
// norm, and the pivot row of the panel [V W]. Step 2: A x by mma; V^T x, W^T x and x^T A x over own
// rows, published. Step 3: as in reduce_one_block.cu. Every 32 columns one more rendezvous, then
// A -= V W^T + W V^T on own tiles.
// Cost at 2048: 2/3 n^3 bytes from L2 a matrix, about 3 us of latency a column.
#include <algorithm>

#include "block_ops.cuh"
#include "launch.h"
#include "reduce_routes.h"
#include "tile_ops.cuh"

namespace crucible::eigh {
namespace {

constexpr int kGroup = 16, kThreads = 512, kPanel = 32, kPaddedMax = 2048;
constexpr int kOwnRows = kPaddedMax / kGroup;  // 128: eight block rows, one thread a row
constexpr float kTailSquared = 3.6e-15f;       // see reduce_one_block.cu
constexpr int kPublished = 2 * kPanel + 2;     // a block's part: V^T x, W^T x, x^T A x, y_{j+1}

// What a group shares, in the workspace.
struct Shared {
  uint4* tiles;       // [T][T][32 lanes], T = padded / 16
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

struct Panel {  // shared memory of a block
  float v[kOwnRows][kPanel + 1], w[kOwnRows][kPanel + 1];
  char x[kPaddedMax / 16 * 64];
  float y[kThreads / 32][16], own_x[kOwnRows];
  float dots[2 * kPanel], coefficient[2 * kPanel];  // V^T u, then W^T u; u = x - beta e1
  float pivot[2 * kPanel + 1];
  float sums[kPublished], warp[4], norm[kGroup], scratch[32];
};

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
  int rank, tiles, own;  // own: this thread's row among the block's, -1 without one
  int row;               // the same in padded coordinates
  unsigned target;
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
      __stcg(b.g.tiles + (static_cast<int64_t>(I) * b.tiles + J) * 32 + lane,
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

// s->y[warp] = that warp's part of A x for its 16 rows.
__device__ __forceinline__ void multiply(const Block& b, int first_tile) {
  constexpr int kFlight = 8;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, q = lane & 3;
  const Share share = share_of(b, first_tile);
  const int I = b.rank + kGroup * (share.first + warp / share.split), step = share.split;
  if (I >= b.tiles) return;
  float acc[2][4] = {};
  const uint32_t xs = shared_address(b.s->x) + (g & 1) * 32 + q * 8;
  const uint4* row = b.g.tiles + static_cast<int64_t>(I) * b.tiles * 32 + lane;
  for (int J = first_tile + warp % step; J < b.tiles; J += step * kFlight) {
    uint4 f[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      f[k] = J + step * k < b.tiles ? __ldcg(row + (J + step * k) * 32) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < kFlight; ++k) {
      if (J + step * k < b.tiles) {
        const uint2 x = load_shared_64(xs + (J + step * k) * 64);
        const uint32_t a[4] = {f[k].x, f[k].y, f[k].z, f[k].w};
        mma(acc[k & 1], a, x.x, x.y);
      }
    }
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
    uint4* at = b.g.tiles + (static_cast<int64_t>(I) * b.tiles + J) * 32 + lane;
    const uint4 f = __ldcg(at);
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
    __stcg(at, make_uint4(to_half2(out[0]), to_half2(out[1]), to_half2(out[2]), to_half2(out[3])));
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

// Reduces one matrix.
__device__ void reduce_matrix(const Arguments& args, Block& b, int64_t matrix) {
  const PaddedInput in{args.a + matrix * args.n * args.n,
                       args.n,
                       args.padded - args.n,
                       args.exponent[matrix],
                       args.upper,
                       args.status[matrix] != 0};
  Panel* s = b.s;
  const int padded = args.padded, shift = padded - args.n;
  float* d = args.t.d + matrix * args.ld;
  float* e = args.t.e + matrix * args.ld;
  float* tau = args.t.tau + matrix * args.ld;
  __half* v_out = args.t.v == nullptr ? nullptr : args.t.v + matrix * args.n * args.ld;
  load_input(b, in);
  float dg = b.own >= 0 ? in.at(b.row, b.row) : 0.f;
  float av = b.own >= 0 ? in.at(b.row, 0) : 0.f;  // column 0; its rounding is the tiles'
  if (b.row > 0) av = __half2float(__float2half_rn(av));
  if (b.own >= 0 && b.row == 0 && shift == 0) d[0] = dg;
  rendezvous(b.g.arrived, &b.target);
  for (int j = 0; j < padded - 1; ++j) {
    const int i = j % kPanel;
    publish_column(b, j, i, av, dg);
    rendezvous(b.g.arrived, &b.target);
    const Reflector h = receive_column(b, j, padded);
    float ac = 0;
    if (b.own >= 0 && b.row > j + 1) {
      const int64_t tile = static_cast<int64_t>(b.row >> 4) * b.tiles + ((j + 1) >> 4);
      const __half* at = reinterpret_cast<const __half*>(b.g.tiles + tile * 32);
      const unsigned short bits = __ldcg(reinterpret_cast<const unsigned short*>(at) +
                                         fragment_at(b.row & 15, (j + 1) & 15));
      ac = __half2float(__ushort_as_half(bits));
    } else if (b.own >= 0 && b.row == j + 1) {
      ac = dg;
    }
    const float y = multiply_and_publish(b, j, dg);
    rendezvous(b.g.arrived, &b.target);
    sum_published(b, j, i, h.beta);
    const float dj = s->pivot[2 * kPanel], y1 = s->sums[2 * kPanel + 1];
    if (b.own >= 0 && b.row > j) {
      float s1 = 0, s2 = 0, t1 = 0, t2 = 0;
      // Beyond column i the coefficients and the pivot row are zero.
#pragma unroll 8
      for (int k = 0; k < kPanel; ++k) {
        const float cv = s->coefficient[k], cw = s->coefficient[kPanel + k];
        const float v = s->v[b.own][k], w = s->w[b.own][k];
        const float pv = s->pivot[k], pw = s->pivot[kPanel + k];
        s1 = fmaf(v, cw, fmaf(w, cv, s1));
        s2 = fmaf(v, pw, fmaf(w, pv, s2));
        t1 = fmaf(pv, cw, fmaf(pw, cv, t1));
        t2 = fmaf(cv, cw, t2);
      }
      const float p1 = y1 - h.beta * dj - t1;
      const float pu = s->sums[2 * kPanel] - 2.f * h.beta * y1 + h.beta * h.beta * dj - 2.f * t2;
      const float al2 = -0.5f * h.scale * h.scale * pu;
      const float w1 = __half2float(__float2half_rn(fmaf(h.scale, p1, al2)));
      const float p = y - h.beta * ac - s1;
      const float v = b.row == j + 1 ? 1.f : av * h.inverse;
      const __half vh = __float2half_rn(v), wh = __float2half_rn(fmaf(h.scale, p, al2 * v));
      const float vf = __half2float(vh), wf = __half2float(wh);
      s->v[b.own][i] = vf;
      s->w[b.own][i] = wf;
      __half* tile = b.g.panel + static_cast<int64_t>(b.row >> 4) * 4 * 256;
      const int at = fragment_at(b.row & 15, i & 15);
      tile[(i >> 4) * 256 + at] = vh;
      tile[(2 + (i >> 4)) * 256 + at] = wh;
      av = ac - s2 - (vf * w1 + wf);
      if (j >= shift) {
        if (v_out != nullptr) {
          v_out[static_cast<int64_t>(j - shift) * args.ld + b.row - shift] =
              h.scale == 0.f ? __half(0.f) : vh;
        }
        if (b.row == j + 1) {
          e[j - shift] = h.beta;
          tau[j - shift] = h.scale == 0.f ? 0.f : 1.f - h.alpha / h.beta;
        }
      }
      if (b.row == j + 1 && i < kPanel - 1 && j + 1 >= shift) d[j + 1 - shift] = av;
    }
    if (i == kPanel - 1) {
      if (b.own >= 0 && b.row > j) {
        float sum = 0;
        for (int k = 0; k < kPanel; ++k) sum = fmaf(s->v[b.own][k], s->w[b.own][k], sum);
        dg -= 2.f * sum;
      }
      rendezvous(b.g.arrived, &b.target);
      update_trailing(b, (j + 1) >> 4);
      __syncthreads();
      if (b.own >= 0 && b.row > j + 1) {
        const int64_t tile = static_cast<int64_t>(b.row >> 4) * b.tiles + ((j + 1) >> 4);
        const __half* at = reinterpret_cast<const __half*>(b.g.tiles + tile * 32);
        av = __half2float(__ushort_as_half(__ldcg(reinterpret_cast<const unsigned short*>(at) +
                                                  fragment_at(b.row & 15, (j + 1) & 15))));
      } else if (b.own >= 0 && b.row == j + 1) {
        av = dg;
        if (j + 1 >= shift) d[j + 1 - shift] = dg;
      }
    }
  }
}

constexpr size_t tile_count(int padded) { return static_cast<size_t>(padded / 16) * (padded / 16); }

__global__ void __launch_bounds__(kThreads, 1)
    reduce_streamed_kernel(const __grid_constant__ Arguments args) {
  extern __shared__ __align__(128) char memory[];
  Block b;
  b.s = reinterpret_cast<Panel*>(memory);
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(Panel) / 4); i += kThreads) {
    reinterpret_cast<uint32_t*>(memory)[i] = 0;
  }
  __syncthreads();
  const int group = blockIdx.x / kGroup;
  b.rank = blockIdx.x % kGroup;
  b.tiles = args.padded / 16;
  b.target = 0;
  b.g = args.first;
  b.g.tiles += group * static_cast<int64_t>(b.tiles) * b.tiles * 32;
  b.g.panel += group * static_cast<int64_t>(b.tiles) * 4 * 256;
  b.g.x += static_cast<int64_t>(group) * args.padded;
  b.g.norm += group * 64;
  b.g.pivot += group * 128;
  b.g.partial += group * 2048;
  b.g.arrived += group * 64;
  const int block_row = b.rank + kGroup * (static_cast<int>(threadIdx.x) >> 4);
  b.own = threadIdx.x < kOwnRows && block_row < b.tiles ? static_cast<int>(threadIdx.x) : -1;
  b.row = b.own >= 0 ? block_row * 16 + (b.own & 15) : -1;
  for (int64_t matrix = group; matrix < args.batch; matrix += args.groups) {
    reduce_matrix(args, b, matrix);
    rendezvous(b.g.arrived, &b.target);
  }
}

int groups_for(int64_t batch) {
  constexpr int kResidentGroups = 8;  // 128 of at least 132 multiprocessors, one block each
  return static_cast<int>(std::min<int64_t>(batch, kResidentGroups));
}
int padded_for(int n) { return (n + kPanel - 1) / kPanel * kPanel; }

Shared carve(const Shape& shape, void* workspace, size_t* bytes) {
  const int groups = groups_for(shape.batch), padded = padded_for(shape.n);
  Carver carver(workspace);
  Shared g;
  g.arrived = carver.take<unsigned>(groups * 64);
  g.tiles = carver.take<uint4>(groups * tile_count(padded) * 32);
  g.panel = carver.take<__half>(static_cast<size_t>(groups) * (padded / 16) * 4 * 256);
  g.x = carver.take<float>(static_cast<size_t>(groups) * padded);
  g.norm = carver.take<float>(groups * 64);
  g.pivot = carver.take<float>(groups * 128);
  g.partial = carver.take<float>(groups * 2048);
  *bytes = carver.used();
  return g;
}

}  // namespace

size_t reduce_streamed_bytes(const Shape& shape) {
  size_t bytes = 0;
  carve(shape, nullptr, &bytes);
  return bytes;
}

cudaError_t reduce_streamed(const Shape& shape, const float* a, bool upper,
                            const int* scale_exponent, const int* status, const Tridiagonal& t,
                            void* workspace, cudaStream_t stream) {
  static_assert(kGroup * kPublished <= 2048 && 2 * kPanel + 1 <= 128, "strides of the exchange");
  size_t bytes = 0;
  Arguments args{a,
                 scale_exponent,
                 status,
                 t,
                 carve(shape, workspace, &bytes),
                 shape.batch,
                 shape.n,
                 shape.ld(),
                 padded_for(shape.n),
                 groups_for(shape.batch),
                 upper};
  if (!shape.vectors) args.t.v = nullptr;
  cudaError_t error = cudaMemsetAsync(args.first.arrived, 0, args.groups * 64 * 4, stream);
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(reduce_streamed_kernel,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Panel));
  }
  if (error != cudaSuccess) return error;
  void* parameters[] = {&args};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(reduce_streamed_kernel),
                                     dim3(args.groups * kGroup), dim3(kThreads), parameters,
                                     sizeof(Panel), stream);
}

}  // namespace crucible::eigh
