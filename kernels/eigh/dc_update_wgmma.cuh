// dc_update_wgmma.cuh: Z <- Z U for the large nodes: wgmma with A (= U) from registers (sm_90a).
#pragma once

#include "dc_update.cuh"

namespace crucible::eigh {
namespace dc {

__device__ __forceinline__ void wgmma128(float (&c)[64], const unsigned (&a)[4],
                                         uint64_t d){CRUCIBLE_SM90A(asm volatile(
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
    "25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%"
    "48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},{%64,%65,%66,%67},%68,1,1,1,1;"
    "\n"
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
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(d)))} __device__ __forceinline__
    void wgmma256(float (&c)[128], const unsigned (&a)[4], uint64_t d) {
  CRUCIBLE_SM90A(asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%"
      "25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%"
      "48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%"
      "71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%"
      "94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%"
      "113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},{%128,%129,%130,%"
      "131},%132,1,1,1,1;\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
        "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
        "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
        "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
        "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]),
        "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
        "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
        "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
        "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]),
        "+f"(c[63]), "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67]), "+f"(c[68]), "+f"(c[69]),
        "+f"(c[70]), "+f"(c[71]), "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75]), "+f"(c[76]),
        "+f"(c[77]), "+f"(c[78]), "+f"(c[79]), "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83]),
        "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87]), "+f"(c[88]), "+f"(c[89]), "+f"(c[90]),
        "+f"(c[91]), "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95]), "+f"(c[96]), "+f"(c[97]),
        "+f"(c[98]), "+f"(c[99]), "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103]),
        "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107]), "+f"(c[108]), "+f"(c[109]),
        "+f"(c[110]), "+f"(c[111]), "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115]),
        "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119]), "+f"(c[120]), "+f"(c[121]),
        "+f"(c[122]), "+f"(c[123]), "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(d)))
}

// Z update with wgmma: A (= W^T, generated in registers) m64 x k16, B (= gathered rows of Zt) k16 x
// N from shared, MN-major, 128B swizzle
constexpr auto k_ST256 = 3;
constexpr auto k_ST128 = 3;
#define STCOND
constexpr auto k_MINB = 2;
template <int N>
__global__ void __launch_bounds__(128, N == 256 ? k_MINB : 4)
    k_gemmw(WS w, int n, int NL, int lw, int njt, int ny, const half* A, half* B) {
  extern __shared__ __align__(16) char sm0[];
  constexpr int ST = N == 256 ? k_ST256 : k_ST128, SB = 32 * N * 2, CH = N / 8, KI = 32 * CH / 128;
  char* sm = (char*)(((uintptr_t)sm0 + 1023) & ~(uintptr_t)1023);
  const int bx = blockIdx.x / ny, y = blockIdx.x - bx * ny;
  Node nd = node(n, NL, lw, bx);
  const int jt = y % njt, rt = y / njt;
  const int k = w.cnt[nd.id * 8], kl0 = w.cnt[nd.id * 8 + 1], kl1 = w.cnt[nd.id * 8 + 2],
            j0 = jt * 64, r0 = rt * N;
  if (j0 >= k) return;
  const int KP0 = (kl0 + 31) / 32 * 32, KP1 = (kl1 + 31) / 32 * 32, tid = threadIdx.x,
            ln = tid & 31, wp = tid >> 5, gq = ln >> 2, t4 = ln & 3;
  float2* pz = (float2*)(sm + ST * SB);
  int* ps = (int*)(pz + KP0 + KP1 + 64);
  for (int i = tid; i < KP0 + KP1; i += 128) {
    float2 v = make_float2(1e30f, 0.f);
    int s = 255 << 12;
    bool h = i >= KP0;
    int q = h ? i - KP0 : i;
    if (q < (h ? kl1 : kl0)) {
      float4 c = (h ? w.bp : w.tp)[nd.off + q];
      v = make_float2(c.x, c.y);
      s = __float_as_int(c.z);
    }
    pz[h ? i + 32 : i] = v;
    ps[i] = s;
  }
  float dof[2], inm[2], ct[2];
  int js[2];
  const int jw = j0 + wp * 16 + gq;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int j = jw + 8 * i;
    float4 v = make_float4(0.f, -1e20f, 1.f, 0.f);
    if (j < k) v = w.rp[nd.off + j];
    dof[i] = v.x;
    inm[i] = v.z;
    ct[i] = -v.y * v.z;
    js[i] = (__float_as_int(v.w) & 2047) * n;
  }
  __syncthreads();
  const int ch = tid % CH, k0 = tid / CH, cc = ch & 7;
  const unsigned sb = (unsigned)__cvta_generic_to_shared(sm), so = sb + (ch >> 3) * 4096;
  const half* ab = A + nd.off * n + nd.base + r0;
  half* ob = B + nd.off * n + nd.base + r0;
  int hb, rows, un, NK;
  bool rok;
  const half* az;
  const float2* pzh;
  const int* psh;
  auto setup = [&](int h) {
    hb = h;
    int rb = h ? nd.mid - nd.base : 0;
    rows = (h ? nd.end - nd.mid : nd.mid - nd.base) - r0;
    un = ((nd.base + rb + r0) >> 3) + ch;
    rok = 8 * ch < rows;
    az = ab + rb + (rok ? 8 * ch : 0);
    NK = (h ? KP1 : KP0) / 32;
    pzh = pz + (h ? KP0 + 32 : 0);
    psh = ps + (h ? KP0 : 0);
  };
  auto load = [&](int kt, int st) {
#pragma unroll
    for (int i = 0; i < KI; i++) {
      int kk = k0 + i * (128 / CH);
      int g = psh[kt * 32 + kk];
      bool ok = rok && un >= ((g >> 12) & 255) && un <= ((g >> 20) & 255);
      unsigned a = so + st * SB + (kk >> 3) * 1024 + (kk & 7) * 128 + ((cc ^ (kk & 7)) << 4);
      int sz = ok ? 16 : 0, o = ok ? (g & 2047) * n : 0;
      asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(a), "l"(az + o), "r"(sz));
    }
  };
  auto gen = [&](int q, unsigned(&f)[4]) {
    const float4 pa = *(const float4*)(pzh + q * 16 + 2 * t4),
                 pb = *(const float4*)(pzh + q * 16 + 2 * t4 + 8);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float o = dof[h], c = ct[h], nm = inm[h];
      f[h] = h2(pa.y * rcpf(fmaf(pa.x - o, nm, c)), pa.w * rcpf(fmaf(pa.z - o, nm, c)));
      f[h + 2] = h2(pb.y * rcpf(fmaf(pb.x - o, nm, c)), pb.w * rcpf(fmaf(pb.z - o, nm, c)));
    }
  };
  float acc[N / 2];
  unsigned a0[4], a1[4], b0[4], b1[4];
  auto body = [&](int kt, unsigned(&u0)[4], unsigned(&u1)[4], unsigned(&x0)[4], unsigned(&x1)[4]) {
    asm volatile("cp.async.wait_group %0;" ::"n"(ST - 2) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (kt + ST - 1 < NK) load(kt + ST - 1, (kt + ST - 1) % ST);
    asm volatile("cp.async.commit_group;");
    const unsigned bs = sb + (kt % ST) * SB;
    const uint64_t dsc = (uint64_t)((bs & 0x3ffff) >> 4) | ((uint64_t)(4096 >> 4) << 16) |
                         ((uint64_t)(1024 >> 4) << 32) | (1ull << 62);
    CRUCIBLE_SM90A(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"))
    if constexpr (N == 256) {
      wgmma256(acc, u0, dsc);
      wgmma256(acc, u1, dsc + (2048 >> 4));
    } else {
      wgmma128(acc, u0, dsc);
      wgmma128(acc, u1, dsc + (2048 >> 4));
    }
    CRUCIBLE_SM90A(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"))
    gen(kt * 2 + 2, x0);
    gen(kt * 2 + 3, x1);
    CRUCIBLE_SM90A(asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"))
  };
  auto prefetch = [&]() {
    for (int s = 0; s < ST - 1; s++) {
      if (s < NK) load(s, s);
      asm volatile("cp.async.commit_group;");
    }
  };
  setup(0);
  prefetch();
#pragma unroll 1
  for (int h_ = 0; h_ < 2; h_++) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) acc[i] = 0.f;
    gen(0, a0);
    gen(1, a1);
    for (int kt = 0; kt < NK; kt += 2) {
      body(kt, a0, a1, b0, b1);
      if (kt + 1 < NK) body(kt + 1, b0, b1, a0, a1);
    }
    half* oz = ob + (hb ? nd.mid - nd.base : 0);
    const int rw = rows;
    if (h_ == 0) {
      __syncthreads();
      setup(1);
      prefetch();
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      bool ok = jw + 8 * h < k;
#pragma unroll
      for (int f = 0; f < N / 8; f += 4) {
        unsigned v0 = h2(acc[4 * f + 2 * h], acc[4 * f + 2 * h + 1]),
                 v1 = h2(acc[4 * f + 4 + 2 * h], acc[4 * f + 5 + 2 * h]);
        unsigned v2 = h2(acc[4 * f + 8 + 2 * h], acc[4 * f + 9 + 2 * h]),
                 v3 = h2(acc[4 * f + 12 + 2 * h], acc[4 * f + 13 + 2 * h]);
        bool o1 = t4 & 1, o2 = t4 & 2;
        unsigned x;
        x = __shfl_xor_sync(~0u, o1 ? v0 : v1, 1);
        if (o1)
          v0 = x;
        else
          v1 = x;
        x = __shfl_xor_sync(~0u, o1 ? v2 : v3, 1);
        if (o1)
          v2 = x;
        else
          v3 = x;
        x = __shfl_xor_sync(~0u, o2 ? v0 : v2, 2);
        if (o2)
          v0 = x;
        else
          v2 = x;
        x = __shfl_xor_sync(~0u, o2 ? v1 : v3, 2);
        if (o2)
          v1 = x;
        else
          v3 = x;
        int r = 8 * (f + t4);
        if (ok && r < rw STCOND) *(uint4*)(oz + js[h] + r) = make_uint4(v0, v1, v2, v3);
      }
    }
  }
}
}  // namespace dc
}  // namespace crucible::eigh
