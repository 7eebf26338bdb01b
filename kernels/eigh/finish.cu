// finish.cu: undoes the scaling, checks every matrix on random vectors, writes info and flags.
//
// Shapes: a, q [batch][n][n] row-major; lambda_scaled [batch][ld]; lambda [batch][n]. Reads one
// triangle of a once and q twice. Deterministic: fixed orders, a fixed sign vector.
// The checks: with s a vector of signs and u = Q s, ||A u - Q (L s)||_2 estimates the residual
// norm1(A Q - Q L) where its entries are of one size, and ||Q^T u - s||_2 does so for Q^T Q - I.
// Where one eigenvalue dominates, the error sits in its column alone and a random vector misses
// it: so the first and last column are checked exactly, in the 1-norm. Its error r also leaves a
// part of the dominant vector q in the other columns, q_i's residual being about q (r^T q_i), which
// a random vector sees sqrt(n) times too small: where |q|_1 |r|_2 could pass the gate, all r^T q_i
// are formed.
// A matrix over a limit, or whose eigenvalues are not finite and ascending, is flagged, and
// solve_general solves it again in FP32.
#include "block_ops.cuh"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

constexpr float kEps = 1.1920929e-7f;
// In units of n eps (norm1(A)); half of a gate, and 0.8 of it for the sum of the two extreme
// columns.
constexpr float kEigenLimit = 100.f, kExtremeLimit = 160.f, kOrthogonalLimit = 50.f;
constexpr float kAlignedLimit = 150.f;  // of the other columns' parts along the extreme vectors

constexpr int kChunkRows = 64;  // rows of a matrix a block of the two check passes takes

// Products of one matrix: n floats each.
struct Products {
  float *u, *t;    // Q s and Q (L s), s a sign vector
  float *u2, *t2;  // the same with s on the first and last column only
};

struct Arguments {
  const float* a;
  const float* lambda_scaled;
  const int *exponent, *status;
  float *lambda, *q;
  int *info, *flags;
  float* products;  // [batch][4][n]
  float4* partial;  // [batch][chunks][n]: A u, A u2, |A| 1, Q^T u, by chunk of rows
  int64_t batch;
  int n, ld, chunks;
  bool upper;
  __device__ Products of(int64_t matrix) const {
    float* p = products + matrix * 4 * n;
    return {p, p + n, p + 2 * n, p + 3 * n};
  }
};

__device__ __forceinline__ float sign_of(int k) {
  uint32_t h = static_cast<uint32_t>(k) * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  return (h >> 13) & 1 ? 1.f : -1.f;
}

// u, t, u2, t2 of a chunk of rows; a warp a row. Grid: chunks x matrices.
__global__ void __launch_bounds__(256) multiply_basis_kernel(Arguments g) {
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int row_end = min(n, (static_cast<int>(blockIdx.x) + 1) * kChunkRows);
  for (int64_t matrix = blockIdx.y; matrix < g.batch; matrix += gridDim.y) {
    const float* lambda = g.lambda_scaled + matrix * g.ld;
    const Products p = g.of(matrix);
    for (int row = blockIdx.x * kChunkRows + warp; row < row_end; row += 8) {
      const float* at = g.q + (matrix * n + row) * n;
      float u = 0, t = 0, u2 = 0, t2 = 0;
#pragma unroll 4
      for (int k = lane; k < n; k += 32) {
        const float x = at[k] * sign_of(k), y = x * lambda[k];
        u += x;
        t += y;
        if (k == 0 || k == n - 1) u2 += x, t2 += y;
      }
      u = warp_sum(u);
      t = warp_sum(t);
      u2 = warp_sum(u2);
      t2 = warp_sum(t2);
      if (lane == 0) p.u[row] = u, p.t[row] = t, p.u2[row] = u2, p.t2[row] = t2;
    }
  }
}

