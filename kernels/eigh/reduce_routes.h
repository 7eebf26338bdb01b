// reduce_routes.h: the reductions behind reduce(); each has reduce()'s contract for its own n.
#pragma once

#include "stages.h"

namespace crucible::eigh {

// 64 <= n <= 512 (reduce_one_block.cu).
size_t reduce_one_block_bytes(const Shape& shape);
cudaError_t reduce_one_block(const Shape& shape, const float* a, bool upper,
                             const int* scale_exponent, const int* status, const Tridiagonal& t,
                             void* workspace, cudaStream_t stream);

// 512 < n <= 1024 (reduce_two_blocks.cu).
size_t reduce_two_blocks_bytes(const Shape& shape);
cudaError_t reduce_two_blocks(const Shape& shape, const float* a, bool upper,
                              const int* scale_exponent, const int* status, const Tridiagonal& t,
                              void* workspace, cudaStream_t stream);

// Any n >= 3, several blocks a matrix (reduce_streamed.cu).
size_t reduce_streamed_bytes(const Shape& shape);
cudaError_t reduce_streamed(const Shape& shape, const float* a, bool upper,
                            const int* scale_exponent, const int* status, const Tridiagonal& t,
                            void* workspace, cudaStream_t stream);

}  // namespace crucible::eigh
