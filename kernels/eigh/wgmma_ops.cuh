// wgmma_ops.cuh: wgmma m64nNk16 f32.f16.f16, matrix descriptors (128-byte swizzle), mbarriers and
// bulk copies. sm_90a only; on other architectures these trap and the chain is not routed here.
//
// Names: ss = A and B in shared memory, rs = A in registers; then N; then the major-ness of A and B
// (t: MN-major, k: K-major); neg subtracts.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifndef CRUCIBLE_SM90A
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define CRUCIBLE_SM90A(statement) statement;
#else
#define CRUCIBLE_SM90A(statement) __trap();
#endif
#endif

namespace crucible::eigh {

__device__ __forceinline__ void rs64_tb(float (&c)[32], const unsigned (&a)[4],
                                        uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31},{%32,%33,%34,%35},%36,1,1,1,1;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
      "l"(b)))} __device__ __forceinline__ void rs64_kb(float (&c)[32], const unsigned (&a)[4],
                                                        uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31},{%32,%33,%34,%35},%36,1,1,1,0;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
      "l"(b)))} __device__ __forceinline__ void rs64_kb_neg(float (&c)[32], const unsigned (&a)[4],
                                                            uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31},{%32,%33,%34,%35},%36,1,-1,1,0;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
      "l"(b)))} __device__ __forceinline__ void ss64_tt(float (&c)[32], uint64_t a,
                                                        uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31},%32,%33,1,1,1,1,1;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
    : "l"(a),
      "l"(b)))} __device__ __forceinline__ void ss128_kk(float (&c)[64], uint64_t a,
                                                         uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%"
    "48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},%64,%65,1,1,1,0,0;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]),
      "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
      "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
      "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
      "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]),
      "+f"(c[63])
    : "l"(a),
      "l"(b)))} __device__ __forceinline__ void ss128_tk(float (&c)[64], uint64_t a,
                                                         uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%"
    "48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},%64,%65,1,1,1,1,0;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]),
      "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
      "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
      "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
      "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]),
      "+f"(c[63])
    : "l"(a),
      "l"(b)))} __device__ __forceinline__ void ss128_tt(float (&c)[64], uint64_t a,
                                                         uint64_t b){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%"
    "48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},%64,%65,1,1,1,1,1;\n"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
      "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
      "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
      "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
      "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]),
      "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
      "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
      "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
      "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]),
      "+f"(c[63])
    : "l"(a), "l"(b)))}

__device__ __forceinline__
    void wg_fence(){CRUCIBLE_SM90A(asm volatile("wgmma.fence.sync.aligned;" ::
                                                    : "memory"))} __device__ __forceinline__
    void wg_commit() {
  CRUCIBLE_SM90A(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"))
}
template <int N>
__device__ __forceinline__ void wg_wait(){
    CRUCIBLE_SM90A(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N)
                                : "memory"))} __device__ __forceinline__ uint64_t
    mkdesc(uint32_t saddr, uint32_t lbo = 1024, uint32_t sbo = 1024) {
  return (uint64_t)((saddr & 0x3ffff) >> 4) | ((uint64_t)(lbo >> 4) << 16) |
         ((uint64_t)(sbo >> 4) << 32) | (1ull << 62);
}
__device__ __forceinline__ uint32_t sa(const void* p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void mb_init(uint32_t b, int c) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(b), "r"(c) : "memory");
}
__device__ __forceinline__ void mb_expect(uint32_t b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(b), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mb_arrive(uint32_t b) {
  asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(b) : "memory");
}
__device__ __forceinline__ void mb_arrive2(uint32_t b) {
  asm volatile("mbarrier.arrive.shared.b64 _,[%0],2;" ::"r"(b) : "memory");
}
__device__ __forceinline__ void mb_arrive_remote(uint32_t b, int cta) {
  asm volatile(
      "{.reg .b32 r; mapa.shared::cluster.u32 r,%0,%1; mbarrier.arrive.shared::cluster.b64 "
      "_,[r];}" ::"r"(b),
      "r"(cta)
      : "memory");
}
__device__ __forceinline__ void mb_wait(uint32_t b, int ph) {
  asm volatile(
      "{.reg .pred p;\nL1: mbarrier.try_wait.parity.shared.b64 p,[%0],%1;\n@p bra L2;\nbra "
      "L1;\nL2:\n}" ::"r"(b),
      "r"(ph)
      : "memory");
}
__device__ __forceinline__ void mb_wait_cluster(uint32_t b, int ph) {
  asm volatile(
      "{.reg .pred p;\nL1: mbarrier.try_wait.parity.acquire.cluster.shared.b64 p,[%0],%1;\n@p bra "
      "L2;\nbra L1;\nL2:\n}" ::"r"(b),
      "r"(ph)
      : "memory");
}
__device__ __forceinline__ void bulk(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
          dst),
      "l"(src), "r"(bytes), "r"(bar)
      : "memory");
}

}  // namespace crucible::eigh
