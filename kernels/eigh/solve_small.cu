// solve_small.cu: n <= 32, a few lanes a matrix, everything in one launch, for any batch.
//
// Shapes: a, q [batch][n][n] row-major, lambda [batch][n]; q null: eigenvalues only. FP32,
// deterministic; a zero, diagonal or repeated spectrum needs no care here, because implicit QL
// only rotates. NaN/Inf fills its matrix with NaN, info = 1; 2 where the bound on sweeps was hit.
//
// kOrder / 2 lanes share a matrix and a warp holds 64 / kOrder of them; a lane owns two rows of A
// and of Q in shared memory. Householder with Q formed from the left (row by row, no exchange),
// then QL: every lane runs the scalar recurrence on its own copy of d and e and rotates its own
// rows, so the sweeps need no synchronisation. Cost: about 0.9 n^2 rotations in sequence, 35 us at
// n = 32 for the first 1,200 matrices or so; the batch is the parallelism.
// Source: Golub & Van Loan, Matrix Computations, 8.3.
#include "block_ops.cuh"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

constexpr int kSweepsMax = 60;        // an eigenvalue; QL needs about 1.7
constexpr float kSplit = 6e-8f;       // a coupling this small against its diagonal entries is zero
constexpr float kSplitFloor = 1e-9f;  // or against max|A|, which is in [0.5, 1)
constexpr float kTailSquared = 1e-30f;  // below this the tail of a column is zero

struct Arguments {
  const float* a;
  float *lambda, *q;
  int* info;
  int64_t batch;
  int n;
  bool upper;
};

template <int kOrder>
struct Group {
  static constexpr int kLanes = kOrder / 2, kRows = 2, kMatrices = 32 / kLanes;
  static constexpr int kStride = kOrder + 1;
  // The group's part of shared memory: A, Q, two vectors, and d, e of every lane interleaved.
  struct Matrix {
    float a[kOrder][kStride], q[kOrder][kStride], v[kOrder], w[kOrder];
    int place[kOrder + 16];  // and a pad: two matrices of a warp start 16 banks apart
  };
  struct Memory {
    Matrix matrix[kMatrices];
    float d[kOrder][32], e[kOrder][32];
  };
  static __device__ __forceinline__ float sum(float value) {
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset >>= 1) {
      value += __shfl_xor_sync(kAllLanes, value, offset);
    }
    return value;
  }
  static __device__ __forceinline__ uint32_t most(uint32_t value) {
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset >>= 1) {
      value = max(value, __shfl_xor_sync(kAllLanes, value, offset));
    }
    return value;
  }
};

// Reduces m.a to d, e (this lane's copies) and makes m.q = H_0 H_1 ...
template <int kOrder, typename Memory>
__device__ __forceinline__ void tridiagonalise(Memory& s, typename Group<kOrder>::Matrix& m, int n,
                                               int part, bool vectors) {
  using G = Group<kOrder>;
  const int lane = threadIdx.x;
  for (int j = 0; j < n - 1; ++j) {
    float tail = 0;
    for (int r = part; r < n; r += G::kLanes) {
      if (r > j + 1) tail = fmaf(m.a[r][j], m.a[r][j], tail);
    }
    tail = G::sum(tail);
    const float alpha = m.a[j + 1][j];
    const bool live = tail > kTailSquared;
    const float beta = live ? -copysignf(sqrtf(fmaf(alpha, alpha, tail)), alpha) : alpha;
    const float inverse = live ? 1.f / (alpha - beta) : 0.f;
    const float tau = live ? (beta - alpha) / beta : 0.f;
    for (int r = part; r < n; r += G::kLanes) {
      m.v[r] = r > j + 1 ? m.a[r][j] * inverse : (r == j + 1 && live ? 1.f : 0.f);
    }
    s.d[j][lane] = m.a[j][j];
    s.e[j][lane] = beta;
    __syncwarp();
    float p[G::kRows], dot = 0;
#pragma unroll
    for (int i = 0; i < G::kRows; ++i) {
      const int r = part + i * G::kLanes;
      p[i] = 0;
      if (r <= j || r >= n) continue;
      for (int c = j + 1; c < n; ++c) p[i] = fmaf(m.a[r][c], m.v[c], p[i]);
      dot = fmaf(p[i], m.v[r], dot);
    }
    const float half = 0.5f * tau * tau * G::sum(dot);
#pragma unroll
    for (int i = 0; i < G::kRows; ++i) {
      const int r = part + i * G::kLanes;
      if (r < n) m.w[r] = r > j ? fmaf(tau, p[i], -half * m.v[r]) : 0.f;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < G::kRows; ++i) {
      const int r = part + i * G::kLanes;
      if (r >= n) continue;
      if (r > j) {
        const float v = m.v[r], w = m.w[r];
        for (int c = j + 1; c < n; ++c) {
          m.a[r][c] = fmaf(-v, m.w[c], fmaf(-w, m.v[c], m.a[r][c]));
        }
      }
      if (vectors && r > 0) {  // row r of Q H_j; row 0 of Q is that of I
        float product = 0;
        for (int c = j + 1; c < n; ++c) product = fmaf(m.q[r][c], m.v[c], product);
        product *= -tau;
        for (int c = j + 1; c < n; ++c) m.q[r][c] = fmaf(product, m.v[c], m.q[r][c]);
      }
    }
    __syncwarp();
  }
  s.d[n - 1][lane] = m.a[n - 1][n - 1];
  s.e[n - 1][lane] = 0;
}

