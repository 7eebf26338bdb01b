// pipeline.h: the launches that are not part of the stage chain of stages.h.
#pragma once

#include "stages.h"

namespace crucible::eigh {

// exponent[b]: 2^(exponent-1) <= max|A_b| < 2^exponent (0 for a zero or non-finite matrix);
// status[b]: 1 where the triangle holds a NaN or Inf, else 0.
cudaError_t scale(const Shape& shape, const float* a, bool upper, int* exponent, int* status,
                  cudaStream_t stream);

// Complete FP32 solver, one block a matrix, for any n >= 1 (solve_general.cu). With `flags` it
// works only on matrices with flags[b] != 0. q may be null (eigenvalues only). info[b]: 0, 1 for
// NaN/Inf, 2 where the iteration did not converge.
size_t solve_general_bytes(const Shape& shape, int blocks_max);
cudaError_t solve_general(const Shape& shape, const float* a, bool upper, float* lambda, float* q,
                          int* info, const int* flags, int blocks_max, void* workspace,
                          cudaStream_t stream);

// n <= 32, a few lanes a matrix, everything in one launch (solve_small.cu). q may be null.
cudaError_t solve_small(const Shape& shape, const float* a, bool upper, float* lambda, float* q,
                        int* info, cudaStream_t stream);

// n = 32 only, one block a matrix, everything in one launch (eigh32.cu). q may not be null.
cudaError_t eigh32(const Shape& shape, const float* a, bool upper, float* lambda, float* q,
                   int* info, cudaStream_t stream);

// Undoes the scaling of the eigenvalues, writes lambda [batch][n] and info, fills NaN for a
// non-finite matrix, and sets flags[b] where A q = q L or q^T q = I fails on random vectors by more
// than half of the gates, or lambda_scaled is not finite and ascending (finish.cu). q may be null:
// then the order of lambda_scaled is the only check.
cudaError_t finish(const Shape& shape, const float* a, bool upper, const float* lambda_scaled,
                   const int* exponent, const int* status, float* lambda, float* q, int* info,
                   int* flags, void* workspace, cudaStream_t stream);
size_t finish_bytes(const Shape& shape);

// q of every matrix transposed in place: row-major to column-major (finish.cu).
cudaError_t transpose_in_place(const Shape& shape, float* q, cudaStream_t stream);

}  // namespace crucible::eigh
