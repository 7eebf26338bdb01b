// random.cuh: counter-based random numbers: a value is a function of (seed, matrix, i, j) alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace crucible::eigh::bench {

__host__ __device__ inline uint64_t mix(uint64_t x) {  // splitmix64's output function
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

struct Random {
  uint64_t state;
  __host__ __device__ Random(uint64_t seed, int64_t matrix)
      : state(mix(mix(seed) ^ static_cast<uint64_t>(matrix))) {}
  __host__ __device__ uint64_t bits(uint32_t i, uint32_t j) const {
    return mix(state ^ (static_cast<uint64_t>(i) << 32 | j));
  }
  // In (0, 1).
  __host__ __device__ double uniform(uint32_t i, uint32_t j) const {
    return ((bits(i, j) >> 11) + 0.5) * 0x1p-53;
  }
  __device__ double normal(uint32_t i, uint32_t j) const {
    const uint64_t b = bits(i, j);
    const double u = (static_cast<double>(b >> 32) + 0.5) * 0x1p-32;
    const double v = (static_cast<double>(b & 0xffffffffu) + 0.5) * 0x1p-32;
    return sqrt(-2 * log(u)) * cospi(2 * v);
  }
};

}  // namespace crucible::eigh::bench
