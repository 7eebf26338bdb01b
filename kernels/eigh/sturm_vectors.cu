// sturm_vectors.cu: eigenvalues and eigenvectors of symmetric tridiagonal matrices, n <= 512.
//
// Shapes: d, e [batch][ld] -> lambda [batch][ld] ascending, q [batch][n][n] with eigenvector k in
// column k. Every eigenvalue is on its own, so a block takes 32 of one matrix and the grid fills
// the GPU at small batches too. Deterministic.
//  1. Multisection in FP64: four lanes an eigenvalue, so a round divides its interval by 5. The
//     count of eigenvalues below x comes from the signs of the leading minors of T - x, a
//     recurrence without division, rescaled every 16 steps (|T| <= n = 512 < 2^9 and couplings of
//     at least 1e-8 |T| keep 16 steps far inside FP64's range).
//  2. Vectors from the pivots of T - x from the top (D+) and from the bottom (D-), in FP64: the
//     squares of the entries are in the ratio of the products of the pivots above and below, so
//     the largest entry is known from sums of logarithms, and the others follow away from it.
//  3. A diagonal ramp of 2^-26 |T| splits exact multiplicities; L is corrected for it to first
//     order. Vectors of eigenvalues closer than 2^-34 |T| are orthogonalised afterwards.
// Accuracy needs about 45 bits of x (see eigh32.cu); 22 rounds give 51. Cost: 88 n^2 counts of a
// step of three FP64 operations a matrix: FP64 rate bound.
#include "block_ops.cuh"
#include "launch.h"
#include "sturm_stages.h"

