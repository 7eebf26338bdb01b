// finish.cu: undoes the scaling, checks every matrix on a random vector, writes info and flags.
//
// Shapes: a, q [batch][n][n] row-major; lambda_scaled [batch][ld]; lambda [batch][n]. One block a
// matrix. Reads one triangle of a and q twice. Deterministic: fixed orders, a fixed sign vector.
// The check: with s a vector of signs and u = Q s, ||A u - Q (L s)||_2 estimates the residual
// norm1(A Q - Q L) where its entries are of one size, and ||Q^T u - s||_2 does so for Q^T Q - I.
// A matrix over half of a gate is flagged, and solve_general solves it again in FP32.
#include "block_ops.cuh"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

constexpr float kEps = 1.1920929e-7f;
constexpr float kEigenGateHalf = 100.f, kOrthogonalGateHalf = 50.f;  // in units of n eps

struct Arguments {
  const float* a;
  const float* lambda_scaled;
  const int *exponent, *status;
  float *lambda, *q;
  int *info, *flags;
  int64_t batch;
  int n, ld;
  bool upper;
};

__device__ __forceinline__ float sign_of(int k) {
  uint32_t h = static_cast<uint32_t>(k) * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  return (h >> 13) & 1 ? 1.f : -1.f;
}

// Shared memory: u, t, y, norm (n floats each), then per warp n float2 partial (sum, abs sum).
struct Scratch {
  float *u, *t, *y, *norm;
  float2* partial;
};

// u = Q s and t = Q (L s); a warp owns rows.
__device__ void multiply_basis(const Arguments& g, const float* q, const float* lambda,
                               const Scratch& s) {
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    s.y[k] = sign_of(k);
    s.norm[k] = sign_of(k) * lambda[k];
  }
  __syncthreads();
  for (int row = warp; row < n; row += warps) {
    const float* at = q + static_cast<int64_t>(row) * n;
    float u = 0, t = 0;
#pragma unroll 8
    for (int k = lane; k < n; k += 32) {
      u = fmaf(at[k], s.y[k], u);
      t = fmaf(at[k], s.norm[k], t);
    }
    u = warp_sum(u);
    t = warp_sum(t);
    if (lane == 0) s.u[row] = u, s.t[row] = t;
  }
  __syncthreads();
}

// y = A u and the 1-norms of the columns, from one triangle.
__device__ void multiply_input(const Arguments& g, const float* a, int exponent, const Scratch& s) {
  const int n = g.n, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  float2* own = s.partial + warp * n;
  for (int k = lane; k < n; k += 32) own[k] = make_float2(0.f, 0.f);
  __syncwarp();
  for (int row = warp; row < n; row += warps) {
    const float* at = a + static_cast<int64_t>(row) * n;
    const float u_row = s.u[row];
    float dot = 0, sum = 0;
#pragma unroll 4
    for (int k = (g.upper ? row : 0) + lane; k < (g.upper ? n : row + 1); k += 32) {
      const float value = times_power_of_two(at[k], -exponent);
      dot = fmaf(value, s.u[k], dot);
      sum += fabsf(value);
      if (k != row) {
        float2 column = own[k];
        column.x = fmaf(value, u_row, column.x);
        column.y += fabsf(value);
        own[k] = column;
      }
    }
    dot = warp_sum(dot);
    sum = warp_sum(sum);
    __syncwarp();
    if (lane == 0) own[row].x += dot, own[row].y += sum;
    __syncwarp();
  }
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    float y = 0, norm = 0;
    for (int w = 0; w < warps; ++w) y += s.partial[w * n + k].x, norm += s.partial[w * n + k].y;
    s.y[k] = y;
    s.norm[k] = norm;
  }
  __syncthreads();
}

