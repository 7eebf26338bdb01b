// reduce_registers.cu: tridiagonal reduction for n <= 192 in FP32, one block a matrix.
//
// Shapes: a [batch][n][n] -> TridiagonalF32 of sturm_stages.h, with the scale exponent and the
// status of every matrix. Deterministic. One read of the input; NaN/Inf counts as zero here.
//
// Layout. The whole square stays in registers: warp w holds rows w, w + warps, ..., lane l columns
// l, l + 32, ... of each, so the part that still counts stays spread over all warps. Thread r < n
// also owns row r of the vectors. Column j costs two barriers, as in reduce_one_block.cu:
//   1. publish v, w of the last column and x, this column below the diagonal.
//   2. in one pass A -= v w^T + w v^T and y = A x (by columns: A is symmetric), x^T A x, |x|^2.
//   3. with u = x - beta e1 = (alpha - beta) v: A u = y - beta a_{j+1}, so w and the next column
//      follow without another sum over the block.
// Cost: n^3 multiply-adds, about 0.5 us of latency a column.
#include "block_ops.cuh"
#include "launch.h"
#include "sturm_stages.h"

namespace crucible::eigh {
namespace {

// Below this the squared tail of a column (max|A| in [0.5, 1)) counts as zero: 1e-15 against 1.
constexpr float kTailSquared = 1e-30f;

struct Arguments {
  const float* a;
  TridiagonalF32 t;
  int *exponent, *status;
  int64_t batch;
  int n, ld;
  bool upper, vectors;
};

template <int kWarps, int kRowSlots, int kColumnSlots>
struct Memory {
  static constexpr int kOrder = 32 * kColumnSlots;
  float4 row[kWarps * kRowSlots > kOrder ? kWarps* kRowSlots : kOrder];  // v, w, x of a row
  float partial[kWarps][kOrder];                                         // of y, by warp
  float column[kWarps * kRowSlots];                                      // column j+1 of A
  alignas(16) float product[kWarps], lead[kWarps];  // partial sums of x^T A x and y_{j+1}, by warp
  uint32_t scratch[32];
};

struct Reflection {
  float beta, inverse, tau;  // v = x * inverse below its leading 1
};

__device__ __forceinline__ Reflection reflection_of(float alpha, float tail) {
  if (!(tail > kTailSquared)) return {alpha, 0.f, 0.f};
  const float beta = -copysignf(sqrtf(fmaf(alpha, alpha, tail)), alpha);
  return {beta, __fdividef(1.f, alpha - beta), __fdividef(beta - alpha, beta)};
}

// The sum of the first kCount (a multiple of four) entries of a shared vector.
template <int kCount>
__device__ __forceinline__ float sum_of(const float* from) {
  float4 sums = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
  for (int k = 0; k < kCount; k += 4) {
    const float4 f = *reinterpret_cast<const float4*>(from + k);
    sums.x += f.x, sums.y += f.y, sums.z += f.z, sums.w += f.w;
  }
  return (sums.x + sums.y) + (sums.z + sums.w);
}

// A thread's part of one matrix: its entries of the square and its row of the vectors.
template <int kRowSlots, int kColumnSlots>
struct Part {
  float a[kRowSlots][kColumnSlots];
  float x, v, w;  // column j below the diagonal; the last column's v and w
};

// Where the columns of one matrix go.
struct Output {
  float *d, *e, *tau, *v;  // v null: eigenvalues only
  int n, ld;
};

// Columns 32 kPhase .. end-1: row and column slots before the phase are reduced, so that every loop
// is unrolled over what counts.
template <int kPhase, int kWarps, int kRowSlots, int kColumnSlots>
__device__ __forceinline__ void columns(Memory<kWarps, kRowSlots, kColumnSlots>& s,
                                        Part<kRowSlots, kColumnSlots>& t, const Output& out) {
  constexpr int kFirstRow = kPhase * 32 / kWarps;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, r = threadIdx.x, n = out.n;
  const bool row_warp = warp >= kPhase && warp * 32 < n;  // owns rows that count
  const int end = min((kPhase + 1) * 32, n - 1);
#pragma unroll 1
  for (int j = kPhase * 32; j < end; ++j) {
    // 1. publish
    if (row_warp && r < n) s.row[r] = make_float4(t.v, t.w, t.x, 0.f);
    __syncthreads();
    // 2. update and multiply; the reflection's scalars meanwhile
    const int next = j + 1;
    float4 mine[kColumnSlots];
    float tail = 0;
#pragma unroll
    for (int c = kPhase; c < kColumnSlots; ++c) {
      mine[c] = s.row[c * 32 + lane];
      if (c * 32 + lane > next) tail = fmaf(mine[c].z, mine[c].z, tail);
    }
    Reflection h{};
    if (row_warp) h = reflection_of(s.row[next].z, warp_sum(tail));
    float y[kColumnSlots] = {};
#pragma unroll
    for (int i = kFirstRow; i < kRowSlots; ++i) {
      const float4 row = s.row[i * kWarps + warp];
#pragma unroll
      for (int c = kPhase; c < kColumnSlots; ++c) {
        const float value = fmaf(-row.x, mine[c].y, fmaf(-row.y, mine[c].x, t.a[i][c]));
        t.a[i][c] = value;
        y[c] = fmaf(value, row.z, y[c]);
      }
    }
    float product = 0;
#pragma unroll
    for (int c = kPhase; c < kColumnSlots; ++c) {
      s.partial[warp][c * 32 + lane] = y[c];
      product = fmaf(y[c], mine[c].z, product);
    }
#pragma unroll
    for (int c = kPhase; c < kPhase + 2 && c < kColumnSlots; ++c) {  // where column j+1 can be
      if (c * 32 + lane == next) {
#pragma unroll
        for (int i = kFirstRow; i < kRowSlots; ++i) s.column[i * kWarps + warp] = t.a[i][c];
        s.lead[warp] = y[c];
      }
    }
    product = warp_sum(product);
    if (lane == 0) s.product[warp] = product;
    __syncthreads();
    // 3. the reflector's w and the next column
    if (row_warp) {
      float sums[4] = {};
#pragma unroll
      for (int k = 0; k < kWarps; ++k) sums[k & 3] += s.partial[k][r];
      const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
      const float lead = sum_of<kWarps>(s.lead), xax = sum_of<kWarps>(s.product);
      const float corner = s.column[next];
      const float entry = r >= next && r < n ? s.column[r] : 0.f;
      const float scale = h.tau * h.inverse;
      const float energy = fmaf(h.beta, fmaf(h.beta, corner, -2.f * lead), xax);
      const float half = 0.5f * scale * scale * energy;
      const float lead_w = fmaf(scale, fmaf(-h.beta, corner, lead), -half);
      t.v = r == next ? 1.f : t.x * h.inverse;
      t.w = fmaf(scale, fmaf(-h.beta, entry, sum), -half * t.v);
      if (h.tau == 0.f || r < next || r >= n) t.v = t.w = 0.f;
      const float updated = h.tau == 0.f ? entry : entry - t.v * lead_w - t.w;
      t.x = r > next && r < n ? updated : 0.f;
      if (r == next) {
        out.d[next] = h.tau == 0.f ? corner : fmaf(-2.f, lead_w, corner);
        out.e[j] = h.beta;
        out.tau[j] = h.tau;
      }
      if (out.v != nullptr && r < n) out.v[static_cast<int64_t>(j) * out.ld + r] = t.v;
    }
  }
  if constexpr (kPhase + 1 < kColumnSlots) {
    columns<kPhase + 1, kWarps, kRowSlots, kColumnSlots>(s, t, out);
  }
}

template <int kWarps, int kRowSlots, int kColumnSlots>
__global__ void __launch_bounds__(kWarps * 32, kWarps == 8 ? 2 : 1)
    reduce_registers_kernel(const Arguments g) {
  using Shared = Memory<kWarps, kRowSlots, kColumnSlots>;
  __shared__ Shared s;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, r = threadIdx.x, n = g.n;
  for (int k = r; k < static_cast<int>(sizeof(s.row) / sizeof(s.row[0])); k += kWarps * 32) {
    s.row[k] = make_float4(0.f, 0.f, 0.f, 0.f);  // rows past n stay 0
  }
  for (int64_t matrix = blockIdx.x; matrix < g.batch; matrix += gridDim.x) {
    const float* input = g.a + matrix * n * n;
    Part<kRowSlots, kColumnSlots> t;
    uint32_t amax = 0;
#pragma unroll
    for (int i = 0; i < kRowSlots; ++i) {
#pragma unroll
      for (int c = 0; c < kColumnSlots; ++c) {
        const int row = i * kWarps + warp, column = c * 32 + lane;
        const int low = max(row, column), high = min(row, column);
        t.a[i][c] = low < n ? input[g.upper ? high * n + low : low * n + high] : 0.f;
        amax = max(amax, __float_as_uint(t.a[i][c]) & 0x7fffffffu);
      }
    }
    amax = block_max(amax, s.scratch);
    const bool finite = amax < kInfinityBits;
    const int exponent = finite ? exponent_above(amax) : 0;
    if (r == 0) {
      g.exponent[matrix] = exponent;
      g.status[matrix] = finite ? 0 : 1;
    }
#pragma unroll
    for (int i = 0; i < kRowSlots; ++i) {
#pragma unroll
      for (int c = 0; c < kColumnSlots; ++c) {
        t.a[i][c] = finite ? times_power_of_two(t.a[i][c], -exponent) : 0.f;
      }
      if (lane == 0) s.column[i * kWarps + warp] = t.a[i][0];
    }
    __syncthreads();
    const Output out{g.t.d + matrix * g.ld,
                     g.t.e + matrix * g.ld,
                     g.t.tau + matrix * g.ld,
                     g.vectors ? g.t.v + matrix * n * g.ld : nullptr,
                     n,
                     g.ld};
    t.x = r < n && r > 0 ? s.column[r] : 0.f;
    t.v = t.w = 0;
    if (r == 0) out.d[0] = s.column[0];
    columns<0>(s, t, out);
    __syncthreads();
  }
}

template <int kWarps, int kRowSlots, int kColumnSlots>
cudaError_t launch(const Arguments& g, cudaStream_t stream) {
  reduce_registers_kernel<kWarps, kRowSlots, kColumnSlots>
      <<<grid_for(g.batch, 1 << 20), kWarps * 32, 0, stream>>>(g);
  return cudaGetLastError();
}

}  // namespace

cudaError_t reduce_registers(const Shape& shape, const float* a, bool upper, int* exponent,
                             int* status, const TridiagonalF32& t, cudaStream_t stream) {
  const Arguments g{a, t, exponent, status, shape.batch, shape.n, shape.ld(), upper, shape.vectors};
  if (shape.n <= 64) return launch<8, 8, 2>(g, stream);
  if (shape.n <= 96) return launch<8, 12, 3>(g, stream);
  if (shape.n <= 128) return launch<16, 8, 4>(g, stream);
  if (shape.n <= 160) return launch<16, 10, 5>(g, stream);
  if (shape.n <= 176) return launch<16, 11, 6>(g, stream);
  if (shape.n <= kRegistersMax) return launch<16, 12, 6>(g, stream);
  return cudaErrorInvalidValue;
}

}  // namespace crucible::eigh
