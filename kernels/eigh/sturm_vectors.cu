// sturm_vectors.cu: eigenvectors of symmetric tridiagonal matrices from their eigenvalues.
//
// Shapes: d, e, shift [batch][ld], scale [batch] (sturm_values.cu) -> lambda [batch][ld] ascending
// and q [batch][n][n], eigenvector k in column k. n <= 512. A block of two warps takes 32
// eigenvalues of one matrix, one a lane. Deterministic.
//  1. The pivots of T - x from the top (D+, warp 0) and from the bottom (D-, warp 1), as quotients
//     of neighbouring minors in FP64, kept in FP32: one FP64 multiply-add a row on the chain.
//  2. The squares of the entries are in the ratio of the products of the pivots above and below,
//     so sums of logarithms give the largest entry; the others follow from the pivots, away from it
//     (Dhillon's twisted factorisation without its search for the smallest residual).
//  3. A diagonal ramp of 2^-26 |T| has split exact multiplicities; L is corrected for it to first
//     order. Vectors of eigenvalues closer than 2^-34 |T| are orthogonalised: FP64 shifts of 51
//     bits leave the others orthogonal to 1e-5 and better.
#include "block_ops.cuh"
#include "launch.h"
#include "sturm_count.cuh"
#include "sturm_stages.h"

