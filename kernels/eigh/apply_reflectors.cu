// apply_reflectors.cu: q <- H_0 H_1 ... H_{n-3} q in FP32, for n <= 512.
//
// Shapes: v [batch][n][ld] (FP32 or FP16), q [batch][n][n] row-major, in place. Deterministic.
// A block takes 32 columns of q, kept in registers: eight lanes share two columns, a lane holds
// rows l, l + 8, ... Reflectors come in panels of 16 through shared memory, four interleaved, so
// that one 16-byte load serves four of them; the four are applied together (s_a from the dot
// products and the Gram matrix of the four), which takes one round of shuffles instead of four.
// tau = 2 / (v^T v) of the stored v, so that each H is orthogonal to FP32 accuracy.
// Cost: 2 n^3 multiply-adds a matrix, half of it skipped by the zeros above the reflectors.
#include "block_ops.cuh"
#include "launch.h"
#include "sturm_stages.h"

namespace crucible::eigh {
namespace {

constexpr int kThreads = 128, kPanel = 16, kTogether = 4, kColumns = 2, kLanesAColumn = 8;
constexpr int kBlockColumns = kThreads / kLanesAColumn * kColumns;
constexpr int kSlotGroup = 4;  // slots that are skipped together above the reflectors
constexpr int kGram = kTogether * (kTogether + 1) / 2;
static_assert(kThreads / 32 == kPanel / kTogether, "a warp makes one Gram matrix");

template <typename Value>
struct Arguments {
  const float* tau;
  const Value* v;
  float* q;
  int n, ld;
};

__device__ __forceinline__ float sum_of_eight(float value) {
#pragma unroll
  for (int offset = 4; offset > 0; offset >>= 1) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

// Where a pair a <= b of the four is in the Gram matrix.
__host__ __device__ constexpr int gram_at(int a, int b) { return b * (b + 1) / 2 + a; }

// The four's Gram matrix; the diagonal becomes tau. A warp calls it.
__device__ __forceinline__ void make_gram(const float4* v, int rows, const bool (&live)[kTogether],
                                          float* gram) {
  const int lane = threadIdx.x & 31;
  float sums[kGram] = {};
  for (int r = lane; r < rows; r += 32) {
    const float4 f = v[r];
    const float x[kTogether] = {f.x, f.y, f.z, f.w};
#pragma unroll
    for (int b = 0; b < kTogether; ++b) {
#pragma unroll
      for (int a = 0; a <= b; ++a) sums[gram_at(a, b)] = fmaf(x[a], x[b], sums[gram_at(a, b)]);
    }
  }
#pragma unroll
  for (int b = 0; b < kTogether; ++b) {
#pragma unroll
    for (int a = 0; a <= b; ++a) {
      const float sum = warp_sum(sums[gram_at(a, b)]);
      if (lane == 0) gram[gram_at(a, b)] = a < b ? sum : (live[a] ? 2.f / sum : 0.f);
    }
  }
}

template <int kSlots, typename Value>
__global__ void __launch_bounds__(kThreads) apply_kernel(const Arguments<Value> g) {
  constexpr int kRows = kSlots * kLanesAColumn, kQuads = kPanel / kTogether;
  __shared__ float4 panel[kQuads][kRows];
  __shared__ float gram[kQuads][kGram];
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int part = lane & (kLanesAColumn - 1);
  const int column = blockIdx.x * kBlockColumns + (threadIdx.x / kLanesAColumn) * kColumns;
  const int64_t matrix = blockIdx.y;
  const Value* v = g.v + matrix * n * g.ld;
  const float* tau = g.tau + matrix * g.ld;
  float* q = g.q + matrix * n * n;
  float z[kSlots][kColumns];
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int row = i * kLanesAColumn + part;
      z[i][c] = row < n && column + c < n ? q[static_cast<int64_t>(row) * n + column + c] : 0.f;
    }
  }
  for (int first = (n - 2) / kPanel * kPanel; first >= 0; first -= kPanel) {
    __syncthreads();
    for (int unit = threadIdx.x; unit < kQuads * kRows; unit += kThreads) {
      const int quad = unit / kRows, row = unit % kRows;
      float x[kTogether];
#pragma unroll
      for (int a = 0; a < kTogether; ++a) {
        const int j = first + quad * kTogether + a;
        x[a] =
            row > j && row < n ? static_cast<float>(v[static_cast<int64_t>(j) * g.ld + row]) : 0.f;
      }
      panel[quad][row] = make_float4(x[0], x[1], x[2], x[3]);
    }
    __syncthreads();
    {
      bool live[kTogether];
#pragma unroll
      for (int a = 0; a < kTogether; ++a) {
        const int j = first + warp * kTogether + a;
        live[a] = j < n - 1 && tau[j] != 0.f;
      }
      make_gram(panel[warp], kRows, live, gram[warp]);
    }
    __syncthreads();
    for (int quad = kQuads - 1; quad >= 0; --quad) {
      const int top = first + quad * kTogether + 1;  // rows above are zero in all four
      if (top >= n) continue;
      float s[kColumns][kTogether] = {};
#pragma unroll
      for (int group = 0; group < kSlots; group += kSlotGroup) {
        if ((group + kSlotGroup) * kLanesAColumn > top) {
#pragma unroll
          for (int i = group; i < group + kSlotGroup && i < kSlots; ++i) {
            const float4 f = panel[quad][i * kLanesAColumn + part];
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
              s[c][0] = fmaf(f.x, z[i][c], s[c][0]);
              s[c][1] = fmaf(f.y, z[i][c], s[c][1]);
              s[c][2] = fmaf(f.z, z[i][c], s[c][2]);
              s[c][3] = fmaf(f.w, z[i][c], s[c][3]);
            }
          }
        }
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int a = kTogether - 1; a >= 0; --a) {  // the last reflector acts first
          float dot = sum_of_eight(s[c][a]);
#pragma unroll
          for (int b = a + 1; b < kTogether; ++b) {
            dot = fmaf(-gram[quad][gram_at(a, b)], s[c][b], dot);
          }
          s[c][a] = gram[quad][gram_at(a, a)] * dot;
        }
      }
#pragma unroll
      for (int group = 0; group < kSlots; group += kSlotGroup) {
        if ((group + kSlotGroup) * kLanesAColumn > top) {
#pragma unroll
          for (int i = group; i < group + kSlotGroup && i < kSlots; ++i) {
            const float4 f = panel[quad][i * kLanesAColumn + part];
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
              z[i][c] = fmaf(-f.x, s[c][0], fmaf(-f.y, s[c][1], z[i][c]));
              z[i][c] = fmaf(-f.z, s[c][2], fmaf(-f.w, s[c][3], z[i][c]));
            }
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int row = i * kLanesAColumn + part;
      if (row < n && column + c < n) q[static_cast<int64_t>(row) * n + column + c] = z[i][c];
    }
  }
}

template <int kSlots, typename Value>
cudaError_t launch(const Shape& shape, Arguments<Value> g, cudaStream_t stream) {
  const unsigned blocks = (shape.n + kBlockColumns - 1) / kBlockColumns;
  for (int64_t first = 0; first < shape.batch; first += kGridYMax) {
    const unsigned count = grid_for(shape.batch - first, kGridYMax);
    apply_kernel<kSlots, Value><<<dim3(blocks, count), kThreads, 0, stream>>>(g);
    g.tau += static_cast<int64_t>(count) * g.ld;
    g.v += static_cast<int64_t>(count) * g.n * g.ld;
    g.q += static_cast<int64_t>(count) * g.n * g.n;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t apply_reflectors(const Shape& shape, const float* tau, const float* v, float* q,
                             cudaStream_t stream) {
  const Arguments<float> g{tau, v, q, shape.n, shape.ld()};
  if (shape.n <= 64) return launch<8>(shape, g, stream);
  if (shape.n <= 96) return launch<12>(shape, g, stream);
  if (shape.n <= 128) return launch<16>(shape, g, stream);
  if (shape.n <= 176) return launch<22>(shape, g, stream);
  return launch<24>(shape, g, stream);
}

cudaError_t apply_reflectors(const Shape& shape, const float* tau, const __half* v, float* q,
                             cudaStream_t stream) {
  const Arguments<__half> g{tau, v, q, shape.n, shape.ld()};
  if (shape.n <= 256) return launch<32>(shape, g, stream);
  if (shape.n <= 352) return launch<44>(shape, g, stream);
  return launch<64>(shape, g, stream);
}

}  // namespace crucible::eigh
