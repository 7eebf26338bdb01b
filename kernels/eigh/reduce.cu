// reduce.cu: routes a reduction to the kernel for its n; clears what none of them writes of tau.
#include <algorithm>

#include "heuristics.h"
#include "reduce_routes.h"

namespace crucible::eigh {

size_t reduce_bytes(const Shape& shape) {
  switch (reduction(shape)) {
    case Reduction::kOneBlock:
      return reduce_one_block_bytes(shape);
    case Reduction::kTwoBlocks:
      return reduce_two_blocks_bytes(shape);
    case Reduction::kStreamed:
      return reduce_streamed_bytes(shape);
  }
  return 0;
}

cudaError_t reduce(const Shape& shape, const float* a, bool upper, const int* scale_exponent,
                   const int* status, const Tridiagonal& t, void* workspace, cudaStream_t stream) {
  // tau of the last column, which no kernel visits.
  const size_t row = static_cast<size_t>(shape.batch) * shape.ld() * sizeof(float);
  if (cudaError_t error = cudaMemsetAsync(t.tau, 0, row, stream); error != cudaSuccess) {
    return error;
  }
  switch (reduction(shape)) {
    case Reduction::kOneBlock:
      return reduce_one_block(shape, a, upper, scale_exponent, status, t, workspace, stream);
    case Reduction::kTwoBlocks:
      return reduce_two_blocks(shape, a, upper, scale_exponent, status, t, workspace, stream);
    case Reduction::kStreamed:
      return reduce_streamed(shape, a, upper, scale_exponent, status, t, workspace, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace crucible::eigh
