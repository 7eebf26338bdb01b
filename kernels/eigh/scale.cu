// scale.cu: the scale exponent and the status of every matrix, one pass over the input.
//
// Shapes: a [batch][n][n]; only the chosen triangle is read. Grid: one block a matrix, strided.
// Cost: one read of the triangle's rows. Deterministic: a maximum of bit patterns has no order.
#include "block_ops.cuh"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

__global__ void __launch_bounds__(512)
    scale_kernel(const float* a, int64_t batch, int n, bool upper, int* exponent, int* status) {
  __shared__ uint32_t scratch[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  for (int64_t matrix = blockIdx.x; matrix < batch; matrix += gridDim.x) {
    const float* base = a + matrix * n * n;
    uint32_t amax = 0;
    for (int row = warp; row < n; row += warps) {
      const int begin = upper ? row : 0, end = upper ? n : row + 1;
#pragma unroll 4
      for (int column = begin + lane; column < end; column += 32) {
        const float value = base[static_cast<int64_t>(row) * n + column];
        amax = max(amax, __float_as_uint(value) & 0x7fffffffu);
      }
    }
    amax = block_max(amax, scratch);
    if (threadIdx.x == 0) {
      const bool finite = amax < kInfinityBits;
      exponent[matrix] = finite ? exponent_above(amax) : 0;
      status[matrix] = finite ? 0 : 1;
    }
  }
}

}  // namespace

cudaError_t scale(const Shape& shape, const float* a, bool upper, int* exponent, int* status,
                  cudaStream_t stream) {
  scale_kernel<<<grid_for(shape.batch, 132 * 4), 512, 0, stream>>>(a, shape.batch, shape.n, upper,
                                                                   exponent, status);
  return cudaGetLastError();
}

}  // namespace crucible::eigh
