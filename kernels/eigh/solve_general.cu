// solve_general.cu: the always-correct solver: Householder + implicit QL, one block a matrix.
//
// For every n without a faster route, and as the re-solve of matrices whose check failed.
// Shapes: a, q [batch][n][n] row-major, lambda [batch][n]. Any n >= 1; NaN/Inf stays inside its
// matrix. FP32 data, FP64 scalars in the QL sweeps. Deterministic: fixed orders of summation.
// Per block: n*n floats of workspace, 5n more for vectors; q doubles as the second n*n buffer.
// Cost: 8/3 n^3 bytes for the reduction (the rank-2 update of column j and the product for
// column j+1 share one pass), 4/3 n^3 flops to form Q, about 3 n^3 flops of rotations.
//
// The algorithm is the textbook one (Golub & Van Loan, Matrix Computations, 8.3): reduce to
// tridiagonal T = Q1^T A Q1, then QL with Wilkinson's shift on T, rotations applied to Q1.
#include "block_ops.cuh"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

constexpr int kSweepsPerValue = 60;     // QL needs about 1.7 a value; a bound, not an estimate
constexpr double kSplit = 1e-10;        // a coupling this small (against FP32's 1e-7) is zero
constexpr float kTailSquared = 1e-30f;  // below this the tail of a column (max|A| ~ 1) is zero

struct Vectors {  // n entries each, in shared memory or in the workspace
  double *d, *e;
  float *v, *w, *next, *c, *s;
};

struct Block {
  float *matrix, *basis;  // n*n: A and later V by rows; Q^T by rows (null: eigenvalues only)
  Vectors vec;
  int n;
};

// One Householder vector from row j of the matrix: v in rows j+1.., tau, e[j].
__device__ float reflector(const Block& b, int j, float* v, float* scratch) {
  const int n = b.n;
  const float* row = b.matrix + static_cast<int64_t>(j) * n;
  float tail = 0;
  for (int r = j + 2 + threadIdx.x; r < n; r += blockDim.x) tail = fmaf(row[r], row[r], tail);
  tail = block_sum(tail, scratch);
  const float alpha = row[j + 1];
  const bool live = tail > kTailSquared;
  const float beta = live ? -copysignf(sqrtf(fmaf(alpha, alpha, tail)), alpha) : alpha;
  const float inverse = live ? 1.f / (alpha - beta) : 0.f;
  for (int r = j + 1 + threadIdx.x; r < n; r += blockDim.x) {
    v[r] = r == j + 1 ? (live ? 1.f : 0.f) : row[r] * inverse;
  }
  if (threadIdx.x == 0) b.vec.e[j] = beta;
  __syncthreads();
  return live ? (beta - alpha) / beta : 0.f;
}

// Reduces the matrix; leaves v_j in row j (columns j+1..) and tau_j in the diagonal entry (j, j).
__device__ void tridiagonalise(const Block& b, float* scratch) {
  const int n = b.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  float *v = b.vec.v, *next = b.vec.next, *w = b.vec.w;
  for (int r = threadIdx.x; r < n; r += blockDim.x) v[r] = w[r] = 0.f;
  __syncthreads();
  for (int j = 0; j < n; ++j) {
    float* row_j = b.matrix + static_cast<int64_t>(j) * n;
    for (int c = j + threadIdx.x; c < n; c += blockDim.x) {  // row j of A - v w^T - w v^T
      row_j[c] -= v[j] * w[c] + w[j] * v[c];
    }
    __syncthreads();
    if (threadIdx.x == 0) b.vec.d[j] = row_j[j];
    if (j == n - 1) break;
    const float tau = reflector(b, j, next, scratch);
    // One pass over the rest: the pending update, then the product with the new vector.
    for (int r = j + 1 + warp; r < n; r += warps) {
      float* row = b.matrix + static_cast<int64_t>(r) * n;
      const float v_r = v[r], w_r = w[r];
      float dot = 0;
#pragma unroll 4
      for (int c = j + 1 + lane; c < n; c += 32) {
        const float value = row[c] - (v_r * w[c] + w_r * v[c]);
        row[c] = value;
        dot = fmaf(value, next[c], dot);
      }
      dot = warp_sum(dot);
      if (lane == 0) b.vec.c[r] = tau * dot;
    }
    __syncthreads();
    float product = 0;
    for (int r = j + 1 + threadIdx.x; r < n; r += blockDim.x) {
      product = fmaf(b.vec.c[r], next[r], product);
    }
    product = block_sum(product, scratch);
    const float half = -0.5f * tau * product;
    for (int r = j + 1 + threadIdx.x; r < n; r += blockDim.x) {
      const float value = next[r];
      w[r] = fmaf(half, value, b.vec.c[r]);
      v[r] = value;
      row_j[r] = value;
    }
    if (threadIdx.x == 0) row_j[j] = tau;
    __syncthreads();
  }
}