namespace crucible::eigh {
namespace {

constexpr int kChunk = 32, kThreads = 64;
constexpr int kRescaleRows = 4, kAhead = 4;
constexpr float kPivotMin = 1e-30f, kPivotMax = 1e30f;

struct Arguments {
  const float *d, *e;
  const double* shift;
  const SturmScale* scale;
  float *lambda, *q;
  int n, ld;
};

struct Memory {
  double2* t;
  float *coupling, *above, *below;  // n, then n x kChunk each: D+ (later the vectors), D-
  __device__ Memory(char* memory, int n) {
    t = reinterpret_cast<double2*>(memory);
    coupling = reinterpret_cast<float*>(t + n);
    above = coupling + (n + 3) / 4 * 4;
    below = above + n * kChunk;
  }
  static size_t bytes(int n) {
    return n * sizeof(double2) + (n + 3) / 4 * 16 + 2ull * n * kChunk * sizeof(float);
  }
};

// Pivots of T - x into `out`, from the top or from the bottom. Returns the logarithm (base 2) of
// the product of their sizes.
__device__ __forceinline__ float pivots(const double2* t, int n, double x, bool from_top,
                                        float* out) {
  const int step = from_top ? 1 : -1, ahead = from_top ? 0 : 1;
  int i = from_top ? 0 : n - 1;
  Minors<double> m;
  m.minor = t[i].x - x;
  float logarithm = 0;
  for (int done = 0; done < n;) {
#pragma unroll
    for (int k = 0; k < kRescaleRows; ++k) {
      if (done + k >= n) break;
      const float quotient = __fdividef(static_cast<float>(m.minor), static_cast<float>(m.before));
      const float size = fminf(fmaxf(fabsf(quotient), kPivotMin), kPivotMax);
      out[i * kChunk] = copysignf(size, quotient);
      logarithm += __log2f(size);
      if (done + k + 1 < n) {
        i += step;
        m.step(t[i].x - x, t[i + ahead].y);
      }
    }
    rescale(m);
    done += kRescaleRows;
  }
  return logarithm;
}

// The row of the largest entry of the lane's vector.
__device__ __forceinline__ int largest_entry(const float* above, const float* below, int n,
                                             float log_above) {
  float log_below = 0, most = -INFINITY;
  int at = 0;
#pragma unroll 4
  for (int i = n - 1; i >= 0; --i) {
    log_above -= __log2f(fabsf(above[i * kChunk]));
    const float weight = log_above + log_below;
    if (weight > most) most = weight, at = i;
    log_below += __log2f(fabsf(below[i * kChunk]));
  }
  return at;
}

struct Sums {
  float square, moment;  // of the entries, and weighted by their row
};

// Entries away from row `at`, whose entry is 1: upwards from the pivots D+, or downwards from D-.
__device__ __forceinline__ Sums follow(const float* coupling, const float* pivot, int n, int at,
                                       bool upwards, float* entries) {
  Sums sums{0, 0};
  const int step = upwards ? -1 : 1, rows = upwards ? at : n - 1 - at;
  float entry = 1;
  for (int done = 0; done < rows; done += kAhead) {
    float factor[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {  // independent of the chain of entries
      const int i = at + step * min(done + k + 1, rows);
      factor[k] = -coupling[upwards ? i + 1 : i] * __fdividef(1.f, pivot[i * kChunk]);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (done + k >= rows) break;
      const int i = at + step * (done + k + 1);
      entry *= factor[k];
      sums.square = fmaf(entry, entry, sums.square);
      sums.moment = fmaf(entry * entry, static_cast<float>(i), sums.moment);
      entries[i * kChunk] = entry;
    }
  }
  return sums;
}

__global__ void __launch_bounds__(kThreads) sturm_vectors_kernel(const Arguments g) {
  extern __shared__ __align__(16) char memory[];
  __shared__ uint32_t scratch[32];
  __shared__ float squares[2][kChunk], moments[2][kChunk];
  __shared__ int largest[kChunk];
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int64_t matrix = blockIdx.y;
  const Memory s(memory, n);
  const SturmScale scale = load_tridiagonal(g.d + matrix * g.ld, g.e + matrix * g.ld, n, kRamp, s.t,
                                            s.coupling, scratch);
  const int column = blockIdx.x * kChunk + lane;
  const double x = g.shift[matrix * g.ld + min(column, n - 1)];
  float *above = s.above + lane, *below = s.below + lane;
  const float logarithm = pivots(s.t, n, x, warp == 0, warp == 0 ? above : below);
  __syncthreads();
  if (warp == 0) largest[lane] = largest_entry(above, below, n, logarithm);
  __syncthreads();
  const int at = largest[lane];
  const Sums sums = follow(s.coupling, warp == 0 ? above : below, n, at, warp == 0, above);
  squares[warp][lane] = sums.square;
  moments[warp][lane] = sums.moment;
  __syncthreads();
  if (warp == 0) above[at * kChunk] = 1;
  __syncthreads();
  const float square = 1.f + (squares[0][lane] + squares[1][lane]);
  const float mean = (static_cast<float>(at) + (moments[0][lane] + moments[1][lane])) / square;
  const float normalised = 1.f / sqrtf(square);
  if (column >= n) return;
  if (warp == 0) {
    const double value = x - kRamp * static_cast<double>(scale.norm) * mean;
    g.lambda[matrix * g.ld + column] =
        times_power_of_two(static_cast<float>(value), scale.exponent);
  }
  float* q = g.q + matrix * n * n + column;
#pragma unroll 4
  for (int i = warp; i < n; i += kThreads / 32) {
    q[static_cast<int64_t>(i) * n] = above[i * kChunk] * normalised;
  }
}

// Gram-Schmidt inside runs of eigenvalues closer than kClose, in ascending order, and an ascending
// lambda where the correction for the ramp left ties in another order. A block a matrix.
__global__ void __launch_bounds__(128) separate_kernel(const Arguments g) {
  __shared__ float scratch[32];
  __shared__ uint32_t any[32];
  const int n = g.n;
  const int64_t matrix = blockIdx.x;
  const double* x = g.shift + matrix * g.ld;
  const double close = kClose * g.scale[matrix].norm;
  float* lambda = g.lambda + matrix * g.ld;
  uint32_t work = 0;
  for (int k = 1 + threadIdx.x; k < n; k += 128) {
    if (x[k] - x[k - 1] < close) work |= 1;
    if (lambda[k] < lambda[k - 1]) work |= 2;
  }
  const bool unsorted = block_max(work & 2, any) != 0;
  __syncthreads();
  const bool runs = block_max(work & 1, any) != 0;
  if (unsorted && threadIdx.x == 0) {
    for (int k = 1; k < n; ++k) lambda[k] = fmaxf(lambda[k], lambda[k - 1]);
  }
  if (!runs) return;
  float* q = g.q + matrix * n * n;
  const auto at = [&](int row, int column) -> float& {
    return q[static_cast<int64_t>(row) * n + column];
  };
  int start = 0;
  for (int k = 1; k < n; ++k) {
    if (!(x[k] - x[k - 1] < close)) {
      start = k;
      continue;
    }
    for (int m = start; m < k; ++m) {
      float dot = 0;
      for (int i = threadIdx.x; i < n; i += 128) dot = fmaf(at(i, m), at(i, k), dot);
      dot = block_sum(dot, scratch);
      for (int i = threadIdx.x; i < n; i += 128) at(i, k) -= dot * at(i, m);
    }
    float square = 0;
    for (int i = threadIdx.x; i < n; i += 128) square = fmaf(at(i, k), at(i, k), square);
    const float inverse = rsqrtf(fmaxf(block_sum(square, scratch), 1e-30f));
    for (int i = threadIdx.x; i < n; i += 128) at(i, k) *= inverse;
  }
}

struct Buffers {
  double* shift;
  SturmScale* scale;
  size_t bytes;
  Buffers(const Shape& shape, void* workspace) {
    Carver carver(workspace);
    shift = carver.take<double>(static_cast<size_t>(shape.batch) * shape.ld());
    scale = carver.take<SturmScale>(shape.batch);
    bytes = carver.used();
  }
};

}  // namespace

size_t sturm_solve_bytes(const Shape& shape) { return Buffers(shape, nullptr).bytes; }

cudaError_t sturm_solve(const Shape& shape, const float* d, const float* e, float* lambda, float* q,
                        void* workspace, cudaStream_t stream) {
  const Buffers buffers(shape, workspace);
  cudaError_t error = sturm_values(shape, d, e, lambda, buffers.shift, buffers.scale, stream);
  if (error != cudaSuccess || !shape.vectors) return error;
  const int n = shape.n, ld = shape.ld();
  const size_t bytes = Memory::bytes(n);
  error = cudaFuncSetAttribute(sturm_vectors_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  for (int64_t first = 0; first < shape.batch; first += kGridYMax) {
    const unsigned count = grid_for(shape.batch - first, kGridYMax);
    const Arguments g{d + first * ld,
                      e + first * ld,
                      buffers.shift + first * ld,
                      buffers.scale + first,
                      lambda + first * ld,
                      q + first * n * n,
                      n,
                      ld};
    sturm_vectors_kernel<<<dim3((n + kChunk - 1) / kChunk, count), kThreads, bytes, stream>>>(g);
    separate_kernel<<<count, 128, 0, stream>>>(g);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