// A chunk of rows of A (one triangle, used in both directions) and of Q. Grid: chunks x matrices.
__global__ void __launch_bounds__(256) multiply_input_kernel(Arguments g) {
  __shared__ float4 row_part[kChunkRows];
  __shared__ float su[kChunkRows], su2[kChunkRows];
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = blockIdx.x * kChunkRows, rows = min(kChunkRows, n - first);
  for (int64_t matrix = blockIdx.y; matrix < g.batch; matrix += gridDim.y) {
    const float* a = g.a + (matrix * n + first) * n;
    const float* q = g.q + (matrix * n + first) * n;
    const Products p = g.of(matrix);
    const int exponent = -g.exponent[matrix];
    __syncthreads();
    if (threadIdx.x < rows) {
      su[threadIdx.x] = p.u[first + threadIdx.x];
      su2[threadIdx.x] = p.u2[first + threadIdx.x];
    }
    for (int r = warp; r < rows; r += 8) {
      const int row = first + r;
      float y = 0, y2 = 0, sum = 0;
#pragma unroll 4
      for (int k = (g.upper ? row : 0) + lane; k < (g.upper ? n : row + 1); k += 32) {
        const float value = times_power_of_two(a[static_cast<int64_t>(r) * n + k], exponent);
        y = fmaf(value, p.u[k], y);
        y2 = fmaf(value, p.u2[k], y2);
        sum += fabsf(value);
      }
      y = warp_sum(y);
      y2 = warp_sum(y2);
      sum = warp_sum(sum);
      if (lane == 0) row_part[r] = make_float4(y, y2, sum, 0.f);
    }
    __syncthreads();
    float4* out = g.partial + (matrix * g.chunks + blockIdx.x) * n;
    for (int k = threadIdx.x; k < n; k += 256) {
      float4 part =
          k >= first && k < first + rows ? row_part[k - first] : make_float4(0.f, 0.f, 0.f, 0.f);
      // Rows of the chunk that hold column k off the diagonal.
      const int begin = g.upper ? 0 : max(0, k + 1 - first),
                end = g.upper ? min(rows, k - first) : rows;
#pragma unroll 4
      for (int r = begin; r < end; ++r) {
        const float value = times_power_of_two(a[static_cast<int64_t>(r) * n + k], exponent);
        part.x = fmaf(value, su[r], part.x);
        part.y = fmaf(value, su2[r], part.y);
        part.z += fabsf(value);
      }
#pragma unroll 8
      for (int r = 0; r < rows; ++r)
        part.w = fmaf(q[static_cast<int64_t>(r) * n + k], su[r], part.w);
      out[k] = part;
    }
  }
}

// Writes the answer of a zero (identity, 0) or non-finite (NaN) matrix.
__device__ void fill(const Arguments& g, int64_t matrix, bool zero) {
  const float nan = __int_as_float(0x7fc00000);
  for (int k = threadIdx.x; k < g.n; k += blockDim.x) g.lambda[matrix * g.n + k] = zero ? 0 : nan;
  if (g.q == nullptr) return;
  float* q = g.q + matrix * g.n * g.n;
  for (int row = 0; row < g.n; ++row) {
    for (int k = threadIdx.x; k < g.n; k += blockDim.x) {
      q[static_cast<int64_t>(row) * g.n + k] = !zero ? nan : (row == k ? 1.f : 0.f);
    }
  }
}

// The largest |r^T q_i| over the columns, r = p.u2. The block calls it.
__device__ float largest_alignment(const Arguments& g, const float* q, const Products& p,
                                   uint32_t* scratch) {
  float largest = 0;
  for (int k = threadIdx.x; k < g.n; k += blockDim.x) {
    float dot = 0;
#pragma unroll 8
    for (int row = 0; row < g.n; ++row) {
      dot = fmaf(q[static_cast<int64_t>(row) * g.n + k], p.u2[row], dot);
    }
    largest = fmaxf(largest, fabsf(dot));
  }
  return __uint_as_float(block_max(__float_as_uint(largest), scratch));
}

// Judges one matrix and writes its eigenvalues, info and flag.
__global__ void __launch_bounds__(256) judge_kernel(Arguments g) {
  __shared__ float scratch[32];
  __shared__ uint32_t scratch_bits[32];
  const int n = g.n;
  for (int64_t matrix = blockIdx.x; matrix < g.batch; matrix += gridDim.x) {
    const int status = g.status[matrix], exponent = g.exponent[matrix];
    const float* lambda = g.lambda_scaled + matrix * g.ld;
    const Products p = g.of(matrix);
    const float* q = g.q + matrix * n * n;
    float unsorted = 0, norm = 0, residual = 0, extreme = 0, defect = 0;
    float square = 0, first = 0, last = 0;  // |r|_2^2 and |q|_1 of the extreme columns
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
      g.lambda[matrix * n + k] = times_power_of_two(lambda[k], exponent);
      if (!(fabsf(lambda[k]) < 1e30f) || (k > 0 && lambda[k] < lambda[k - 1])) unsorted = 1;
      if (g.q == nullptr) continue;
      float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
      for (int c = 0; c < g.chunks; ++c) {
        const float4 part = g.partial[(matrix * g.chunks + c) * n + k];
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      norm = fmaxf(norm, sum.z);
      residual = fmaf(sum.x - p.t[k], sum.x - p.t[k], residual);
      const float r = sum.y - p.t2[k];
      extreme += fabsf(r);
      square = fmaf(r, r, square);
      p.u2[k] = r;
      first += fabsf(q[static_cast<int64_t>(k) * n]);
      last += fabsf(q[static_cast<int64_t>(k) * n + n - 1]);
      const float off = sum.w - sign_of(k);
      defect = fmaf(off, off, defect);
    }
    const bool disordered = block_sum(unsorted, scratch) > 0;
    bool bad = false;
    norm = __uint_as_float(block_max(__float_as_uint(norm), scratch_bits));
    residual = sqrtf(block_sum(residual, scratch));
    extreme = block_sum(extreme, scratch);
    defect = sqrtf(block_sum(defect, scratch));
    if (g.q != nullptr) {
      const float unit = n * kEps;
      const float size = fmaxf(block_sum(first, scratch), block_sum(last, scratch));
      const float aligned = kAlignedLimit * unit * norm;
      if (size * sqrtf(block_sum(square, scratch)) > aligned) {
        bad = size * largest_alignment(g, q, p, scratch_bits) > aligned;
      }
      bad = bad || !(residual <= kEigenLimit * unit * norm) ||
            !(extreme <= kExtremeLimit * unit * norm) || !(defect <= kOrthogonalLimit * unit);
    }
    bad = bad || disordered;
    const bool zero = status == 0 && g.q != nullptr && norm == 0.f;
    if (status != 0 || zero) {
      __syncthreads();
      fill(g, matrix, zero);
    }
    if (threadIdx.x == 0) {
      g.info[matrix] = status;
      g.flags[matrix] = status == 0 && !zero && bad;
    }
  }
}

