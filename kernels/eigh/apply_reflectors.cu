// apply_reflectors.cu: q <- H_0 H_1 ... H_{n-3} q to FP32 accuracy on tensor cores, for n <= 384.
//
// Shapes: v [batch][n][ld] (FP32 for n <= 192, else FP16), q [batch][n][n] row-major, in place.
// Deterministic. v is overwritten.
//
// Sixteen reflectors act together as I - V T V^T (Schreiber & Van Loan 1989). T comes from the V
// that is multiplied, so the product is orthogonal to FP32 accuracy whatever V was rounded to.
// A warp holds sixteen columns of q, transposed, as the accumulators of
//
//   W^T = Z^T V,   S^T = W^T T^T,   Z^T <- Z^T - S^T V^T:
//
// an accumulator is, without a move, the left operand of the next product. Every operand that is no
// half is split into two, x = hi + lo with 22 bits, and hi hi + lo hi + hi lo are summed in FP32.
// Powers of two keep lo from the subnormal halves: q is multiplied by kScale, an FP32 V by 8.
//
// prepare_kernel, a warp a panel of sixteen: writes V's zeros (and splits an FP32 row into ld halves
// hi, then ld halves lo, in place) and makes T. apply_kernel, sixteen columns a warp, panels through
// shared memory by cp.async, the next one meanwhile.
// Cost: 2 n^3 multiply-adds a matrix times 2 (FP16 V) or 3, half of it skipped by the zeros above
// the reflectors.
#include "block_ops.cuh"
#include "launch.h"
#include "sturm_stages.h"
#include "tile_ops.cuh"

namespace crucible::eigh {
namespace {

constexpr int kPanel = 16, kColumns = 16;  // reflectors at a time; columns of q a warp
constexpr int kPrepareWarps = 4, kWarpsMax = 4;
constexpr float kScale = 1024.f;

template <typename Value>
constexpr int kPlanes = 1;  // halves of an entry of V
template <>
constexpr int kPlanes<float> = 2;
template <typename Value>
constexpr float kReflectorScale = 1.f;
template <>
constexpr float kReflectorScale<float> = 8.f;

template <typename Value>
struct Arguments {
  const float* tau;
  Value* v;
  float* q;
  uint4* factor;  // [batch][panels][32 lanes][hi, lo]: T as right operands
  int n, ld;
  __host__ __device__ int panels() const { return (n + kPanel - 1) / kPanel; }
  // Reflector j's halves: ld of hi, then, where there are two planes, ld of lo.
  __device__ __half* halves(int64_t matrix, int j) const {
    return reinterpret_cast<__half*>(v + (matrix * n + j) * ld);
  }
};

// Two values as halves and what is left of them.
__device__ __forceinline__ void split(float x, float y, uint32_t& hi, uint32_t& lo) {
  hi = to_half2(make_float2(x, y));
  const float2 rounded = to_float2(hi);
  lo = to_half2(make_float2(x - rounded.x, y - rounded.y));
}
// Two neighbouring accumulators, 16 x 8 each, as the left operand of 16 x 16.
__device__ __forceinline__ void split_left(const float (&first)[4], const float (&second)[4],
                                           float scale, uint32_t (&hi)[4], uint32_t (&lo)[4]) {
  split(first[0] * scale, first[1] * scale, hi[0], lo[0]);
  split(first[2] * scale, first[3] * scale, hi[1], lo[1]);
  split(second[0] * scale, second[1] * scale, hi[2], lo[2]);
  split(second[2] * scale, second[3] * scale, hi[3], lo[3]);
}

// --- prepare ---

// Zeros where reflectors first .. first + 15 have no entries: rows 0 .. j (from the panel's first
// on: nothing above is read), rows from n on, and all of it where H_j is the identity. Bit k of
// `live` says that reflector first + k is not.
__device__ __forceinline__ void clean(const Arguments<__half>& g, int64_t matrix, int first,
                                      unsigned live) {
  for (int k = 0; k < kPanel && first + k < g.n; ++k) {
    const int j = first + k;
    __half* const row = g.halves(matrix, j);
    for (int r = first + (threadIdx.x & 31); r < g.ld; r += 32) {
      if (!(live >> k & 1) || r <= j || r >= g.n) row[r] = __ushort_as_half(0);
    }
  }
}
__device__ __forceinline__ void clean(const Arguments<float>& g, int64_t matrix, int first,
                                      unsigned live) {
  constexpr int kSlots = (kRegistersMax + 31) / 32, kTogether = 4;  // rows on their way at once
  const int lane = threadIdx.x & 31;
  for (int k = 0; k < kPanel; k += kTogether) {
    float x[kTogether][kSlots];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int j = first + k + i;
      const float* const row = g.v + (matrix * g.n + j) * g.ld;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int r = slot * 32 + lane;
        const bool there = live >> (k + i) & 1 && r > j && r < g.n;
        x[i][slot] = there ? row[r] * kReflectorScale<float> : 0.f;
      }
    }
    __syncwarp();  // every lane has its entries before they are overwritten
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (first + k + i >= g.n) break;
      __half* const halves = g.halves(matrix, first + k + i);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int r = slot * 32 + lane;
        if (r < g.ld) {
          const __half hi = __float2half_rn(x[i][slot]);
          halves[r] = hi;
          halves[g.ld + r] = __float2half_rn(x[i][slot] - __half2float(hi));
        }
      }
    }
  }
}

