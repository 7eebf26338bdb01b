// mbarrier_ops.cuh: mbarriers by shared address, and the bulk copies that count on them (sm_90).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace crucible::eigh {

// A phase is complete after c arrivals and the bytes that were expected in it.
__device__ __forceinline__ void mbarrier_init(uint32_t b, int c) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(b), "r"(c) : "memory");
}
// Makes the inits of this thread visible to the cluster and to asynchronous copies.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives and adds bytes that bulk copies or st.async will bring.
__device__ __forceinline__ void mbarrier_expect(uint32_t b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(b), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(uint32_t b) {
  asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(b) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_twice(uint32_t b) {
  asm volatile("mbarrier.arrive.shared.b64 _,[%0],2;" ::"r"(b) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_remote(uint32_t b, int cta) {
  asm volatile(
      "{.reg .b32 r; mapa.shared::cluster.u32 r,%0,%1; mbarrier.arrive.shared::cluster.b64 "
      "_,[r];}" ::"r"(b),
      "r"(cta)
      : "memory");
}
// Waits, at block scope, for the phase of parity ph to be complete.
__device__ __forceinline__ void mbarrier_wait(uint32_t b, int ph) {
  asm volatile(
      "{.reg .pred p;\nL1: mbarrier.try_wait.parity.shared.b64 p,[%0],%1;\n@p bra L2;\nbra "
      "L1;\nL2:\n}" ::"r"(b),
      "r"(ph)
      : "memory");
}
// The same at cluster scope. Bounded: a lost transfer is a defect, and a trap beats a hang.
__device__ __forceinline__ void mbarrier_wait_cluster(uint32_t mbarrier, uint32_t phase) {
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
// `bytes` from global to shared memory by one thread; they count on the mbarrier `bar`.
__device__ __forceinline__ void bulk_copy(uint32_t dst, const void* src, uint32_t bytes,
                                          uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
          dst),
      "l"(src), "r"(bytes), "r"(bar)
      : "memory");
}

}  // namespace crucible::eigh