namespace crucible::eigh {
namespace {

constexpr int kChunk = 32, kLanes = 4, kThreads = kChunk * kLanes, kRounds = 22;
constexpr int kRescaleSteps = 16;
constexpr float kCouplingMin = 1e-8f;  // of |T|: smaller couplings are raised to it
constexpr double kRamp = 0x1p-26;      // of |T|, a row
constexpr double kClose = 0x1p-34;     // of |T|
constexpr double kPivotMin = 1e-30;    // |pivot| at least: representable in FP32, harmless

struct Arguments {
  const float *d, *e;
  float *lambda, *q;  // q null: eigenvalues only
  double* shift;      // [batch][ld]: eigenvalues of the ramped T
  float* norm;        // [batch]: |T|
  double ramp;        // of |T|, a row; 0 where only eigenvalues are wanted
  int n, ld;
};

// 1/x to about 1 ulp: no special cases, |x| in [1e-30, 1e30].
__device__ __forceinline__ double reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(y, fma(-x, y, 1.0), y);
  return fma(y, fma(-x, y, 1.0), y);
}

// Eigenvalues of T below x. t[i] = (d_i, e_{i-1}^2), e_{-1} = 0.
__device__ __forceinline__ int count_below(const double2* t, int n, double x) {
  double before = 1, minor = t[0].x - x;
  int changes = static_cast<int>(static_cast<unsigned>(__double2hiint(minor)) >> 31);
  for (int first = 1; first < n; first += kRescaleSteps) {
    const int steps = min(kRescaleSteps, n - first);
    const auto step = [&](int i) {
      const double2 f = t[i];
      const double next = fma(f.x - x, minor, -f.y * before);
      changes += static_cast<int>(
          static_cast<unsigned>(__double2hiint(next) ^ __double2hiint(minor)) >> 31);
      before = minor;
      minor = next;
    };
    if (steps == kRescaleSteps) {
#pragma unroll
      for (int k = 0; k < kRescaleSteps; ++k) step(first + k);
    } else {
      for (int k = 0; k < steps; ++k) step(first + k);
    }
    const int high = max(__double2hiint(minor) & 0x7ff00000, __double2hiint(before) & 0x7ff00000);
    const double scale = __hiloint2double(max(0x7fe00000 - high, 0x00100000), 0);
    before *= scale;
    minor *= scale;
  }
  return changes;
}

// Loads T with the ramp and returns |T| (an upper bound, > 0). Every thread of the block calls it.
__device__ float load_tridiagonal(const float* d, const float* e, int n, double ramp, double2* t,
                                  float* coupling, uint32_t* scratch) {
  uint32_t bits = 0;
  for (int i = threadIdx.x; i < n; i += kThreads) {
    const float left = i > 0 ? fabsf(e[i - 1]) : 0.f, right = i < n - 1 ? fabsf(e[i]) : 0.f;
    bits = max(bits, __float_as_uint(fabsf(d[i]) + left + right));
  }
  bits = block_max(bits, scratch);
  const float norm = bits == 0 ? 1.f : __uint_as_float(bits) * 1.0001f;
  const float least = norm * kCouplingMin;
  for (int i = threadIdx.x; i < n; i += kThreads) {
    float before = i > 0 ? e[i - 1] : 0.f;
    if (i > 0 && fabsf(before) < least) before = copysignf(least, before);
    t[i] = make_double2(static_cast<double>(d[i]) + ramp * norm * i,
                        static_cast<double>(before) * before);
    coupling[i] = before;
  }
  __syncthreads();
  return norm;
}

struct Shared {
  double2* t;
  float *coupling, *above, *below, *product;  // n, then n x kChunk each: D+, D-, log |minor|
  __device__ Shared(char* memory, int n) {
    t = reinterpret_cast<double2*>(memory);
    coupling = reinterpret_cast<float*>(t + n);
    above = coupling + (n + 3) / 4 * 4;
    below = above + n * kChunk;
    product = below + n * kChunk;
  }
  static size_t bytes(int n, bool vectors) {
    return n * sizeof(double2) + (n + 3) / 4 * 16 + (vectors ? 3ull * n * kChunk * 4 : 0);
  }
};

// The pivots of T - x for the block's 32 eigenvalues, one a lane: warp 0 from the top, with the
// logarithm of the product of the pivots before each; warp 1 from the bottom.
__device__ __forceinline__ void pivots(const Shared& s, int n, double x, int lane, bool from_top) {
  double pivot = 0;
  float log_product = 0;
  float* out = from_top ? s.above : s.below;
#pragma unroll 4
  for (int k = 0; k < n; ++k) {
    const int i = from_top ? k : n - 1 - k;
    const double squared = k == 0 ? 0 : s.t[from_top ? i : i + 1].y;
    pivot = k == 0 ? s.t[i].x - x : fma(-squared, reciprocal(pivot), s.t[i].x - x);
    if (fabs(pivot) < kPivotMin) pivot = copysign(kPivotMin, pivot);
    const float rounded = static_cast<float>(pivot);
    out[i * kChunk + lane] = rounded;
    if (from_top) {
      s.product[i * kChunk + lane] = log_product;
      log_product += __log2f(fabsf(rounded));
    }
  }
}

__global__ void __launch_bounds__(kThreads) sturm_vectors_kernel(const Arguments g) {
  extern __shared__ __align__(16) char memory[];
  __shared__ uint32_t scratch[32];
  __shared__ double shifts[kChunk];
  __shared__ float squares[2][kChunk], moments[2][kChunk];
  __shared__ int largest[kChunk];
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int64_t matrix = blockIdx.y;
  const Shared s(memory, n);
  const float norm = load_tridiagonal(g.d + matrix * g.ld, g.e + matrix * g.ld, n, g.ramp, s.t,
                                      s.coupling, scratch);
  // 1. eigenvalue `index` by its group of four lanes
  const int first = blockIdx.x * kChunk, own = threadIdx.x / kLanes, part = threadIdx.x % kLanes;
  const int index = min(first + own, n - 1);
  const double bound = norm * (1.0 + 1e-6 + g.ramp * n);
  double low = -bound, width = 2 * bound;
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    width *= 1.0 / (kLanes + 1);
    const double x = fma(width, part + 1.0, low);
    const bool below = count_below(s.t, n, x) <= index;  // the eigenvalue is not below x
    const unsigned votes = __ballot_sync(kAllLanes, below) >> (lane & ~(kLanes - 1));
    low = fma(width, static_cast<double>(__popc(votes & ((1u << kLanes) - 1))), low);
  }
  if (part == 0) {
    shifts[own] = low + 0.5 * width;
    if (first + own < n) g.shift[matrix * g.ld + first + own] = shifts[own];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) g.norm[matrix] = norm;
  __syncthreads();
  const double x = shifts[lane];
  const bool valid = first + lane < n;
  if (g.q == nullptr) {
    if (warp == 0 && valid) g.lambda[matrix * g.ld + first + lane] = static_cast<float>(x);
    return;
  }
  // 2. pivots, the largest entry, the entries away from it
  if (warp < 2) pivots(s, n, x, lane, warp == 0);
  __syncthreads();
  if (warp == 0) {
    float log_product = 0, most = -INFINITY;
    int at = 0;
#pragma unroll 4
    for (int i = n - 1; i >= 0; --i) {
      const float weight = log_product + s.product[i * kChunk + lane];
      if (weight > most) most = weight, at = i;
      log_product += __log2f(fabsf(s.below[i * kChunk + lane]));
    }
    largest[lane] = at;
  }
  __syncthreads();
  if (warp < 2) {
    const int at = largest[lane];
    float entry = 1, square = warp == 0 ? 1.f : 0.f, moment = warp == 0 ? at : 0.f;
    const int end = warp == 0 ? -1 : n, step = warp == 0 ? -1 : 1;
    for (int i = at + step; i != end; i += step) {
      const float across = s.coupling[warp == 0 ? i + 1 : i];
      float* place = (warp == 0 ? s.above : s.below) + i * kChunk + lane;
      entry = -across * entry * __fdividef(1.f, *place);
      square = fmaf(entry, entry, square);
      moment = fmaf(entry * entry, static_cast<float>(i), moment);
      s.above[i * kChunk + lane] = entry;
    }
    if (warp == 0) s.above[at * kChunk + lane] = 1;
    squares[warp][lane] = square;
    moments[warp][lane] = moment;
  }
  __syncthreads();
  const float square = squares[0][lane] + squares[1][lane];
  const float mean = (moments[0][lane] + moments[1][lane]) / square;
  const float scale = 1.f / sqrtf(square);
  if (valid && warp == 0) {
    g.lambda[matrix * g.ld + first + lane] =
        static_cast<float>(x - g.ramp * static_cast<double>(norm) * mean);
  }
  if (!valid) return;
  float* q = g.q + matrix * n * n + first + lane;
  for (int i = warp; i < n; i += kThreads / 32) {
    q[static_cast<int64_t>(i) * n] = s.above[i * kChunk + lane] * scale;
  }
}

