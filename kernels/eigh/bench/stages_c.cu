// stages_c.cu: the stages behind C names, for stage_check.py. Not part of the library.
#include "../heuristics.h"
#include "../pipeline.h"
#include "../reduce_routes.h"

using namespace crucible::eigh;

extern "C" size_t stage_reduce_bytes(long long batch, int n) {
  return reduce_bytes(Shape{batch, n, true});
}
// scale + reduce; exponent and status are outputs.
extern "C" int stage_reduce(long long batch, int n, const float* a, int upper, int* exponent,
                            int* status, float* d, float* e, float* tau, void* v, void* workspace,
                            void* stream) {
  const Shape shape{batch, n, true};
  const auto s = static_cast<cudaStream_t>(stream);
  cudaError_t error = scale(shape, a, upper != 0, exponent, status, s);
  if (error == cudaSuccess) {
    error = reduce(shape, a, upper != 0, exponent, status,
                   Tridiagonal{d, e, tau, static_cast<__half*>(v)}, workspace, s);
  }
  return static_cast<int>(error);
}