// The right operand of sixteen rows of V from `row` on (reflectors g and g + 8).
__device__ __forceinline__ void load_global(const __half* low, const __half* high, int row,
                                            uint32_t (&b)[4]) {
  const auto pair = [](const __half* at) {
    return at == nullptr ? 0u : *reinterpret_cast<const uint32_t*>(at);
  };
  b[0] = pair(low == nullptr ? low : low + row);
  b[1] = pair(low == nullptr ? low : low + row + 8);
  b[2] = pair(high == nullptr ? high : high + row);
  b[3] = pair(high == nullptr ? high : high + row + 8);
}
// gram += X^T Y of sixteen rows, both as right operands.
__device__ __forceinline__ void add_gram(float (&gram)[2][4], const uint32_t (&x)[4],
                                         const uint32_t (&y)[4]) {
  const uint32_t left[4] = {x[0], x[2], x[1], x[3]};
  mma(gram[0], left, y[0], y[1]);
  mma(gram[1], left, y[2], y[3]);
}

template <typename Value>
__global__ void __launch_bounds__(32 * kPrepareWarps) prepare_kernel(const Arguments<Value> g) {
  __shared__ float square[kPrepareWarps][kPanel][kPanel + 1];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int panel = blockIdx.x * kPrepareWarps + warp, first = panel * kPanel;
  const int64_t matrix = blockIdx.y;
  if (panel >= g.panels()) return;
  const bool alive =
      lane < kPanel && first + lane < g.n && g.tau[matrix * g.ld + first + lane] != 0.f;
  clean(g, matrix, first, __ballot_sync(kAllLanes, alive));
  __syncwarp();
  const int row_of_lane = lane >> 2, column_of_lane = 2 * (lane & 3);
  const auto reflector = [&](int j) { return j < g.n ? g.halves(matrix, j) : nullptr; };
  const __half* const low = reflector(first + row_of_lane);
  const __half* const high = reflector(first + row_of_lane + 8);
  float gram[2][4] = {};
  for (int row = first; row < g.n; row += 16) {
    uint32_t hi[4];
    load_global(low, high, row + column_of_lane, hi);
    add_gram(gram, hi, hi);
    if constexpr (kPlanes<Value> == 2) {
      uint32_t lo[4];
      load_global(low, high, g.ld + row + column_of_lane, lo);
      add_gram(gram, hi, lo);
      add_gram(gram, lo, hi);
    }
  }
  float(*const s)[kPanel + 1] = square[warp];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    s[row_of_lane + 8 * ((k >> 1) & 1)][column_of_lane + (k & 1) + 8 * (k >> 2)] =
        gram[k >> 2][k & 3] * (1.f / (kReflectorScale<Value> * kReflectorScale<Value>));
  }
  __syncwarp();
  // Lane b follows the unit vector e_b through the sixteen, the last reflector first.
  float column[kPanel];
#pragma unroll
  for (int a = kPanel - 1; a >= 0; --a) {
    float product = a == lane ? 1.f : 0.f;
#pragma unroll
    for (int b = a + 1; b < kPanel; ++b) product = fmaf(-s[a][b], column[b], product);
    column[a] = s[a][a] > 0.f ? 2.f / s[a][a] * product : 0.f;
  }
  __syncwarp();
  if (lane < kPanel) {
#pragma unroll
    for (int a = 0; a < kPanel; ++a) s[a][lane] = column[a];
  }
  __syncwarp();
  uint32_t hi[4], lo[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float* const pair = &s[row_of_lane + 8 * (k >> 1)][column_of_lane + 8 * (k & 1)];
    split(pair[0], pair[1], hi[k], lo[k]);
  }
  uint4* const out = g.factor + ((matrix * g.panels() + panel) * 32 + lane) * 2;
  out[0] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
  out[1] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
}