// One QL sweep over [l, end] of this lane's copy of T, applied to its rows of q.
template <int kOrder, typename Memory>
__device__ __forceinline__ void sweep(Memory& s, typename Group<kOrder>::Matrix& m, int n, int l,
                                      int end, int part, bool vectors) {
  using G = Group<kOrder>;
  const int lane = threadIdx.x;
  const auto d = [&](int i) -> float& { return s.d[i][lane]; };
  const auto e = [&](int i) -> float& { return s.e[i][lane]; };
  const float coupling = e(l), ahead = (d(l + 1) - d(l)) / (2.f * coupling);
  const float root = sqrtf(fmaf(ahead, ahead, 1.f));
  float g = d(end) - d(l) + coupling / (ahead + copysignf(root, ahead));
  float sine = 1, cosine = 1, p = 0, right[G::kRows] = {};
  if (vectors) {
#pragma unroll
    for (int k = 0; k < G::kRows; ++k) {
      const int r = part + k * G::kLanes;
      if (r < n) right[k] = m.q[r][end];
    }
  }
  int i = end - 1;
  for (; i >= l; --i) {
    const float f = sine * e(i), b = cosine * e(i), square = fmaf(f, f, g * g);
    if (square < 1e-36f) break;  // the coupling below has vanished: the block splits at i + 1
    const float inverse = rsqrtf(square);
    e(i + 1) = square * inverse;
    sine = f * inverse;
    cosine = g * inverse;
    const float shifted = d(i + 1) - p, r = fmaf(d(i) - shifted, sine, 2.f * cosine * b);
    p = sine * r;
    d(i + 1) = shifted + p;
    g = fmaf(cosine, r, -b);
    if (vectors) {
#pragma unroll
      for (int k = 0; k < G::kRows; ++k) {
        const int row = part + k * G::kLanes;
        if (row >= n) continue;
        const float left = m.q[row][i];
        m.q[row][i + 1] = fmaf(sine, left, cosine * right[k]);
        right[k] = fmaf(cosine, left, -sine * right[k]);
      }
    }
  }
  if (vectors) {
#pragma unroll
    for (int k = 0; k < G::kRows; ++k) {
      const int row = part + k * G::kLanes;
      if (row < n) m.q[row][i + 1] = right[k];
    }
  }
  if (i < l) {
    d(l) -= p;
    e(l) = g;
  } else {
    d(i + 1) -= p;
    e(i + 1) = 0;
  }
  e(end) = 0;
}