__global__ void __launch_bounds__(256) transpose_kernel(float* q, int64_t batch, int n) {
  __shared__ float low[32][33], high[32][33];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int tiles = (n + 31) / 32;
  const int64_t pairs = static_cast<int64_t>(tiles) * (tiles + 1) / 2;
  for (int64_t unit = blockIdx.x; unit < batch * pairs; unit += gridDim.x) {
    const int pair = static_cast<int>(unit % pairs);
    int i = 0;
    while ((i + 1) * (i + 2) / 2 <= pair) ++i;
    const int j = pair - i * (i + 1) / 2;
    float* base = q + unit / pairs * n * n;
    for (int r = warp; r < 32; r += 8) {
      const int row = i * 32 + r, column = j * 32 + r;
      if (row < n && j * 32 + lane < n) {
        low[r][lane] = base[static_cast<int64_t>(row) * n + j * 32 + lane];
      }
      if (column < n && i * 32 + lane < n) {
        high[r][lane] = base[static_cast<int64_t>(column) * n + i * 32 + lane];
      }
    }
    __syncthreads();
    for (int r = warp; r < 32; r += 8) {
      const int row = i * 32 + r, column = j * 32 + r;
      if (row < n && j * 32 + lane < n) {
        base[static_cast<int64_t>(row) * n + j * 32 + lane] = high[lane][r];
      }
      if (column < n && i * 32 + lane < n) {
        base[static_cast<int64_t>(column) * n + i * 32 + lane] = low[lane][r];
      }
    }
    __syncthreads();
  }
}

}  // namespace

size_t finish_bytes(const Shape& shape) {
  if (!shape.vectors) return 0;
  const size_t n = shape.n, chunks = (n + kChunkRows - 1) / kChunkRows;
  return aligned(shape.batch * 4 * n * sizeof(float)) +
         aligned(shape.batch * chunks * n * sizeof(float4));
}

cudaError_t finish(const Shape& shape, const float* a, bool upper, const float* lambda_scaled,
                   const int* exponent, const int* status, float* lambda, float* q, int* info,
                   int* flags, void* workspace, cudaStream_t stream) {
  const int chunks = (shape.n + kChunkRows - 1) / kChunkRows;
  Carver carver(workspace);
  float* products = carver.take<float>(shape.batch * 4 * shape.n);
  float4* partial = carver.take<float4>(shape.batch * chunks * shape.n);
  const Arguments g{a,        lambda_scaled, exponent,    status,  lambda,     q,      info, flags,
                    products, partial,       shape.batch, shape.n, shape.ld(), chunks, upper};
  if (q != nullptr) {
    const dim3 grid(chunks, grid_for(shape.batch, 65535));
    multiply_basis_kernel<<<grid, 256, 0, stream>>>(g);
    multiply_input_kernel<<<grid, 256, 0, stream>>>(g);
  }
  judge_kernel<<<grid_for(shape.batch, 65535), 256, 0, stream>>>(g);
  return cudaGetLastError();
}

cudaError_t transpose_in_place(const Shape& shape, float* q, cudaStream_t stream) {
  transpose_kernel<<<grid_for(shape.batch * ((shape.n + 31) / 32), 4096), 256, 0, stream>>>(
      q, shape.batch, shape.n);
  return cudaGetLastError();
}

}  // namespace crucible::eigh
