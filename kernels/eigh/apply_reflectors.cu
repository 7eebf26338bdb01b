// apply_reflectors.cu: q <- H_0 H_1 ... H_{n-3} q in FP32, for n <= 512.
//
// Shapes: v [batch][n][ld] (FP32 or FP16), q [batch][n][n] row-major, in place. Deterministic.
// A warp keeps eight columns of q in registers, lane l the rows l, l + 32, ... Reflectors come in
// panels of 16 through shared memory, four of them interleaved, so that one 16-byte load serves 32
// multiply-adds. Four act together as I - V T V^T (Schreiber & Van Loan 1989): the 32 dot products
// of a warp are summed by a transposing butterfly that leaves each lane one of them, a lane then
// makes one coefficient, and the warp reads them all back from shared memory.
// T comes from tau = 2 / (v^T v) of the stored v, so that the product is orthogonal to FP32
// accuracy whatever v was rounded to.
// Cost: 2 n^3 multiply-adds a matrix, half of it skipped by the zeros above the reflectors.
#include "block_ops.cuh"
#include "launch.h"
#include "sturm_stages.h"

namespace crucible::eigh {
namespace {

constexpr int kThreads = 64, kWarps = kThreads / 32, kColumns = 8, kPanel = 16, kTogether = 4;
constexpr int kQuads = kPanel / kTogether, kBlockColumns = kWarps * kColumns;
static_assert(kColumns * kTogether == 32, "one dot product a lane");
constexpr int kFactorFloats = kQuads * kTogether * kTogether;  // the T of a panel

template <typename Value>
struct Arguments {
  const float* tau;
  const Value* v;
  float* q;
  float* factor;  // [batch][panels][kQuads][4][4]
  int n, ld;
  __host__ __device__ int panels() const { return (n + kPanel - 1) / kPanel; }
};

// T of every four reflectors. A block takes a panel, a warp four reflectors of it.
template <typename Value>
__global__ void __launch_bounds__(32 * kQuads) factor_kernel(const Arguments<Value> g) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = blockIdx.x * kPanel + warp * kTogether;
  const int64_t matrix = blockIdx.y;
  const Value* v = g.v + matrix * g.n * g.ld;
  float gram[kTogether][kTogether] = {};
  for (int row = first + 1 + lane; row < g.n; row += 32) {
    float x[kTogether];
#pragma unroll
    for (int b = 0; b < kTogether; ++b) {
      const int j = first + b;
      x[b] = row > j && j < g.n - 1 ? static_cast<float>(v[static_cast<int64_t>(j) * g.ld + row])
                                    : 0.f;
#pragma unroll
      for (int a = 0; a <= b; ++a) gram[a][b] = fmaf(x[a], x[b], gram[a][b]);
    }
  }
#pragma unroll
  for (int b = 0; b < kTogether; ++b) {
#pragma unroll
    for (int a = 0; a <= b; ++a) gram[a][b] = warp_sum(gram[a][b]);
  }
  // Lane b follows the unit vector e_b through the four, the last reflector first.
  float s[kTogether];
  float* out = g.factor + ((matrix * g.panels() + blockIdx.x) * kQuads + warp) * 16;
#pragma unroll
  for (int a = kTogether - 1; a >= 0; --a) {
    const int j = first + a;
    const bool live = j < g.n - 1 && g.tau[matrix * g.ld + j] != 0.f;
    float product = a == lane ? 1.f : 0.f;
#pragma unroll
    for (int b = a + 1; b < kTogether; ++b) product = fmaf(-gram[a][b], s[b], product);
    s[a] = live ? 2.f / gram[a][a] * product : 0.f;
    if (lane < kTogether) out[a * kTogether + lane] = s[a];
  }
}

// One step of the butterfly: lanes with bit kHalf keep the upper half of the sums.
template <int kHalf>
__device__ __forceinline__ void exchange(float (&sums)[32]) {
  const bool upper = threadIdx.x & kHalf;
#pragma unroll
  for (int k = 0; k < kHalf; ++k) {
    const float keep = upper ? sums[k + kHalf] : sums[k];
    const float give = upper ? sums[k] : sums[k + kHalf];
    sums[k] = keep + __shfl_xor_sync(kAllLanes, give, kHalf);
  }
}
// Sums sums[t] over the warp; lane t gets the t-th.
__device__ __forceinline__ float transposed_sum(float (&sums)[32]) {
  exchange<16>(sums);
  exchange<8>(sums);
  exchange<4>(sums);
  exchange<2>(sums);
  exchange<1>(sums);
  return sums[0];
}

// Eight neighbouring entries of a row, `count` of them inside the matrix.
__device__ __forceinline__ void load_eight(const float* from, int count, bool aligned, float* to) {
#pragma unroll
  for (int c = 0; c < kColumns; c += 4) {
    float4 f = make_float4(0.f, 0.f, 0.f, 0.f);
    if (aligned) {
      if (c < count) f = *reinterpret_cast<const float4*>(from + c);
    } else {
      if (c < count) f.x = from[c];
      if (c + 1 < count) f.y = from[c + 1];
      if (c + 2 < count) f.z = from[c + 2];
      if (c + 3 < count) f.w = from[c + 3];
    }
    to[c] = f.x, to[c + 1] = f.y, to[c + 2] = f.z, to[c + 3] = f.w;
  }
}
__device__ __forceinline__ void store_eight(float* to, int count, bool aligned, const float* from) {
#pragma unroll
  for (int c = 0; c < kColumns; c += 4) {
    if (aligned) {
      if (c < count) {
        *reinterpret_cast<float4*>(to + c) =
            make_float4(from[c], from[c + 1], from[c + 2], from[c + 3]);
      }
    } else {
#pragma unroll
      for (int k = c; k < c + 4; ++k) {
        if (k < count) to[k] = from[k];
      }
    }
  }
}

// Reflectors first .. first + 15 to shared memory, four interleaved; zeros where there are none.
template <int kRows, typename Value>
__device__ __forceinline__ void load_panel(const Value* v, int n, int ld, int first,
                                           float4 (*panel)[kRows]) {
  for (int row = first / 32 * 32 + threadIdx.x; row < kRows; row += kThreads) {
    float x[kPanel];
#pragma unroll
    for (int k = 0; k < kPanel; ++k) {
      x[k] = row > first + k && row < n
                 ? static_cast<float>(v[static_cast<int64_t>(first + k) * ld + row])
                 : 0.f;
    }
#pragma unroll
    for (int k = 0; k < kPanel; k += kTogether) {
      panel[k / kTogether][row] = make_float4(x[k], x[k + 1], x[k + 2], x[k + 3]);
    }
  }
}

template <int kSlots, typename Value>
__global__ void __maxnreg__(kSlots <= 11 ? 144 : (kSlots == 12 ? 168 : 255))
    apply_kernel(const Arguments<Value> g) {
  constexpr int kRows = kSlots * 32;
  __shared__ float4 panel[kQuads][kRows];
  __shared__ float factor[kQuads][kTogether][kTogether];
  static_assert(sizeof(factor) == kFactorFloats * sizeof(float) && kFactorFloats == kThreads);
  __shared__ __align__(16) float coefficients[kWarps][32];
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int column = blockIdx.x * kBlockColumns + warp * kColumns;
  const int64_t matrix = blockIdx.y;
  const Value* v = g.v + matrix * n * g.ld;
  float* q = g.q + matrix * n * n + column;
  const bool aligned = n % 4 == 0;
  float z[kSlots][kColumns];
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const int row = i * 32 + lane;
    load_eight(q + static_cast<int64_t>(row) * n, row < n ? n - column : 0, aligned, z[i]);
  }
  for (int first = (n - 2) / kPanel * kPanel; first >= 0; first -= kPanel) {
    __syncthreads();
    load_panel<kRows>(v, n, g.ld, first, panel);
    (&factor[0][0][0])[threadIdx.x] =
        g.factor[(matrix * g.panels() + first / kPanel) * kFactorFloats + threadIdx.x];
    __syncthreads();
#pragma unroll 1
    for (int quad = kQuads - 1; quad >= 0; --quad) {
      const int top = first + quad * kTogether + 1;  // rows above are zero in all four
      if (top >= n) continue;
      float sums[32] = {};
#pragma unroll
      for (int i = 0; i < kSlots; ++i) {
        if (i * 32 + 31 >= top) {
          const float4 f = panel[quad][i * 32 + lane];
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            sums[c * 4] = fmaf(f.x, z[i][c], sums[c * 4]);
            sums[c * 4 + 1] = fmaf(f.y, z[i][c], sums[c * 4 + 1]);
            sums[c * 4 + 2] = fmaf(f.z, z[i][c], sums[c * 4 + 2]);
            sums[c * 4 + 3] = fmaf(f.w, z[i][c], sums[c * 4 + 3]);
          }
        }
      }
      const float product = transposed_sum(sums);  // of column lane / 4, reflector lane % 4
      float coefficient = 0;
#pragma unroll
      for (int b = 0; b < kTogether; ++b) {
        coefficient = fmaf(factor[quad][lane & 3][b],
                           __shfl_sync(kAllLanes, product, (lane & ~3) + b), coefficient);
      }
      coefficients[warp][lane] = coefficient;
      __syncwarp();
      float4 s[kColumns];
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        s[c] = *reinterpret_cast<const float4*>(&coefficients[warp][c * 4]);
      }
#pragma unroll
      for (int i = 0; i < kSlots; ++i) {
        if (i * 32 + 31 >= top) {
          const float4 f = panel[quad][i * 32 + lane];
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            z[i][c] = fmaf(-f.x, s[c].x, fmaf(-f.y, s[c].y, z[i][c]));
            z[i][c] = fmaf(-f.z, s[c].z, fmaf(-f.w, s[c].w, z[i][c]));
          }
        }
      }
      __syncwarp();
    }
  }
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const int row = i * 32 + lane;
    store_eight(q + static_cast<int64_t>(row) * n, row < n ? n - column : 0, aligned, z[i]);
  }
}

