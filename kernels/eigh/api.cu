// api.cu: the C entry points: checks the arguments, lays out the workspace, queues the stages.
#include <cstdint>
#include <limits>

#include "crucible/eigh.h"
#include "heuristics.h"
#include "launch.h"
#include "pipeline.h"

namespace crucible::eigh {
namespace {

thread_local int last_cuda_error = 0;

struct Call {
  const float* a;
  float *lambda, *q;
  int* info;
  bool upper;
  cudaStream_t stream;
};

// Every buffer of a route; made once with a null base to measure, once to run.
struct Layout {
  int *info, *exponent, *status, *flags;
  float *lambda_scaled, *d, *e, *tau;
  __half* v16;  // reflectors of reduce
  float* v32;   // reflectors of reduce_registers
  void *z, *stage;
  size_t bytes;

  Layout(const Shape& shape, void* base) {
    Carver carver(base);
    const size_t batch = static_cast<size_t>(shape.batch), ld = shape.ld();
    const Route way = route(shape);
    info = carver.take<int>(batch);
    size_t most =
        way == Route::kGeneral ? solve_general_bytes(shape, general_blocks_max(shape)) : 0;
    if (way == Route::kSturm || way == Route::kMiddle || way == Route::kChain) {
      exponent = carver.take<int>(batch);
      status = carver.take<int>(batch);
      flags = carver.take<int>(batch);
      for (float** row : {&lambda_scaled, &d, &e, &tau}) *row = carver.take<float>(batch * ld);
      const size_t reflectors = shape.vectors ? batch * shape.n * ld : 0;
      v32 = carver.take<float>(way == Route::kSturm ? reflectors : 0);
      v16 = carver.take<__half>(way == Route::kSturm ? 0 : reflectors);
      const bool chain = way == Route::kChain;
      z = carver.take<char>(chain && shape.vectors ? tridiagonal_z_bytes(shape) : 0);
      most = std::max(finish_bytes(shape),
                      chain ? tridiagonal_dc_bytes(shape) : sturm_solve_bytes(shape));
      if (way != Route::kSturm) most = std::max(most, reduce_bytes(shape));
      most = std::max(most, solve_general_bytes(shape, resolve_blocks_max(shape)));
      if (shape.vectors) {
        most = std::max(most, chain ? back_transform_bytes(shape) : apply_reflectors_bytes(shape));
      }
    }
    stage = carver.take<char>(most);
    bytes = carver.used();
  }
  Tridiagonal tridiagonal() const { return {d, e, tau, v16}; }
};

#define CRUCIBLE_EIGH_TRY(call)                             \
  if (cudaError_t error_ = (call); error_ != cudaSuccess) { \
    return error_;                                          \
  }

// Undoes the scaling, checks, and solves flagged matrices again, also where only values are wanted.
cudaError_t close(const Shape& shape, const Call& c, const Layout& w) {
  CRUCIBLE_EIGH_TRY(finish(shape, c.a, c.upper, w.lambda_scaled, w.exponent, w.status, c.lambda,
                           c.q, c.info, w.flags, w.stage, c.stream));
  return solve_general(shape, c.a, c.upper, c.lambda, c.q, c.info, w.flags,
                       resolve_blocks_max(shape), w.stage, c.stream);
}

cudaError_t run_chain(const Shape& shape, const Call& c, const Layout& w) {
  const Tridiagonal t = w.tridiagonal();
  CRUCIBLE_EIGH_TRY(scale(shape, c.a, c.upper, w.exponent, w.status, c.stream));
  CRUCIBLE_EIGH_TRY(reduce(shape, c.a, c.upper, w.exponent, w.status, t, w.stage, c.stream));
  CRUCIBLE_EIGH_TRY(tridiagonal_dc(shape, w.d, w.e, w.lambda_scaled, w.z, w.stage, c.stream));
  if (shape.vectors) {
    CRUCIBLE_EIGH_TRY(back_transform(shape, w.z, t, c.q, w.stage, c.stream));
  }
  return close(shape, c, w);
}

cudaError_t run_sturm(const Shape& shape, const Call& c, const Layout& w) {
  const bool registers = route(shape) == Route::kSturm;
  if (registers) {
    CRUCIBLE_EIGH_TRY(reduce_registers(shape, c.a, c.upper, w.exponent, w.status,
                                       TridiagonalF32{w.d, w.e, w.tau, w.v32}, c.stream));
  } else {
    CRUCIBLE_EIGH_TRY(scale(shape, c.a, c.upper, w.exponent, w.status, c.stream));
    CRUCIBLE_EIGH_TRY(
        reduce(shape, c.a, c.upper, w.exponent, w.status, w.tridiagonal(), w.stage, c.stream));
  }
  CRUCIBLE_EIGH_TRY(sturm_solve(shape, w.d, w.e, w.lambda_scaled, c.q, w.stage, c.stream));
  if (shape.vectors && registers) {
    CRUCIBLE_EIGH_TRY(apply_reflectors(shape, w.tau, w.v32, c.q, w.stage, c.stream));
  } else if (shape.vectors) {
    CRUCIBLE_EIGH_TRY(apply_reflectors(shape, w.tau, w.v16, c.q, w.stage, c.stream));
  }
  return close(shape, c, w);
}

cudaError_t run(const Shape& shape, Call c, void* workspace, bool column_major) {
  const Layout w(shape, workspace);
  if (c.info == nullptr) c.info = w.info;
  cudaError_t error = cudaSuccess;
  switch (route(shape)) {
    case Route::kEmpty:
      return cudaSuccess;
    case Route::kSmall:
      error = solve_small(shape, c.a, c.upper, c.lambda, c.q, c.info, c.stream);
      break;
    case Route::kSmall32:
      error = eigh32(shape, c.a, c.upper, c.lambda, c.q, c.info, c.stream);
      break;
    case Route::kSturm:
    case Route::kMiddle:
      error = run_sturm(shape, c, w);
      break;
    case Route::kChain:
      error = run_chain(shape, c, w);
      break;
    case Route::kGeneral:
      error = solve_general(shape, c.a, c.upper, c.lambda, c.q, c.info, nullptr,
                            general_blocks_max(shape), w.stage, c.stream);
      break;
  }
  if (error == cudaSuccess && column_major && c.q != nullptr) {
    error = transpose_in_place(shape, c.q, c.stream);
  }
  return error;
}

// True where the address of a pointer is a multiple of `alignment`, a power of two.
bool aligned_to(size_t alignment, const void* pointer) {
  return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

// False where the sizes are negative or a byte count would not fit 63 bits.
bool shape_from(int64_t n, int64_t batch, int flags, Shape* shape) {
  if (n < 0 || batch < 0 || n > std::numeric_limits<int>::max() / 64) return false;
  if ((flags & ~7) != 0) return false;
  if (n > 0 && batch > std::numeric_limits<int64_t>::max() / 64 / n / n) return false;
  *shape = Shape{batch, static_cast<int>(n), (flags & CRUCIBLE_EIGH_VALUES_ONLY) == 0};
  return true;
}

}  // namespace
}  // namespace crucible::eigh

using namespace crucible::eigh;  // NOLINT: the C functions below are the namespace's face

extern "C" crucible_eigh_status crucible_eigh_workspace(int64_t n, int64_t batch, int flags,
                                                        size_t* bytes) {
  Shape shape;
  if (bytes == nullptr || !shape_from(n, batch, flags, &shape)) {
    return CRUCIBLE_EIGH_INVALID_ARGUMENT;
  }
  *bytes = route(shape) == Route::kEmpty ? 0 : Layout(shape, nullptr).bytes;
  return CRUCIBLE_EIGH_OK;
}

extern "C" crucible_eigh_status crucible_eigh(int64_t n, int64_t batch, const float* a,
                                              float* lambda, float* q, int32_t* info,
                                              void* workspace, size_t workspace_bytes, int flags,
                                              crucible_eigh_stream stream) {
  Shape shape;
  size_t needed = 0;
  if (crucible_eigh_workspace(n, batch, flags, &needed) != CRUCIBLE_EIGH_OK ||
      !shape_from(n, batch, flags, &shape)) {
    return CRUCIBLE_EIGH_INVALID_ARGUMENT;
  }
  if (route(shape) == Route::kEmpty) return CRUCIBLE_EIGH_OK;
  if (a == nullptr || lambda == nullptr || (shape.vectors && q == nullptr)) {
    return CRUCIBLE_EIGH_INVALID_ARGUMENT;
  }
  if (!aligned_to(16, a) || !aligned_to(16, lambda) || !aligned_to(16, info) ||
      (shape.vectors && !aligned_to(16, q)) || (needed > 0 && !aligned_to(kAlign, workspace))) {
    return CRUCIBLE_EIGH_INVALID_ARGUMENT;
  }
  if (workspace_bytes < needed || (needed > 0 && workspace == nullptr)) {
    return CRUCIBLE_EIGH_WORKSPACE_TOO_SMALL;
  }
  const bool column_major = (flags & CRUCIBLE_EIGH_COLUMN_MAJOR) != 0;
  // The upper triangle of a column-major matrix is the lower one of the same bytes row-major.
  const bool upper = ((flags & CRUCIBLE_EIGH_UPPER) != 0) != column_major;
  const Call call{a, lambda, shape.vectors ? q : nullptr, info, upper, stream};
  const cudaError_t error = run(shape, call, workspace, column_major);
  if (error == cudaSuccess) return CRUCIBLE_EIGH_OK;
  last_cuda_error = static_cast<int>(error);
  return CRUCIBLE_EIGH_CUDA_ERROR;
}

extern "C" int crucible_eigh_last_cuda_error(void) { return last_cuda_error; }

extern "C" const char* crucible_eigh_status_string(crucible_eigh_status status) {
  switch (status) {
    case CRUCIBLE_EIGH_OK:
      return "ok";
    case CRUCIBLE_EIGH_INVALID_ARGUMENT:
      return "invalid argument: a size is negative or too large, a flag is unknown, a needed "
             "pointer "
             "is null, or one is not 16-byte aligned (workspace: 256)";
    case CRUCIBLE_EIGH_WORKSPACE_TOO_SMALL:
      return "workspace too small: ask crucible_eigh_workspace() with the same n, batch and flags";
    case CRUCIBLE_EIGH_CUDA_ERROR:
      return "CUDA error: see crucible_eigh_last_cuda_error()";
  }
  return "unknown status";
}
