// solve_small.cu: n <= 32, one lane a row, everything in one launch, for any batch.
//
// Shapes: a, q [batch][n][n] row-major, lambda [batch][n]; q null: eigenvalues only. FP32,
// deterministic. A zero, diagonal or repeated spectrum needs no care: implicit QL only rotates.
// NaN/Inf fills its matrix with NaN, info = 1; 2 where the bound on the sweeps was hit.
//
// kOrder lanes (4, 8, 16 or 32, the padding is zeros) share a matrix. Lane r keeps row r of A and
// of Q in registers while Householder reflections act on both; v and w pass through shared memory.
// For QL lane i keeps d_i and e_i in registers and every lane runs the scalar recurrence on what
// it reads by shuffle, while it rotates its own row of Q in shared memory. So nothing waits for a
// block. Small batches take one matrix a warp, large ones 32 / kOrder.
// Cost: about 0.9 n^2 rotations in sequence. Source: Golub & Van Loan, Matrix Computations, 8.3.
#include "block_ops.cuh"
#include "heuristics.h"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

constexpr int kSweepsMax = 60;          // an eigenvalue; QL needs about 1.7
constexpr float kSplit = 6e-8f;         // a coupling this small against its diagonal entries is 0
constexpr float kSplitFloor = 1e-9f;    // or against max|A|, which is in [0.5, 1)
constexpr float kTailSquared = 1e-30f;  // below this the tail of a column is zero
constexpr float kSquareMin = 1e-36f;    // below this a rotation's radius has underflowed

struct Arguments {
  const float* a;
  float *lambda, *q;
  int* info;
  int64_t batch;
  int n, matrices_a_warp;
  bool upper;
};

// The lanes of one matrix.
template <int kOrder>
struct Lanes {
  unsigned mask;
  int part;  // this lane's row
  __device__ Lanes() {
    part = threadIdx.x % kOrder;
    mask =
        kOrder == 32 ? kAllLanes : ((1u << (kOrder & 31)) - 1) << (threadIdx.x / kOrder * kOrder);
  }
  __device__ __forceinline__ float sum(float value) const {
#pragma unroll
    for (int offset = kOrder / 2; offset > 0; offset >>= 1) {
      value += __shfl_xor_sync(mask, value, offset, kOrder);
    }
    return value;
  }
  __device__ __forceinline__ float from(float value, int lane) const {
    return __shfl_sync(mask, value, lane, kOrder);
  }
};

template <int kOrder>
struct Memory {  // of one matrix
  float v[kOrder], w[kOrder];
  float q[kOrder][kOrder + 1];  // column by column: lane r's entries are q[.][r]
  int place[kOrder];
};

