// stages.h: the stages of the batched eigensolver and the buffers between them.
//
// Every function here only queues work on `stream`: no host synchronisation, no allocation, legal
// during graph capture. Workspace comes from the caller; each stage publishes its own need as
// `<stage>_bytes(shape)` and gets a 256-byte aligned pointer to at least that much, with unknown
// contents (assume NaN). Indices over the batch are 64-bit. A stage never reads or writes the
// data of another matrix, so results do not depend on the rest of the batch.
//
//   scale -> reduce -> tridiagonal_dc -> back_transform -> newton_schulz -> finish
//
// This chain serves 385 <= n <= 2048; sturm_stages.h has the FP32 one below, heuristics.h the
// table.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace crucible::eigh {

// The shape of one call. Strides are in elements.
struct Shape {
  int64_t batch;
  int n;         // order of every matrix
  bool vectors;  // false: only L is wanted
  // Row stride of d, e, tau and of a column of V: n rounded up to a multiple of 64.
  int ld() const { return (n + 63) / 64 * 64; }
};

// Reduction output, also the input of the later stages. T = Q1^T A Q1 with
// Q1 = H_0 H_1 ... H_{n-3}, H_j = I - tau[j] v_j v_j^T.
//
// A has been scaled by an exact power of two so that 0.5 <= max|a_ij| < 1 (or A = 0): so |T| is
// anywhere in [0.5, n]; a stage that wants |T| about 1 scales inside. A matrix with NaN or Inf
// arrives as d = e = tau = 0 and V = 0 (its outputs are overwritten with NaN at the end).
struct Tridiagonal {
  float* d;    // [batch][ld()], entries 0 .. n-1 valid
  float* e;    // [batch][ld()], e[j] couples j and j+1, entries 0 .. n-2 valid
  float* tau;  // [batch][ld()], entries 0 .. n-1 valid, 0 where H_j is the identity (and j >= n-2);
               // otherwise 2 / (v_j^T v_j) for exactly the stored v_j
  // v_j is column j: contiguous at v + (b * n + j) * ld(). Row j+1 is 1; column j with tau[j] = 0
  // is all zero below row j (finite at least). Rows 0 .. j and rows >= n are not written: a reader
  // takes them for 0. FP16: the reduction used the rounded v_j itself, so nothing is lost by the
  // storage.
  __half* v;  // [batch][n][ld()]
};

// --- tridiagonal_dc.cu ---
// Eigenvalues of T ascending into lambda [batch][ld()] (FP32), eigenvectors into `z`, an opaque
// buffer in the layout back_transform wants. With shape.vectors false only lambda is written.
size_t tridiagonal_dc_bytes(const Shape& shape);
size_t tridiagonal_z_bytes(const Shape& shape);
cudaError_t tridiagonal_dc(const Shape& shape, const float* d, const float* e, float* lambda,
                           void* z, void* workspace, cudaStream_t stream);

// --- back_transform.cu, newton_schulz.cu ---
// q = Newton-Schulz(Q1 Z): FP32, row-major [batch][n][n] without padding, eigenvector i of the
// scaled matrix in column i. z may be overwritten.
size_t back_transform_bytes(const Shape& shape);
cudaError_t back_transform(const Shape& shape, void* z, const Tridiagonal& t, float* q,
                           void* workspace, cudaStream_t stream);

// --- reduce.cu (routes to reduce_*.cu) and scale.cu ---
// scale_exponent[b]: A was multiplied by 2^-scale_exponent[b]; status[b]: 0, or 1 for NaN/Inf.
size_t reduce_bytes(const Shape& shape);
cudaError_t reduce(const Shape& shape, const float* a, bool upper, const int* scale_exponent,
                   const int* status, const Tridiagonal& t, void* workspace, cudaStream_t stream);

}  // namespace crucible::eigh
