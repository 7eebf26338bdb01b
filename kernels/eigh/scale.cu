// scale.cu: the scale exponent and the status of every matrix, one pass over the input.
//
// Shapes: a [batch][n][n]; only the chosen triangle is read. Grid: a block for kRows rows of a
// matrix, so that few large matrices keep the whole memory busy; the blocks of a matrix meet in an
// atomic maximum of bit patterns, which has no order: deterministic. A last small kernel turns the
// maxima, kept in exponent[], into exponents and status.
// Cost: one read of the triangle's rows.
#include "block_ops.cuh"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

constexpr int kRows = 32, kThreads = 256;

// amax[b], zero at launch: the largest |a_ij| as bits; NaN and Inf are at least kInfinityBits.
__global__ void __launch_bounds__(kThreads)
    largest_entry_kernel(const float* a, int64_t batch, int n, bool upper, unsigned* amax) {
  __shared__ uint32_t scratch[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int row_end = min(n, (static_cast<int>(blockIdx.x) + 1) * kRows);
  for (int64_t matrix = blockIdx.y; matrix < batch; matrix += gridDim.y) {
    const float* base = a + matrix * n * n;
    uint32_t largest = 0;
    for (int row = blockIdx.x * kRows + warp; row < row_end; row += kThreads / 32) {
      const int begin = upper ? row : 0, end = upper ? n : row + 1;
#pragma unroll 8
      for (int column = begin + lane; column < end; column += 32) {
        const float value = base[static_cast<int64_t>(row) * n + column];
        largest = max(largest, __float_as_uint(value) & 0x7fffffffu);
      }
    }
    largest = block_max(largest, scratch);
    if (threadIdx.x == 0) atomicMax(amax + matrix, largest);
  }
}

__global__ void __launch_bounds__(kThreads)
    exponent_kernel(int64_t batch, int* exponent, int* status) {
  const int64_t matrix = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (matrix >= batch) return;
  const uint32_t amax = static_cast<uint32_t>(exponent[matrix]);
  const bool finite = amax < kInfinityBits;
  exponent[matrix] = finite ? exponent_above(amax) : 0;
  status[matrix] = finite ? 0 : 1;
}

}  // namespace

cudaError_t scale(const Shape& shape, const float* a, bool upper, int* exponent, int* status,
                  cudaStream_t stream) {
  const cudaError_t error = cudaMemsetAsync(exponent, 0, shape.batch * sizeof(int), stream);
  if (error != cudaSuccess) return error;
  const dim3 grid((shape.n + kRows - 1) / kRows, grid_for(shape.batch, kGridYMax));
  largest_entry_kernel<<<grid, kThreads, 0, stream>>>(a, shape.batch, shape.n, upper,
                                                      reinterpret_cast<unsigned*>(exponent));
  const int64_t blocks = (shape.batch + kThreads - 1) / kThreads;
  exponent_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(shape.batch, exponent,
                                                                          status);
  return cudaGetLastError();
}

}  // namespace crucible::eigh