// 3. Gram-Schmidt inside runs of eigenvalues closer than kClose, in ascending order. Also makes
// lambda ascending where the correction for the ramp left ties in another order. A block a matrix.
__global__ void __launch_bounds__(128) separate_kernel(const Arguments g) {
  __shared__ float scratch[32];
  __shared__ uint32_t any[32];
  const int n = g.n;
  const int64_t matrix = blockIdx.x;
  const double* x = g.shift + matrix * g.ld;
  const double close = kClose * g.norm[matrix];
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
  if (!runs || g.q == nullptr) return;
  float* q = g.q + matrix * n * n;
  int start = 0;
  for (int k = 1; k < n; ++k) {
    if (!(x[k] - x[k - 1] < close)) {
      start = k;
      continue;
    }
    for (int m = start; m < k; ++m) {
      float dot = 0;
      for (int i = threadIdx.x; i < n; i += 128) {
        dot = fmaf(q[static_cast<int64_t>(i) * n + m], q[static_cast<int64_t>(i) * n + k], dot);
      }
      dot = block_sum(dot, scratch);
      for (int i = threadIdx.x; i < n; i += 128) {
        q[static_cast<int64_t>(i) * n + k] -= dot * q[static_cast<int64_t>(i) * n + m];
      }
    }
    float square = 0;
    for (int i = threadIdx.x; i < n; i += 128) {
      const float entry = q[static_cast<int64_t>(i) * n + k];
      square = fmaf(entry, entry, square);
    }
    const float scale = rsqrtf(fmaxf(block_sum(square, scratch), 1e-30f));
    for (int i = threadIdx.x; i < n; i += 128) q[static_cast<int64_t>(i) * n + k] *= scale;
  }
}

struct Buffers {
  double* shift;
  float* norm;
  size_t bytes;
  Buffers(const Shape& shape, void* workspace) {
    Carver carver(workspace);
    shift = carver.take<double>(static_cast<size_t>(shape.batch) * shape.ld());
    norm = carver.take<float>(shape.batch);
    bytes = carver.used();
  }
};

}  // namespace

size_t sturm_vectors_bytes(const Shape& shape) { return Buffers(shape, nullptr).bytes; }

cudaError_t sturm_vectors(const Shape& shape, const float* d, const float* e, float* lambda,
                          float* q, void* workspace, cudaStream_t stream) {
  const Buffers buffers(shape, workspace);
  const int n = shape.n, ld = shape.ld();
  const size_t bytes = Shared::bytes(n, shape.vectors);
  if (bytes > 40 * 1024) {
    const cudaError_t error = cudaFuncSetAttribute(
        sturm_vectors_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (error != cudaSuccess) return error;
  }
  for (int64_t first = 0; first < shape.batch; first += kGridYMax) {
    const unsigned count = grid_for(shape.batch - first, kGridYMax);
    const Arguments g{d + first * ld,
                      e + first * ld,
                      lambda + first * ld,
                      shape.vectors ? q + first * n * n : nullptr,
                      buffers.shift + first * ld,
                      buffers.norm + first,
                      shape.vectors ? kRamp : 0.0,
                      n,
                      ld};
    sturm_vectors_kernel<<<dim3((n + kChunk - 1) / kChunk, count), kThreads, bytes, stream>>>(g);
    separate_kernel<<<count, 128, 0, stream>>>(g);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