template <int kOrder, typename Memory>
__device__ __forceinline__ bool ql(Memory& s, typename Group<kOrder>::Matrix& m, int n, int part,
                                   bool vectors) {
  const int lane = threadIdx.x;
  for (int l = 0; l < n; ++l) {
    for (int sweeps = 0;; ++sweeps) {
      int end = l;
      for (; end < n - 1; ++end) {
        const float size = fabsf(s.d[end][lane]) + fabsf(s.d[end + 1][lane]);
        if (fabsf(s.e[end][lane]) <= fmaf(kSplit, size, kSplitFloor)) break;
      }
      if (end == l) break;
      if (sweeps == kSweepsMax) return false;
      sweep<kOrder>(s, m, n, l, end, part, vectors);
    }
  }
  return true;
}

template <int kOrder>
__global__ void __launch_bounds__(32) solve_small_kernel(const Arguments g) {
  using G = Group<kOrder>;
  __shared__ typename G::Memory s;
  const int lane = threadIdx.x, part = lane % G::kLanes, slot = lane / G::kLanes, n = g.n;
  typename G::Matrix& m = s.matrix[slot];
  const int64_t matrix = static_cast<int64_t>(blockIdx.x) * G::kMatrices + slot;
  const bool mine = matrix < g.batch, vectors = g.q != nullptr;
  const float* a = g.a + (mine ? matrix : 0) * n * n;
  uint32_t amax = 0;
  for (int k = part; k < n * n; k += G::kLanes) {
    const int r = k / n, c = k % n;
    if (g.upper ? c < r : c > r) continue;
    const float value = a[k];
    amax = max(amax, __float_as_uint(value) & 0x7fffffffu);
    m.a[r][c] = m.a[c][r] = value;
    m.q[r][c] = m.q[c][r] = r == c ? 1.f : 0.f;
  }
  amax = G::most(amax);
  const bool finite = amax < kInfinityBits;
  const int exponent = finite ? exponent_above(amax) : 0;
  __syncwarp();
  for (int r = part; r < n; r += G::kLanes) {
    for (int c = 0; c < n; ++c) {
      m.a[r][c] = finite ? times_power_of_two(m.a[r][c], -exponent) : 0.f;
    }
  }
  __syncwarp();
  tridiagonalise<kOrder>(s, m, n, part, vectors);
  __syncwarp();
  const bool converged = ql<kOrder>(s, m, n, part, vectors);
  __syncwarp();
  const float nan = __int_as_float(0x7fc00000);
  for (int i = part; i < n; i += G::kLanes) {  // sorted by counting, ties by index
    const float value = s.d[i][lane];
    int rank = 0;
    for (int k = 0; k < n; ++k) {
      const float other = s.d[k][lane];
      rank += other < value || (other == value && k < i);
    }
    m.place[rank] = i;
    if (mine) {
      g.lambda[matrix * n + rank] = finite ? times_power_of_two(value, exponent) : nan;
    }
  }
  __syncwarp();
  if (!mine) return;
  if (part == 0) g.info[matrix] = !finite ? 1 : (converged ? 0 : 2);
  if (!vectors) return;
  float* q = g.q + matrix * n * n;
  for (int k = part; k < n * n; k += G::kLanes) {
    q[k] = finite ? m.q[k / n][m.place[k % n]] : nan;
  }
}

template <int kOrder>
cudaError_t launch(Arguments g, cudaStream_t stream) {
  constexpr int64_t kBlocksMax = 1 << 30, kMatrices = Group<kOrder>::kMatrices;
  const int64_t total = g.batch, square = static_cast<int64_t>(g.n) * g.n;
  for (int64_t first = 0; first < total; first += kBlocksMax * kMatrices) {
    g.batch = std::min(kBlocksMax * kMatrices, total - first);
    solve_small_kernel<kOrder>
        <<<static_cast<unsigned>((g.batch + kMatrices - 1) / kMatrices), 32, 0, stream>>>(g);
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
  const Arguments g{a, lambda, q, info, shape.batch, shape.n, upper};
  if (shape.n <= 4) return launch<4>(g, stream);
  if (shape.n <= 8) return launch<8>(g, stream);
  if (shape.n <= 16) return launch<16>(g, stream);
  return launch<32>(g, stream);
}

}  // namespace crucible::eigh
