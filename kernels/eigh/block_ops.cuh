// block_ops.cuh: sums over a warp or a whole block, exact powers of two, the symmetric read.
//
// Every sum has a fixed order, so results repeat bit for bit whatever else the GPU does.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace crucible::eigh {

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

__device__ __forceinline__ double warp_sum(double value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

// The sum over the block, the same bits in every thread. `scratch` holds 32 values; the block may
// reuse it after its next barrier. Contains two barriers.
template <typename Number>
__device__ __forceinline__ Number block_sum(Number value, Number* scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  value = warp_sum(value);
  __syncthreads();
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  return warp_sum(lane < warps ? scratch[lane] : Number(0));
}

__device__ __forceinline__ uint32_t block_max(uint32_t value, uint32_t* scratch) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  value = __reduce_max_sync(kAllLanes, value);
  __syncthreads();
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  return __reduce_max_sync(kAllLanes, lane < warps ? scratch[lane] : 0u);
}

// value * 2^exponent for any exponent in [-252, 252]: in two exact steps, because 2^exponent
// itself may not be a float.
__device__ __forceinline__ float times_power_of_two(float value, int exponent) {
  const int first = exponent / 2, second = exponent - first;
  return value * __int_as_float((127 + first) << 23) * __int_as_float((127 + second) << 23);
}

// The exponent s with 2^(s-1) <= amax < 2^s, from the bits of a finite positive amax.
__device__ __forceinline__ int exponent_above(uint32_t amax_bits) {
  if (amax_bits == 0) return 0;
  if (amax_bits >= 0x00800000u) return static_cast<int>(amax_bits >> 23) - 126;
  return -117 - __clz(static_cast<int>(amax_bits));  // subnormal: top bit 31 - clz counts 2^-149
}

constexpr uint32_t kInfinityBits = 0x7f800000u;

}  // namespace crucible::eigh