// Four entries of a shared vector at a time.
template <int kOrder>
__device__ __forceinline__ void read(const float* from, float (&to)[kOrder]) {
#pragma unroll
  for (int c = 0; c < kOrder; c += 4) {
    const float4 f = *reinterpret_cast<const float4*>(from + c);
    to[c] = f.x, to[c + 1] = f.y, to[c + 2] = f.z, to[c + 3] = f.w;
  }
}
template <int kOrder>
__device__ __forceinline__ float dot(const float (&x)[kOrder], const float (&y)[kOrder]) {
  float sums[4] = {};
#pragma unroll
  for (int c = 0; c < kOrder; ++c) sums[c & 3] = fmaf(x[c], y[c], sums[c & 3]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Row `part` of A to d, e of this lane, and row `part` of Q = H_0 H_1 ... to q.
template <int kOrder>
__device__ __forceinline__ void tridiagonalise(const Lanes<kOrder>& lanes, Memory<kOrder>& m,
                                               float (&a)[kOrder], float (&q)[kOrder], float* d,
                                               float* e) {
  const int r = lanes.part;
#pragma unroll
  for (int j = 0; j < kOrder - 1; ++j) {
    const float x = a[j];
    const float tail = lanes.sum(r > j + 1 ? x * x : 0.f), alpha = lanes.from(x, j + 1);
    const bool live = tail > kTailSquared;
    const float beta = live ? -copysignf(sqrtf(fmaf(alpha, alpha, tail)), alpha) : alpha;
    const float inverse = live ? __fdividef(1.f, alpha - beta) : 0.f;
    const float tau = live ? __fdividef(beta - alpha, beta) : 0.f;
    if (r == j) *d = x, *e = beta;
    const float v_r = r > j + 1 ? x * inverse : (r == j + 1 && live ? 1.f : 0.f);
    float v[kOrder], w[kOrder];
    m.v[r] = v_r;
    __syncwarp(lanes.mask);
    read(m.v, v);
    const float product = dot(a, v);
    const float half = 0.5f * tau * tau * lanes.sum(product * v_r);
    const float w_r = r > j ? fmaf(tau, product, -half * v_r) : 0.f;
    m.w[r] = w_r;
    const float along = -tau * dot(q, v);
    __syncwarp(lanes.mask);
    read(m.w, w);
#pragma unroll
    for (int c = 0; c < kOrder; ++c) {
      if (c > j) a[c] = fmaf(-v_r, w[c], fmaf(-w_r, v[c], a[c]));
      if (c > j) q[c] = fmaf(along, v[c], q[c]);
    }
  }
  if (r == kOrder - 1) *d = a[kOrder - 1], *e = 0;
}

// Diagonalises T (d, e: one entry a lane) and rotates row `part` of m.q. False where the bound on
// the sweeps was hit.
template <int kOrder>
__device__ __forceinline__ bool ql(const Lanes<kOrder>& lanes, Memory<kOrder>& m, int n, float& d,
                                   float& e) {
  const int part = lanes.part;
  float* q = &m.q[0][part];
  constexpr int kStride = kOrder + 1;
  for (int l = 0, sweeps = 0; l < n - 1;) {
    const float next = __shfl_down_sync(lanes.mask, d, 1, kOrder);
    const bool split =
        part >= n - 1 || fabsf(e) <= fmaf(kSplit, fabsf(d) + fabsf(next), kSplitFloor);
    const unsigned splits = __ballot_sync(lanes.mask, split) >> (threadIdx.x / kOrder * kOrder);
    const int end = __ffs(splits >> l << l) - 1;  // the last of the block of T that starts at l
    if (end == l) {
      ++l;
      sweeps = 0;
      continue;
    }
    if (++sweeps > kSweepsMax) return false;
    const float d_l = lanes.from(d, l), e_l = lanes.from(e, l), d_1 = lanes.from(d, l + 1);
    const float ahead = __fdividef(d_1 - d_l, 2.f * e_l);
    const float root = sqrtf(fmaf(ahead, ahead, 1.f));
    float above = lanes.from(d, end);  // d_{i+1} as the sweep finds it
    float g = above - d_l + __fdividef(e_l, ahead + copysignf(root, ahead));
    float sine = 1, cosine = 1, p = 0, right = q[end * kStride];
    float e_i = lanes.from(e, end - 1), d_i = lanes.from(d, end - 1);
    float left = q[(end - 1) * kStride];
    int i = end - 1;
    for (; i >= l; --i) {
      const int before = i > 0 ? i - 1 : 0;  // read ahead: not on the chain
      const float e_next = lanes.from(e, before), d_next = lanes.from(d, before);
      const float left_next = q[before * kStride];
      const float f = sine * e_i, b = cosine * e_i, square = fmaf(f, f, g * g);
      if (square < kSquareMin) break;  // the coupling below has vanished: T splits at i + 1
      const float inverse = rsqrtf(square);
      sine = f * inverse;
      cosine = g * inverse;
      const float shifted = above - p, r = fmaf(d_i - shifted, sine, 2.f * cosine * b);
      p = sine * r;
      if (part == i + 1) d = shifted + p, e = square * inverse;
      g = fmaf(cosine, r, -b);
      q[(i + 1) * kStride] = fmaf(sine, left, cosine * right);
      right = fmaf(cosine, left, -sine * right);
      above = d_i;
      e_i = e_next, d_i = d_next, left = left_next;
    }
    q[(i + 1) * kStride] = right;
    if (part == i + 1) {  // i + 1 is l where the sweep ran through
      d -= p;
      e = i < l ? g : 0.f;
    }
    if (part == end) e = 0;
  }
  return true;
}

template <int kOrder>
__global__ void __launch_bounds__(32) solve_small_kernel(const Arguments g) {
  __shared__ __align__(16) Memory<kOrder> memory[32 / kOrder];
  const Lanes<kOrder> lanes;
  const int slot = threadIdx.x / kOrder, r = lanes.part, n = g.n;
  Memory<kOrder>& m = memory[slot];
  const int64_t matrix = static_cast<int64_t>(blockIdx.x) * g.matrices_a_warp + slot;
  if (slot >= g.matrices_a_warp || matrix >= g.batch) return;  // whole groups: masks stay right
  const float* input = g.a + matrix * n * n;
  float a[kOrder], q[kOrder];
  uint32_t amax = 0;
#pragma unroll
  for (int c = 0; c < kOrder; ++c) {
    const int low = max(r, c), high = min(r, c);
    a[c] = low < n ? input[g.upper ? high * n + low : low * n + high] : 0.f;
    q[c] = r == c ? 1.f : 0.f;
    amax = max(amax, __float_as_uint(a[c]) & 0x7fffffffu);
  }
#pragma unroll
  for (int offset = kOrder / 2; offset > 0; offset >>= 1) {
    amax = max(amax, __shfl_xor_sync(lanes.mask, amax, offset, kOrder));
  }
  const bool finite = amax < kInfinityBits;
  const int exponent = finite ? exponent_above(amax) : 0;
#pragma unroll
  for (int c = 0; c < kOrder; ++c) a[c] = finite ? times_power_of_two(a[c], -exponent) : 0.f;
  float d = 0, e = 0;
  tridiagonalise(lanes, m, a, q, &d, &e);
#pragma unroll
  for (int c = 0; c < kOrder; ++c) m.q[c][r] = q[c];
  __syncwarp(lanes.mask);
  const bool converged = ql(lanes, m, n, d, e);
  int rank = 0;  // by counting, ties by index
  for (int k = 0; k < n; ++k) {
    const float other = lanes.from(d, k);
    rank += other < d || (other == d && k < r);
  }
  const float nan = __int_as_float(0x7fc00000);
  if (r < n) {
    m.place[rank] = r;
    g.lambda[matrix * n + rank] = finite ? times_power_of_two(d, exponent) : nan;
  }
  if (r == 0) g.info[matrix] = !finite ? 1 : (converged ? 0 : 2);
  __syncwarp(lanes.mask);
  if (g.q == nullptr) return;
  float* out = g.q + matrix * n * n;
  for (int k = r; k < n * n; k += kOrder) {
    out[k] = finite ? m.q[m.place[k % n]][k / n] : nan;
  }
}

template <int kOrder>
cudaError_t launch(Arguments g, cudaStream_t stream) {
  // One matrix a warp while that fills no more than half of the GPU's warp slots.
  constexpr int64_t kBlocksMax = 1 << 30, kAloneMax = 16;  // the latter a multiprocessor
  g.matrices_a_warp = g.batch <= kAloneMax * multiprocessors() ? 1 : 32 / kOrder;
  const int64_t total = g.batch, square = static_cast<int64_t>(g.n) * g.n;
  const int64_t step = kBlocksMax * g.matrices_a_warp;
  for (int64_t first = 0; first < total; first += step) {
    g.batch = std::min(step, total - first);
    const int64_t blocks = (g.batch + g.matrices_a_warp - 1) / g.matrices_a_warp;
    solve_small_kernel<kOrder><<<static_cast<unsigned>(blocks), 32, 0, stream>>>(g);
    g.a += g.batch * square;
    g.lambda += g.batch * g.n;
    g.info += g.batch;
    if (g.q != nullptr) g.q += g.batch * square;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t solve_small(const Shape& shape, const float* a, bool upper, float* lambda, float* q,
                        int* info, cudaStream_t stream) {
  const Arguments g{a, lambda, q, info, shape.batch, shape.n, 1, upper};
  if (shape.n <= 4) return launch<4>(g, stream);
  if (shape.n <= 8) return launch<8>(g, stream);
  if (shape.n <= 16) return launch<16>(g, stream);
  return launch<32>(g, stream);
}

}  // namespace crucible::eigh
