// shared_memory.cuh: addresses as the instructions for shared memory want them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace crucible::eigh {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

}  // namespace crucible::eigh
