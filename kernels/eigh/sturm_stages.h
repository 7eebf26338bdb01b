// sturm_stages.h: the FP32 chain for small and middle orders and the buffers between its stages.
//
//   reduce_registers (n <= 192) or reduce -> sturm_solve -> apply_reflectors -> finish
//
// The rules of stages.h hold: work is only queued, no stage looks at another matrix of the batch.
// Against the chain of stages.h the eigenvectors of T stay FP32 and need no Newton-Schulz step.
#pragma once

#include "stages.h"

namespace crucible::eigh {

constexpr int kRegistersMax = 192;   // reduce_registers.cu
constexpr int kSturmMax = 512;       // sturm_values.cu, sturm_vectors.cu
constexpr int kReflectorsMax = 384;  // apply_reflectors.cu

// As Tridiagonal of stages.h, the reflectors in FP32.
struct TridiagonalF32 {
  float *d, *e, *tau;  // [batch][ld()]
  float* v;            // [batch][n][ld()]: v_j at row j; its entries 0 .. j are not written
};

// n <= kRegistersMax. Scales, and writes exponent and status as scale() of pipeline.h does.
cudaError_t reduce_registers(const Shape& shape, const float* a, bool upper, int* exponent,
                             int* status, const TridiagonalF32& t, cudaStream_t stream);

// Eigenvalues of T ascending into lambda [batch][ld()], eigenvectors (with shape.vectors) into the
// columns of q [batch][n][n]. n <= kSturmMax. Calls sturm_values (sturm_values.cu) first.
size_t sturm_solve_bytes(const Shape& shape);
cudaError_t sturm_solve(const Shape& shape, const float* d, const float* e, float* lambda, float* q,
                        void* workspace, cudaStream_t stream);
struct SturmScale;
cudaError_t sturm_values(const Shape& shape, const float* d, const float* e, float* lambda,
                         double* shift, SturmScale* scale, cudaStream_t stream);

// q <- H_0 H_1 ... H_{n-3} q in place, H_j = I - 2 v_j v_j^T / (v_j^T v_j), or I where tau[j] is 0.
// |v_j| <= sqrt(2), n <= kReflectorsMax (kRegistersMax in FP32); v is overwritten.
size_t apply_reflectors_bytes(const Shape& shape);
cudaError_t apply_reflectors(const Shape& shape, const float* tau, float* v, float* q,
                             void* workspace, cudaStream_t stream);
cudaError_t apply_reflectors(const Shape& shape, const float* tau, __half* v, float* q,
                             void* workspace, cudaStream_t stream);

}  // namespace crucible::eigh
