// partial_barrier.cuh: barriers of some of a block's warps, by number (1-15; 0 is __syncthreads).
//
// kThreads counts the threads of all warps that take part in one phase of barrier kId, those that
// only arrive included; every lane of a warp calls. A phase orders what the arriving warps wrote to
// shared memory before it against what the waiting warps read after it. The next phase of the same
// number may start only after a barrier of the whole block, or after a phase that all of them
// waited in: each use says which.
//
// With CRUCIBLE_EIGH_WHOLE_BARRIERS every one of them is a barrier of the whole block, and warps
// that are not in the phase call absent_from(): slower, but plain to compute-sanitizer's racecheck,
// which does not follow phases of part of a block (docs/eigh.md, "Races"). For checking only.
#pragma once

#include <cuda_runtime.h>

namespace crucible::eigh {

// Arrives and goes on.
template <int kId, int kThreads>
__device__ __forceinline__ void partial_arrive() {
#ifdef CRUCIBLE_EIGH_WHOLE_BARRIERS
  __syncthreads();
#else
  asm volatile("barrier.cta.arrive %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
#endif
}

// Arrives and waits for the phase to be complete.
template <int kId, int kThreads>
__device__ __forceinline__ void partial_wait() {
#ifdef CRUCIBLE_EIGH_WHOLE_BARRIERS
  __syncthreads();
#else
  asm volatile("barrier.cta.sync %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
#endif
}

// The same where the compiler knows the warp to be converged: without its WARPSYNC.
template <int kId, int kThreads>
__device__ __forceinline__ void partial_wait_aligned() {
#ifdef CRUCIBLE_EIGH_WHOLE_BARRIERS
  __syncthreads();
#else
  asm volatile("bar.sync %0,%1;" ::"n"(kId), "n"(kThreads) : "memory");
#endif
}

// A warp that takes no part in the next `phases` phases: nothing, but for racecheck's build.
template <int phases>
__device__ __forceinline__ void absent_from() {
#ifdef CRUCIBLE_EIGH_WHOLE_BARRIERS
#pragma unroll 1
  for (int k = 0; k < phases; ++k) __syncthreads();
#endif
}

}  // namespace crucible::eigh
