// cluster_ops.cuh: the cluster instructions the two-block reduction uses (sm_90 and later).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

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
__device__ __forceinline__ void mbarrier_init(uint32_t mbarrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(mbarrier) : "memory");
}
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect_bytes(uint32_t mbarrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(bytes)
               : "memory");
}
// Waits for the phase's bytes. Bounded: a lost transfer is a defect, and a trap beats a hang.
__device__ __forceinline__ void mbarrier_wait(uint32_t mbarrier, uint32_t phase) {
  uint32_t done, tries = 0;
  do {
    if (++tries > (1u << 24)) __trap();
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(mbarrier), "r"(phase)
        : "memory");
  } while (!done);
}
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

}  // namespace crucible::eigh
