// sturm_values.cu: eigenvalues of symmetric tridiagonal matrices by multisection, n <= 512.
//
// Shapes: d, e [batch][ld] -> shift [batch][ld] in FP64, ascending, of T scaled and with the ramp
// of sturm_count.cuh; scale [batch]. With kValuesOnly also lambda [batch][ld] (no ramp then).
// Every eigenvalue is on its own: `lanes` lanes share one, so a round divides its interval by
// lanes + 1, and the grid fills the GPU at small batches too. Deterministic.
//
// FP32 counts take the interval to 5e-6 |T|; it is then widened by 2^-19 |T| on both sides, more
// than an FP32 count can be off (each is exact for a T perturbed by a few roundings). FP64 counts
// go on to 2^-51 |T|: the vectors need about 45 bits (see eigh32.cu).
// Cost a matrix with 4 lanes: n^2 (32 FP32 + 60 FP64) steps of three operations.
#include "block_ops.cuh"
#include "heuristics.h"
#include "launch.h"
#include "sturm_count.cuh"
#include "sturm_stages.h"

namespace crucible::eigh {
namespace {

constexpr int kThreads = 128;
constexpr int kSteps64 = 16, kSteps32 = 4;  // rows between two rescalings of the minors
constexpr float kMargin32 = 0x1p-19f;       // of |T|

struct Arguments {
  const float *d, *e;
  float* lambda;  // null: with vectors
  double* shift;
  SturmScale* scale;
  double ramp;
  int n, ld;
};

// Rounds to 5e-6 in FP32 and from there to 2^-51 in FP64.
template <int kLanes>
constexpr int kRounds32 = kLanes == 4 ? 8 : 6;
template <int kLanes>
constexpr int kRounds64 = kLanes == 4 ? 15 : 11;

// Divides [low, low + width] `rounds` times around eigenvalue `index`.
template <int kLanes, int kSteps, typename Number, typename Pair>
__device__ __forceinline__ void multisect(const Pair* t, int n, int index, int rounds, Number* low,
                                          Number* width) {
  const int lane = threadIdx.x & 31, part = lane % kLanes;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    *width *= Number(1) / (kLanes + 1);
    const Number x = fma(*width, Number(part + 1), *low);
    const bool below = count_below<kSteps>(t, n, x) <= index;  // the eigenvalue is not below x
    const unsigned votes = __ballot_sync(kAllLanes, below) >> (lane & ~(kLanes - 1));
    *low = fma(*width, Number(__popc(votes & ((1u << kLanes) - 1))), *low);
  }
}

template <int kLanes>
__global__ void __launch_bounds__(kThreads) sturm_values_kernel(const Arguments g) {
  constexpr int kChunk = kThreads / kLanes;
  extern __shared__ __align__(16) char memory[];
  __shared__ uint32_t scratch[32];
  const int n = g.n;
  const int64_t matrix = blockIdx.y;
  double2* t = reinterpret_cast<double2*>(memory);
  float2* t32 = reinterpret_cast<float2*>(t + n);
  float* coupling = reinterpret_cast<float*>(t32 + n);
  const SturmScale scale =
      load_tridiagonal(g.d + matrix * g.ld, g.e + matrix * g.ld, n, g.ramp, t, coupling, scratch);
  for (int i = threadIdx.x; i < n; i += kThreads) {
    t32[i] = make_float2(static_cast<float>(t[i].x), static_cast<float>(t[i].y));
  }
  __syncthreads();
  const int own = blockIdx.x * kChunk + threadIdx.x / kLanes, index = min(own, n - 1);
  const float bound = scale.norm * (1.f + 1e-5f + static_cast<float>(g.ramp) * n);
  float low32 = -bound, width32 = 2 * bound;
  multisect<kLanes, kSteps32>(t32, n, index, kRounds32<kLanes>, &low32, &width32);
  double low = static_cast<double>(low32) - kMargin32;
  double width = static_cast<double>(width32) + 2 * kMargin32;
  multisect<kLanes, kSteps64>(t, n, index, kRounds64<kLanes>, &low, &width);
  if (threadIdx.x % kLanes == 0 && own < n) {
    const double x = low + 0.5 * width;
    g.shift[matrix * g.ld + own] = x;
    if (g.lambda != nullptr) {
      g.lambda[matrix * g.ld + own] = times_power_of_two(static_cast<float>(x), scale.exponent);
    }
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) g.scale[matrix] = scale;
}

template <int kLanes>
cudaError_t launch(const Arguments& g, unsigned count, cudaStream_t stream) {
  constexpr int kChunk = kThreads / kLanes;
  const size_t bytes = g.n * (sizeof(double2) + sizeof(float2) + sizeof(float));
  sturm_values_kernel<kLanes>
      <<<dim3((g.n + kChunk - 1) / kChunk, count), kThreads, bytes, stream>>>(g);
  return cudaGetLastError();
}

}  // namespace

cudaError_t sturm_values(const Shape& shape, const float* d, const float* e, float* lambda,
                         double* shift, SturmScale* scale, cudaStream_t stream) {
  static_assert(kSturmMax * 28 <= 40 * 1024, "shared memory without an opt-in");
  // Eight lanes need fewer rounds and more counts: for batches that leave the GPU idle.
  constexpr int64_t kLanesIdle = 512;  // a multiprocessor
  const bool wide = shape.batch * shape.n * 8 <= kLanesIdle * multiprocessors();
  for (int64_t first = 0; first < shape.batch; first += kGridYMax) {
    const unsigned count = grid_for(shape.batch - first, kGridYMax);
    const int64_t at = first * shape.ld();
    const Arguments g{d + at,     e + at,        shape.vectors ? nullptr : lambda + at,
                      shift + at, scale + first, shape.vectors ? kRamp : 0.0,
                      shape.n,    shape.ld()};
    const cudaError_t error = wide ? launch<8>(g, count, stream) : launch<4>(g, count, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace crucible::eigh
