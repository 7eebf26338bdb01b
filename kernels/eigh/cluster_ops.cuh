// cluster_ops.cuh: the cluster instructions the two-block reduction uses (sm_90 and later).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "mbarrier_ops.cuh"

namespace crucible::eigh {

// The address in block `rank` of the cluster that corresponds to a shared address of this one.
__device__ __forceinline__ uint32_t map_to_peer(uint32_t address, uint32_t rank) {
  uint32_t d;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(address), "r"(rank));
  return d;
}
// A float into a peer's shared memory; its arrival counts 4 bytes on the peer's mbarrier.
__device__ __forceinline__ void st_async(uint32_t address, float value, uint32_t mbarrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address),
      "r"(__float_as_uint(value)), "r"(mbarrier)
      : "memory");
}
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

}  // namespace crucible::eigh