// basis = Q1^T by rows: Q1 = H_0 ... H_{n-2}, applied from the last so that only the trailing
// square is touched: H_j P makes P^T -= tau (P^T v) v^T, and a row of P^T is a row of `basis`.
__device__ void form_basis(const Block& b) {
  const int n = b.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  for (int64_t k = threadIdx.x; k < static_cast<int64_t>(n) * n; k += blockDim.x) {
    b.basis[k] = k / n == k % n ? 1.f : 0.f;
  }
  __syncthreads();
  for (int j = n - 2; j >= 0; --j) {
    const float* v = b.matrix + static_cast<int64_t>(j) * n;
    const float tau = v[j];
    if (tau == 0.f) continue;
    for (int r = j + 1 + warp; r < n; r += warps) {  // row r of Q1^T: column r of Q1
      float* row = b.basis + static_cast<int64_t>(r) * n;
      float dot = 0;
#pragma unroll 4
      for (int c = j + 1 + lane; c < n; c += 32) dot = fmaf(row[c], v[c], dot);
      dot = -tau * warp_sum(dot);
#pragma unroll 4
      for (int c = j + 1 + lane; c < n; c += 32) row[c] = fmaf(dot, v[c], row[c]);
    }
    __syncthreads();
  }
}

// The rotations of one QL sweep over [l, m], by one thread. False when the block has split.
__device__ void sweep(const Vectors& vec, int l, int m) {
  double* d = vec.d;
  double* e = vec.e;
  const double g0 = (d[l + 1] - d[l]) / (2 * e[l]);
  const double r0 = sqrt(g0 * g0 + 1);
  double g = d[m] - d[l] + e[l] / (g0 + copysign(r0, g0));
  double s = 1, c = 1, p = 0;
  for (int i = m - 1; i >= l; --i) {
    const double f = s * e[i], b = c * e[i];
    const double square = f * f + g * g;
    if (square == 0) {  // underflow: the coupling below is zero, the block splits here
      d[i + 1] -= p;
      e[m] = 0;
      for (int k = i; k >= l; --k) vec.c[k] = 1.f, vec.s[k] = 0.f;
      return;
    }
    const double inverse = rsqrt(square);
    e[i + 1] = square * inverse;
    s = f * inverse;
    c = g * inverse;
    const double shifted = d[i + 1] - p;
    const double r = (d[i] - shifted) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = shifted + p;
    g = c * r - b;
    vec.c[i] = static_cast<float>(c);
    vec.s[i] = static_cast<float>(s);
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

// Applies a sweep's rotations to the rows l..m of Q^T; a thread owns columns.
__device__ void rotate(const Block& b, int l, int m) {
  const int n = b.n;
  for (int column = threadIdx.x; column < n; column += blockDim.x) {
    float* at = b.basis + column;
    float upper = at[static_cast<int64_t>(m) * n];
#pragma unroll 4
    for (int i = m - 1; i >= l; --i) {
      const float lower = at[static_cast<int64_t>(i) * n], c = b.vec.c[i], s = b.vec.s[i];
      at[static_cast<int64_t>(i + 1) * n] = fmaf(s, lower, c * upper);
      upper = fmaf(c, lower, -s * upper);
    }
    at[static_cast<int64_t>(l) * n] = upper;
  }
}

// Diagonalises T in place. Returns false when the bound on the sweeps was hit.
__device__ bool ql(const Block& b, int* range) {
  const int n = b.n;
  double *d = b.vec.d, *e = b.vec.e;
  if (threadIdx.x == 0) e[n - 1] = 0;
  int l = 0;
  for (int64_t left = static_cast<int64_t>(kSweepsPerValue) * n; l < n; --left) {
    __syncthreads();
    if (left == 0) return false;
    if (threadIdx.x == 0) {
      int m = l;
      for (; l < n;) {
        for (m = l; m < n - 1; ++m) {
          if (fabs(e[m]) <= kSplit * (fabs(d[m]) + fabs(d[m + 1])) || fabs(e[m]) < 0.1 * kSplit)
            break;
        }
        if (m > l) break;
        ++l;
      }
      if (l < n) sweep(b.vec, l, m);
      range[0] = l;
      range[1] = m;
    }
    __syncthreads();
    l = range[0];
    if (l < n && b.basis != nullptr) rotate(b, l, range[1]);
  }
  return true;
}

// Eigenvalues sorted by counting (ties by index), vectors written in that order.
__device__ void write_sorted(const Block& b, int exponent, float* lambda, float* q) {
  const int n = b.n;
  int* place = reinterpret_cast<int*>(b.vec.c);  // place[k]: which row of Q^T is eigenvector k
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const double mine = b.vec.d[i];
    int rank = 0;
    for (int k = 0; k < n; ++k) rank += b.vec.d[k] < mine || (b.vec.d[k] == mine && k < i);
    lambda[rank] = times_power_of_two(static_cast<float>(mine), exponent);
    place[rank] = i;
  }
  __syncthreads();
  if (q == nullptr) return;
  __shared__ float tile[32][33];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  for (int r0 = 0; r0 < n; r0 += 32) {
    for (int k0 = 0; k0 < n; k0 += 32) {
      for (int k = warp; k < 32; k += warps) {
        if (k0 + k < n && r0 + lane < n) {
          tile[k][lane] = b.basis[static_cast<int64_t>(place[k0 + k]) * n + r0 + lane];
        }
      }
      __syncthreads();
      for (int r = warp; r < 32; r += warps) {
        if (r0 + r < n && k0 + lane < n) {
          q[static_cast<int64_t>(r0 + r) * n + k0 + lane] = tile[lane][r];
        }
      }
      __syncthreads();
    }
  }
}

// Copies the chosen triangle to both halves of b.matrix, scaled to max|a| in [0.5, 1). Returns
// false for NaN/Inf.
__device__ bool load(const float* a, bool upper, const Block& b, int* exponent, uint32_t* scratch) {
  const int n = b.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  uint32_t amax = 0;
  for (int r = warp; r < n; r += warps) {
    const float* row = a + static_cast<int64_t>(r) * n;
    for (int c = (upper ? r : 0) + lane; c < (upper ? n : r + 1); c += 32) {
      amax = max(amax, __float_as_uint(row[c]) & 0x7fffffffu);
    }
  }
  amax = block_max(amax, scratch);
  if (amax >= kInfinityBits) return false;
  *exponent = exponent_above(amax);
  for (int r = warp; r < n; r += warps) {
    const float* row = a + static_cast<int64_t>(r) * n;
    for (int c = (upper ? r : 0) + lane; c < (upper ? n : r + 1); c += 32) {
      const float value = times_power_of_two(row[c], -*exponent);
      b.matrix[static_cast<int64_t>(r) * n + c] = value;
      b.matrix[static_cast<int64_t>(c) * n + r] = value;
    }
  }
  __syncthreads();
  return true;
}

struct Arguments {
  const float* a;
  float *lambda, *q;
  int* info;
  const int* flags;
  int64_t batch;
  int n;
  bool upper;
  float* squares;  // n*n floats a block
  char* vectors;   // vector_bytes(n) a block
};

__host__ __device__ constexpr int64_t vector_bytes(int n) {
  return (static_cast<int64_t>(n) * (2 * sizeof(double) + 5 * sizeof(float)) + 255) / 256 * 256;
}

__device__ void fill_nan(const Arguments& g, int64_t matrix) {
  const float nan = __int_as_float(0x7fc00000);
  for (int i = threadIdx.x; i < g.n; i += blockDim.x) g.lambda[matrix * g.n + i] = nan;
  if (g.q == nullptr) return;
  const int64_t entries = static_cast<int64_t>(g.n) * g.n;
  for (int64_t i = threadIdx.x; i < entries; i += blockDim.x) g.q[matrix * entries + i] = nan;
}

__global__ void __launch_bounds__(512) solve_general_kernel(Arguments g) {
  __shared__ float scratch[32];
  __shared__ uint32_t scratch_bits[32];
  __shared__ int range[2];
  const int64_t square = static_cast<int64_t>(g.n) * g.n;
  Block b;
  b.n = g.n;
  char* at = g.vectors + blockIdx.x * vector_bytes(g.n);
  b.vec.d = reinterpret_cast<double*>(at);
  b.vec.e = b.vec.d + g.n;
  b.vec.v = reinterpret_cast<float*>(b.vec.e + g.n);
  b.vec.w = b.vec.v + g.n;
  b.vec.next = b.vec.w + g.n;
  b.vec.c = b.vec.next + g.n;
  b.vec.s = b.vec.c + g.n;
  for (int64_t matrix = blockIdx.x; matrix < g.batch; matrix += gridDim.x) {
    if (g.flags != nullptr && g.flags[matrix] == 0) continue;
    float* own = g.squares + blockIdx.x * square;
    float* q = g.q == nullptr ? nullptr : g.q + matrix * square;
    b.matrix = q == nullptr ? own : q;
    b.basis = q == nullptr ? nullptr : own;
    int exponent = 0;
    __syncthreads();
    if (!load(g.a + matrix * square, g.upper, b, &exponent, scratch_bits)) {
      fill_nan(g, matrix);
      if (threadIdx.x == 0) g.info[matrix] = 1;
      continue;
    }
    tridiagonalise(b, scratch);
    if (b.basis != nullptr) form_basis(b);
    const bool converged = ql(b, range);
    __syncthreads();
    write_sorted(b, exponent, g.lambda + matrix * g.n, q);
    if (threadIdx.x == 0) g.info[matrix] = converged ? 0 : 2;
  }
}

}  // namespace

size_t solve_general_bytes(const Shape& shape, int blocks_max) {
  const size_t blocks = grid_for(shape.batch, blocks_max);
  const size_t square = static_cast<size_t>(shape.n) * shape.n * sizeof(float);
  return aligned(blocks * square) + blocks * vector_bytes(shape.n);
}

cudaError_t solve_general(const Shape& shape, const float* a, bool upper, float* lambda, float* q,
                          int* info, const int* flags, int blocks_max, void* workspace,
                          cudaStream_t stream) {
  const unsigned blocks = grid_for(shape.batch, blocks_max);
  Carver carver(workspace);
  Arguments g{a, lambda, q, info, flags, shape.batch, shape.n, upper, nullptr, nullptr};
  g.squares = carver.take<float>(static_cast<size_t>(blocks) * shape.n * shape.n);
  g.vectors = carver.take<char>(blocks * vector_bytes(shape.n));
  const int threads = std::clamp((shape.n + 31) / 32 * 32, 64, 512);
  solve_general_kernel<<<blocks, threads, 0, stream>>>(g);
  return cudaGetLastError();
}

}  // namespace crucible::eigh