// --- apply ---

// Copies sixteen bytes to shared memory, or zeros where there is nothing to copy.
__device__ __forceinline__ void copy_async(uint32_t to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

template <int kTiles>
constexpr int kWarps = kTiles < kWarpsMax ? kTiles : kWarpsMax;

// A row of a panel is 16 bytes longer than its halves: ldmatrix then meets no bank twice.
template <int kTiles, typename Value>
struct Panel {
  static constexpr int kRowBytes = kTiles * 32 + 16;
  char bytes[kPlanes<Value>][kPanel][kRowBytes];
};

// Rows from the panel's first tile on; what lies above is not read.
template <int kTiles, typename Value>
__device__ __forceinline__ void fetch(const Arguments<Value>& g, int64_t matrix, int panel,
                                      Panel<kTiles, Value>& to) {
  constexpr int kChunks = kTiles * 2;  // of eight rows
  for (int i = threadIdx.x; i < kPlanes<Value> * kPanel * kChunks; i += kWarps<kTiles> * 32) {
    const int chunk = i % kChunks, k = i / kChunks % kPanel, plane = i / (kChunks * kPanel);
    const int j = panel * kPanel + k;
    // Rows up to ld are there, zeros beyond n; kTiles may reach further.
    const bool present = j < g.n && chunk * 8 < g.ld;
    if (chunk * 8 < panel * kPanel) continue;
    copy_async(shared_address(&to.bytes[plane][k][chunk * 16]),
               g.halves(matrix, present ? j : 0) + (present ? plane * g.ld + chunk * 8 : 0),
               present);
  }
}

template <int kTiles, typename Value>
__global__ void __launch_bounds__(32 * kWarps<kTiles>) apply_kernel(const Arguments<Value> g) {
  using Panel = Panel<kTiles, Value>;
  constexpr bool kTwoPlanes = kPlanes<Value> == 2;
  constexpr float kBack = 1.f / (kReflectorScale<Value> * kReflectorScale<Value>);
  __shared__ __align__(16) Panel panels[2];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n = g.n;
  const int column = (blockIdx.x * kWarps<kTiles> + warp) * kColumns + (lane >> 2);
  const int row_of_lane = 2 * (lane & 3);
  const int64_t matrix = blockIdx.y;
  float* const q = g.q + matrix * n * n;
  int panel = (n - 1) / kPanel;
  fetch<kTiles>(g, matrix, panel, panels[panel & 1]);
  commit_copies();
  // z[t][k]: row 8 t + row_of_lane + k % 2, column + 8 (k / 2).
  float z[2 * kTiles][4];
#pragma unroll
  for (int t = 0; t < 2 * kTiles; ++t) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int r = 8 * t + row_of_lane + (k & 1), c = column + 8 * (k >> 1);
      z[t][k] = r < n && c < n ? q[static_cast<int64_t>(r) * n + c] * kScale : 0.f;
    }
  }
  // What ldmatrix wants of this lane: 8 x 8 blocks in the order (reflectors 0-7, rows 0-7),
  // (0-7, 8-15), (8-15, 0-7), (8-15, 8-15).
  const uint32_t lane_offset =
      ((lane & 7) + (lane >> 4) * 8) * Panel::kRowBytes + ((lane >> 3) & 1) * 16;
  for (; panel >= 0; --panel) {
    const uint4* const factor = g.factor + ((matrix * g.panels() + panel) * 32 + lane) * 2;
    const uint4 t_hi = factor[0], t_lo = factor[1];
    if (panel > 0) fetch<kTiles>(g, matrix, panel - 1, panels[(panel - 1) & 1]);
    commit_copies();
    wait_for_copies<1>();
    __syncthreads();
    const uint32_t tiles = shared_address(&panels[panel & 1]) + lane_offset;
    float w[2][4] = {}, w_rest[2][4] = {};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      if (t >= panel) {
        uint32_t hi[4], lo[4], v[4];
        load_tile(tiles + t * 32, v);
        split_left(z[2 * t], z[2 * t + 1], 1.f, hi, lo);
        mma(w[0], hi, v[0], v[1]);
        mma(w[1], hi, v[2], v[3]);
        mma(w_rest[0], lo, v[0], v[1]);
        mma(w_rest[1], lo, v[2], v[3]);
        if constexpr (kTwoPlanes) {
          load_tile(tiles + sizeof(Panel::bytes[0]) + t * 32, v);
          mma(w_rest[0], hi, v[0], v[1]);
          mma(w_rest[1], hi, v[2], v[3]);
        }
      }
    }
    uint32_t hi[4], lo[4];