template <int kSlots, typename Value>
cudaError_t launch(const Shape& shape, Arguments<Value> g, cudaStream_t stream) {
  const unsigned blocks = (shape.n + kBlockColumns - 1) / kBlockColumns;
  for (int64_t first = 0; first < shape.batch; first += kGridYMax) {
    const unsigned count = grid_for(shape.batch - first, kGridYMax);
    factor_kernel<Value><<<dim3(g.panels(), count), 32 * kQuads, 0, stream>>>(g);
    apply_kernel<kSlots, Value><<<dim3(blocks, count), kThreads, 0, stream>>>(g);
    g.tau += static_cast<int64_t>(count) * g.ld;
    g.v += static_cast<int64_t>(count) * g.n * g.ld;
    g.q += static_cast<int64_t>(count) * g.n * g.n;
    g.factor += static_cast<int64_t>(count) * g.panels() * kFactorFloats;
  }
  return cudaGetLastError();
}

}  // namespace

size_t apply_reflectors_bytes(const Shape& shape) {
  const size_t panels = (shape.n + kPanel - 1) / kPanel;
  return aligned(shape.batch * panels * kFactorFloats * sizeof(float));
}

cudaError_t apply_reflectors(const Shape& shape, const float* tau, const float* v, float* q,
                             void* workspace, cudaStream_t stream) {
  const Arguments<float> g{tau, v, q, static_cast<float*>(workspace), shape.n, shape.ld()};
  if (shape.n <= 64) return launch<2>(shape, g, stream);
  if (shape.n <= 96) return launch<3>(shape, g, stream);
  if (shape.n <= 128) return launch<4>(shape, g, stream);
  return launch<6>(shape, g, stream);
}

cudaError_t apply_reflectors(const Shape& shape, const float* tau, const __half* v, float* q,
                             void* workspace, cudaStream_t stream) {
  const Arguments<__half> g{tau, v, q, static_cast<float*>(workspace), shape.n, shape.ld()};
  if (shape.n <= 256) return launch<8>(shape, g, stream);
  if (shape.n <= 352) return launch<11>(shape, g, stream);
  if (shape.n <= 384) return launch<12>(shape, g, stream);
  return launch<16>(shape, g, stream);
}

}  // namespace crucible::eigh
