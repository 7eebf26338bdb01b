// partial_barrier.cuh: barriers of some of a block's warps, by number (1-15; 0 is __syncthreads).
//
// kThreads counts the threads of all warps that take part in one phase of barrier kId, those that
// only arrive included; every lane of a warp calls. A phase orders what the arriving warps wrote to
// shared memory before it against what the waiting warps read after it. The next phase of the same
// number may start only after a barrier of the whole block, or after a phase that all of them
// waited in: each use says which.
//
// With CRUCIBLE_EIGH_WHOLE_BARRIERS every one of them is a barrier of the whole block, warps that
// are not in the phase call absent_from(), and on an mbarrier every thread of a warpgroup arrives
// for itself: slower, but plain to compute-sanitizer's racecheck, which follows neither phases of
// part of a block nor an arrival on behalf of others (docs/eigh.md, "Races"). For checking only.
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

// The same, the number known at run time only.
template <int kThreads>
__device__ __forceinline__ void partial_wait_at(int id) {
#ifdef CRUCIBLE_EIGH_WHOLE_BARRIERS
  __syncthreads();
#else
  asm volatile("bar.sync %0,%1;" ::"r"(id), "n"(kThreads) : "memory");
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

// Threads of a warpgroup that arrive on an mbarrier once the warpgroup is done with something: one,
// after a wait that all of its warps take part in (wgmma's, or a partial barrier).
#ifdef CRUCIBLE_EIGH_WHOLE_BARRIERS
constexpr int kSignallers = 128;
#else
constexpr int kSignallers = 1;
#endif

// Whether a thread is one of them, by its number in the warpgroup.
__device__ __forceinline__ bool signals(int thread_of_warpgroup) {
  return kSignallers == 128 || thread_of_warpgroup == 0;
}

}  // namespace crucible::eigh
