// wgmma_ops.cuh: wgmma m64nNk16 f32.f16.f16 with its matrix descriptors (128-byte swizzle), and
// setmaxnreg: the instructions that only sm_90a has.
//
// On other architectures these trap, and heuristics.h routes no matrix here. A call is made by the
// four warps of a warpgroup together; c[] is the thread's part of the 64 x N sum (two rows, N / 4
// pairs of columns: the mma.m16n8 fragment of the warp's 16 rows, N / 8 times), a[] its FP16
// fragment of A. Sums are asynchronous: c may be read after wgmma_commit and wgmma_wait<0>, and
// between a fence and its wait nothing else may touch c (ptxas serialises the products otherwise,
// C7513).
//
// Names: ss = A and B in shared memory, rs = A in registers; then N; then the major-ness of A and B
// (t: MN-major, k: K-major; of B alone for rs); neg subtracts.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "shared_memory.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define CRUCIBLE_SM90A(statement) statement
#else
#define CRUCIBLE_SM90A(statement) __trap()
#endif

namespace crucible::eigh {

// The operands of an instruction whose sum takes N / 2 registers: their numbers in the text, and
// the constraints.
#define CRUCIBLE_REGISTERS_32                                                         \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22" \
  ",%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define CRUCIBLE_REGISTERS_64                                                            \
  CRUCIBLE_REGISTERS_32                                                                  \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52" \
  ",%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define CRUCIBLE_REGISTERS_128                                                           \
  CRUCIBLE_REGISTERS_64                                                                  \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84" \
  ",%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103"     \
  ",%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119"     \
  ",%120,%121,%122,%123,%124,%125,%126,%127"
#define CRUCIBLE_SUMS_8(i)                                                                    \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define CRUCIBLE_SUMS_32(i) \
  CRUCIBLE_SUMS_8(i), CRUCIBLE_SUMS_8(i + 8), CRUCIBLE_SUMS_8(i + 16), CRUCIBLE_SUMS_8(i + 24)
#define CRUCIBLE_SUMS_64(i) CRUCIBLE_SUMS_32(i), CRUCIBLE_SUMS_32(i + 32)
#define CRUCIBLE_SUMS_128(i) CRUCIBLE_SUMS_64(i), CRUCIBLE_SUMS_64(i + 64)

// One instruction a function. `operands`: the numbers of A and B; `modifiers`: scale-d, sign of A,
// sign of B, and whether A (ss only) and B are MN-major.
#define CRUCIBLE_WGMMA_RS(name, n, half_n, operands, modifiers)                                   \
  __device__ __forceinline__ void name(float(&c)[half_n], const unsigned(&a)[4], uint64_t b) {    \
    CRUCIBLE_SM90A(asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32.f16.f16 "          \
                                "{" CRUCIBLE_REGISTERS_##half_n "}," operands "," modifiers ";\n" \
                                : CRUCIBLE_SUMS_##half_n(0)                                       \
                                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)));           \
  }
#define CRUCIBLE_WGMMA_SS(name, n, half_n, operands, modifiers)                                   \
  __device__ __forceinline__ void name(float(&c)[half_n], uint64_t a, uint64_t b) {               \
    CRUCIBLE_SM90A(asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32.f16.f16 "          \
                                "{" CRUCIBLE_REGISTERS_##half_n "}," operands "," modifiers ";\n" \
                                : CRUCIBLE_SUMS_##half_n(0)                                       \
                                : "l"(a), "l"(b)));                                               \
  }
CRUCIBLE_WGMMA_RS(rs64_tb, "64", 32, "{%32,%33,%34,%35},%36", "1,1,1,1")
CRUCIBLE_WGMMA_RS(rs64_kb, "64", 32, "{%32,%33,%34,%35},%36", "1,1,1,0")
CRUCIBLE_WGMMA_RS(rs64_kb_neg, "64", 32, "{%32,%33,%34,%35},%36", "1,-1,1,0")
CRUCIBLE_WGMMA_RS(rs128_tb, "128", 64, "{%64,%65,%66,%67},%68", "1,1,1,1")
CRUCIBLE_WGMMA_RS(rs256_tb, "256", 128, "{%128,%129,%130,%131},%132", "1,1,1,1")
CRUCIBLE_WGMMA_SS(ss64_tt, "64", 32, "%32,%33", "1,1,1,1,1")
CRUCIBLE_WGMMA_SS(ss128_kk, "128", 64, "%64,%65", "1,1,1,0,0")
CRUCIBLE_WGMMA_SS(ss128_tk, "128", 64, "%64,%65", "1,1,1,1,0")
CRUCIBLE_WGMMA_SS(ss128_tt, "128", 64, "%64,%65", "1,1,1,1,1")
#undef CRUCIBLE_WGMMA_RS
#undef CRUCIBLE_WGMMA_SS
#undef CRUCIBLE_SUMS_8
#undef CRUCIBLE_SUMS_32
#undef CRUCIBLE_SUMS_64
#undef CRUCIBLE_SUMS_128
#undef CRUCIBLE_REGISTERS_32
#undef CRUCIBLE_REGISTERS_64
#undef CRUCIBLE_REGISTERS_128

// Orders register and shared-memory accesses of the warpgroup before the products that follow.
__device__ __forceinline__ void wgmma_fence() {
  CRUCIBLE_SM90A(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
}
// Closes a group of products; wgmma_wait<N> waits until at most N groups are still running.
__device__ __forceinline__ void wgmma_commit() {
  CRUCIBLE_SM90A(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
}
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  CRUCIBLE_SM90A(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"));
}
// Descriptor of a shared-memory operand in 128-byte swizzled lines; byte offsets between the core
// matrices along the leading (lbo) and the strided (sbo) dimension.
__device__ __forceinline__ uint64_t matrix_descriptor(uint32_t saddr, uint32_t lbo = 1024,
                                                      uint32_t sbo = 1024) {
  return (uint64_t)((saddr & 0x3ffff) >> 4) | ((uint64_t)(lbo >> 4) << 16) |
         ((uint64_t)(sbo >> 4) << 32) | (1ull << 62);
}
// Moves registers between the warpgroups of a block: one gives back down to N a thread, the others
// take up to N. Once each, by the whole warpgroup.
template <int N>
__device__ __forceinline__ void give_registers() {
  CRUCIBLE_SM90A(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)));
}
template <int N>
__device__ __forceinline__ void take_registers() {
  CRUCIBLE_SM90A(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)));
}

}  // namespace crucible::eigh