// The squared 2-norm of Q^T u - s over the columns of this thread.
__device__ float orthogonality(const Arguments& g, const float* q, const Scratch& s) {
  const int n = g.n;
  float total = 0;
  for (int k = threadIdx.x; k < n; k += blockDim.x) {
    float z0 = 0, z1 = 0;
    int row = 0;
#pragma unroll 4
    for (; row + 1 < n; row += 2) {
      z0 = fmaf(q[static_cast<int64_t>(row) * n + k], s.u[row], z0);
      z1 = fmaf(q[static_cast<int64_t>(row + 1) * n + k], s.u[row + 1], z1);
    }
    if (row < n) z0 = fmaf(q[static_cast<int64_t>(row) * n + k], s.u[row], z0);
    const float defect = z0 + z1 - sign_of(k);
    total = fmaf(defect, defect, total);
  }
  return total;
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

__global__ void __launch_bounds__(512) finish_kernel(Arguments g) {
  extern __shared__ float shared[];
  __shared__ float scratch[32];
  const int n = g.n;
  const Scratch s{shared, shared + n, shared + 2 * n, shared + 3 * n,
                  reinterpret_cast<float2*>(shared + 4 * n)};
  for (int64_t matrix = blockIdx.x; matrix < g.batch; matrix += gridDim.x) {
    const int status = g.status[matrix], exponent = g.exponent[matrix];
    const float* lambda = g.lambda_scaled + matrix * g.ld;
    const int64_t square = static_cast<int64_t>(n) * n;
    bool bad = false;
    float largest = 0, unsorted = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
      g.lambda[matrix * n + k] = times_power_of_two(lambda[k], exponent);
      largest = fmaxf(largest, fabsf(lambda[k]));
      if (!(fabsf(lambda[k]) < 1e30f) || (k > 0 && lambda[k] < lambda[k - 1])) unsorted = 1;
    }
    bad = block_sum(unsorted, scratch) > 0;
    if (status == 0 && g.q != nullptr) {
      multiply_basis(g, g.q + matrix * square, lambda, s);
      multiply_input(g, g.a + matrix * square, exponent, s);
      float norm = 0, residual = 0;
      for (int k = threadIdx.x; k < n; k += blockDim.x) {
        norm = fmaxf(norm, s.norm[k]);
        residual = fmaf(s.y[k] - s.t[k], s.y[k] - s.t[k], residual);
      }
      __shared__ uint32_t scratch_bits[32];
      norm = __uint_as_float(block_max(__float_as_uint(norm), scratch_bits));
      residual = sqrtf(block_sum(residual, scratch));
      const float defect = sqrtf(block_sum(orthogonality(g, g.q + matrix * square, s), scratch));
      bad = bad || !(residual <= kEigenGateHalf * n * kEps * norm) ||
            !(defect <= kOrthogonalGateHalf * n * kEps);
      if (norm == 0.f) {
        __syncthreads();
        fill(g, matrix, true);
        bad = false;
      }
    }
    __syncthreads();
    if (status != 0) fill(g, matrix, false);
    if (threadIdx.x == 0) {
      g.info[matrix] = status;
      g.flags[matrix] = status == 0 && bad;
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

cudaError_t finish(const Shape& shape, const float* a, bool upper, const float* lambda_scaled,
                   const int* exponent, const int* status, float* lambda, float* q, int* info,
                   int* flags, cudaStream_t stream) {
  const int threads = shape.n > 1024 ? 256 : 512;
  const size_t bytes = sizeof(float) * shape.n * (4 + 2 * (threads / 32));
  if (cudaError_t error = cudaFuncSetAttribute(
          finish_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
      error != cudaSuccess) {
    return error;
  }
  const Arguments g{a,    lambda_scaled, exponent,    status,  lambda,     q,
                    info, flags,         shape.batch, shape.n, shape.ld(), upper};
  finish_kernel<<<grid_for(shape.batch, 132 * 4), threads, bytes, stream>>>(g);
  return cudaGetLastError();
}

cudaError_t transpose_in_place(const Shape& shape, float* q, cudaStream_t stream) {
  transpose_kernel<<<grid_for(shape.batch * ((shape.n + 31) / 32), 4096), 256, 0, stream>>>(
      q, shape.batch, shape.n);
  return cudaGetLastError();
}

}  // namespace crucible::eigh