#pragma unroll
    for (int k = 0; k < 8; ++k) w[k >> 2][k & 3] += w_rest[k >> 2][k & 3];
    split_left(w[0], w[1], 1.f, hi, lo);
    float s[2][4] = {};
    mma(s[0], lo, t_hi.x, t_hi.y);
    mma(s[1], lo, t_hi.z, t_hi.w);
    mma(s[0], hi, t_lo.x, t_lo.y);
    mma(s[1], hi, t_lo.z, t_lo.w);
    mma(s[0], hi, t_hi.x, t_hi.y);
    mma(s[1], hi, t_hi.z, t_hi.w);
    split_left(s[0], s[1], -kBack, hi, lo);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      if (t >= panel) {
        uint32_t v[4];
        load_tile_transposed(tiles + t * 32, v);
        mma(z[2 * t], hi, v[0], v[1]);
        mma(z[2 * t + 1], hi, v[2], v[3]);
        mma(z[2 * t], lo, v[0], v[1]);
        mma(z[2 * t + 1], lo, v[2], v[3]);
        if constexpr (kTwoPlanes) {
          load_tile_transposed(tiles + sizeof(Panel::bytes[0]) + t * 32, v);
          mma(z[2 * t], hi, v[0], v[1]);
          mma(z[2 * t + 1], hi, v[2], v[3]);
        }
      }
    }
    __syncthreads();  // the panel after the next is copied here
  }
  int order = n;
  asm volatile("" : "+r"(order));  // or the addresses of the loads stay in registers for the stores
#pragma unroll
  for (int t = 0; t < 2 * kTiles; ++t) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int r = 8 * t + row_of_lane + (k & 1), c = column + 8 * (k >> 1);
      if (r < order && c < order) q[static_cast<int64_t>(r) * order + c] = z[t][k] * (1.f / kScale);
    }
  }
}

constexpr size_t kFactorUnits = 64;  // of 16 bytes, a panel

template <int kTiles, typename Value>
cudaError_t launch(const Shape& shape, Arguments<Value> g, cudaStream_t stream) {
  constexpr int kBlockColumns = kWarps<kTiles> * kColumns;
  const unsigned blocks = (shape.n + kBlockColumns - 1) / kBlockColumns;
  const unsigned prepare_blocks = (g.panels() + kPrepareWarps - 1) / kPrepareWarps;
  for (int64_t first = 0; first < shape.batch; first += kGridYMax) {
    const unsigned count = grid_for(shape.batch - first, kGridYMax);
    prepare_kernel<Value><<<dim3(prepare_blocks, count), 32 * kPrepareWarps, 0, stream>>>(g);
    apply_kernel<kTiles, Value><<<dim3(blocks, count), 32 * kWarps<kTiles>, 0, stream>>>(g);
    g.tau += static_cast<int64_t>(count) * g.ld;
    g.v += static_cast<int64_t>(count) * g.n * g.ld;
    g.q += static_cast<int64_t>(count) * g.n * g.n;
    g.factor += static_cast<int64_t>(count) * g.panels() * kFactorUnits;
  }
  return cudaGetLastError();
}

}  // namespace

size_t apply_reflectors_bytes(const Shape& shape) {
  const size_t panels = (shape.n + kPanel - 1) / kPanel;
  return aligned(shape.batch * panels * kFactorUnits * sizeof(uint4));
}

cudaError_t apply_reflectors(const Shape& shape, const float* tau, float* v, float* q,
                             void* workspace, cudaStream_t stream) {
  const Arguments<float> g{tau, v, q, static_cast<uint4*>(workspace), shape.n, shape.ld()};
  if (shape.n <= 64) return launch<4>(shape, g, stream);
  if (shape.n <= 96) return launch<6>(shape, g, stream);
  if (shape.n <= 128) return launch<8>(shape, g, stream);
  if (shape.n <= 176) return launch<11>(shape, g, stream);
  return launch<12>(shape, g, stream);
}

cudaError_t apply_reflectors(const Shape& shape, const float* tau, __half* v, float* q,
                             void* workspace, cudaStream_t stream) {
  const Arguments<__half> g{tau, v, q, static_cast<uint4*>(workspace), shape.n, shape.ld()};
  if (shape.n <= 256) return launch<16>(shape, g, stream);
  if (shape.n <= 352) return launch<22>(shape, g, stream);
  return launch<24>(shape, g, stream);
}

}  // namespace crucible::eigh
