// single_steps.cuh: the three steps of a column of the one-block reduction.
//
// 1 publish_column, 2 dots_and_scalars and multiply, 3 next_column, a block barrier between them.
#pragma once

#include "partial_barrier.cuh"
#include "single_product.cuh"

namespace crucible::eigh::single {

// Step 1: x and the partial norm to shared memory.
template <int TT>
__device__ __forceinline__ void publish_column(const State& s, const Column& c) {
  using MM = Map<TT>;
  constexpr int HT = TT / 2;
  const int j = c.j, i = c.i, J1 = c.next_tile;
  (void)j;
  (void)i;
  (void)J1;
  const int p0 = c.panel;
  SEC;
  const bool active = w + HT >= J1;
  if (active) {
    const float xv = r > j ? s.av : 0.f;
    float sg = r > j + 1 ? xv * xv : 0.f;
    if (r >= p0) store_x(XST, xv);
    if (r == j + 1) {
      floats(MM::SC)[0] = xv;
      floats(MM::SC)[8 + (j & 1)] = s.dg;
    }
    sg = warp_sum(sg);
    if (lane == 0) floats(MM::RED)[w] = sg;
  } else {
    if (lane == 0) floats(MM::RED)[w] = 0;
    if (r == j) {
      char* xst = XST;
      *(__half*)xst = *(__half*)(xst + 32) = __ushort_as_half(0);
    }
  }
}

// Step 2 of warps 0-5: V^T x (even warps) and W^T x (odd), three warps each; then warps 0 and 1
// make the reflector's scalars and the coefficients of W (warp 0) and of V (warp 1).
template <int TT>
__device__ __forceinline__ void dots_and_scalars(const State& s, const Column& c,
                                                 const Output& out) {
  using MM = Map<TT>;
  constexpr int HT = TT / 2;
  const int j = c.j, i = c.i, J1 = c.next_tile;
  (void)j;
  (void)i;
  (void)J1;
  SEC;
  const Context ctx = CTX;
  // coefficients of W (warp 0) and of V (warp 1)
  const int lb = w & 1, kq = w >> 1;
  float acc[4][4];
#pragma unroll
  for (int k = 0; k < 16; k++) acc[k >> 2][k & 3] = 0.f;
  if (i > 0) {
    const uint32_t ua = shared_address(sm) + MM::U + lb * 512;
    int I = J1 + kq;
#pragma unroll 1
    for (; I + 9 < TT; I += 12) {
      uint32_t f[4][4];
      uint2 xb[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        load_tile_transposed(ua + panel_offset<HT>(I + 3 * k, lane), f[k]);
        xb[k] = load_shared_64(ctx.xs + (I + 3 * k) * 64);
      }
#pragma unroll
      for (int k = 0; k < 4; k++) mma(acc[k], f[k], xb[k].x, xb[k].y);
    }
#pragma unroll 1
    for (; I < TT; I += 3) {
      uint32_t f[4];
      load_tile_transposed(ua + panel_offset<HT>(I, lane), f);
      uint2 xb = load_shared_64(ctx.xs + I * 64);
      mma(acc[0], f, xb.x, xb.y);
    }
  }
  float h0 = (q & 1) ? (acc[0][2] + acc[1][2]) + (acc[2][2] + acc[3][2])
                     : (acc[0][0] + acc[1][0]) + (acc[2][0] + acc[3][0]);
  float l0 = (q & 1) ? (acc[0][3] + acc[1][3]) + (acc[2][3] + acc[3][3])
                     : (acc[0][1] + acc[1][1]) + (acc[2][1] + acc[3][1]);
  h0 = join_x(h0, l0);
  float* dp = floats(MM::DOT) + lb * 32 + g + 8 * (q & 1);
  if (kq > 0) {
    if (q < 2) dp[(kq - 1) * 16] = h0;
    if (lb)
      partial_arrive<2, 96>();
    else
      partial_arrive<1, 96>();
  } else {
    float4 t = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < HT; k += 4) {
      float4 b = *(float4*)&floats(MM::RED)[k];
      t.x += b.x;
      t.y += b.y;
      t.z += b.z;
      t.w += b.w;
    }
    float al = floats(MM::SC)[0], sg = (t.x + t.y) + (t.z + t.w), s2 = fmaf(al, al, sg),
          nr = s2 * fast_rsqrt(s2), be = -copysignf(nr, al), ti = -fast_reciprocal(be),
          inv = fast_reciprocal(al - be);
    if (!(sg > kTailSquared)) {
      be = al;
      ti = 0;
      inv = 0;
    }
    if (tid_ == 0) {
      floats(MM::SC)[4] = be;
      floats(MM::SC)[5] = ti;
      floats(MM::SC)[6] = inv;
      out.reflector_scale(j, ti == 0.f ? 0.f : 1.f - al / be);
    }
    if (lb)
      partial_wait<2, 96>();
    else
      partial_wait<1, 96>();
    h0 += dp[0] + dp[16];
    if (q < 2) {
      const int l = g + 8 * q, b3 = ((j + 1) >> 3) & 1;
      __half d = *(const __half*)(sm + MM::U + J1 * 1024 + w * 512 + (b3 + 2 * q) * 128 +
                                  ((((j + 1) & 7) ^ (2 * (2 * (J1 >= HT) + b3))) << 4) + g * 2);
      float cc = h0 - be * __half2float(d);
      if (l >= i) {
        cc = 0;
        d = __ushort_as_half(0);
      }
      __half* cd = (__half*)(sm + MM::CF) + (w ? 0 : 64) + (g >> 1) * 4 + q * 2 + (g & 1);
      __half ch = __float2half_rn(cc);
      cd[0] = ch;
      cd[16] = __float2half_rn((cc - __half2float(ch)) * kLowScale);
      cd[32] = d;
    }
  }
}

// Step 2 of all warps: y = A x for the thread's row, x^T A x by warp; ac, the row's entry of column
// j + 1, where it is in registers.
template <bool kFirst, int TT>
__device__ __forceinline__ void multiply(const State& s, const Column& c,
                                         const Registers<TT>& registers, float& y, float& ac) {
  using MM = Map<TT>;
  constexpr int HT = TT / 2, NF = MM::kHeld, JF = MM::kHeldFrom;
  const int j = c.j, i = c.i, J1 = c.next_tile;
  (void)j;
  (void)i;
  (void)J1;
  const auto& R0 = registers.R0;
  const auto& R1 = registers.R1;
  const auto& RF = registers.RF;
  SEC;
  const bool active = w + HT >= J1;
  const Context ctx = CTX;
  if (active) {
    float yR = 0;
    {
      float acc[2][2][4];
#pragma unroll
      for (int k = 0; k < 16; k++) acc[k >> 3][(k >> 2) & 1][k & 3] = 0.f;
      const int I1 = w, I2 = w + HT;
      if (kFirst) {
        const int Js = max(J1, kRegisterColumns);
#pragma unroll 1
        for (int ph = 0; ph < 2; ph++) {
          if (ph == ((w >> 2) & 1)) {
            {
              yR = -own_row(acc, q);
              const uint2 x1 = load_shared_64(ctx.xs + I1 * 64),
                          x2 = load_shared_64(ctx.xs + I2 * 64);
#pragma unroll
              for (int J = 0; J < kRegisterColumns; J++) {
                if (J >= J1) {
                  uint32_t f2[4], t[4];
                  const uint2 xj = load_shared_64(ctx.xs + J * 64);
                  float col[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
                  if (J < kRegisterColumns - 1) {
                    f2[0] = R1[J < kRegisterColumns - 1 ? J : 0][0];
                    f2[1] = R1[J < kRegisterColumns - 1 ? J : 0][1];
                    f2[2] = R1[J < kRegisterColumns - 1 ? J : 0][2];
                    f2[3] = R1[J < kRegisterColumns - 1 ? J : 0][3];
                  } else
                    load_tile(ctx.tiles + ((((TT - 1 - J) * (TT - J)) >> 1) + TT - 1 - I2) * 512,
                              f2);
                  mma(acc[1][J & 1], f2, xj.x, xj.y);
                  transpose_fragment(f2, t);
                  mma(col[0], t, x2.x, x2.y);
                  if (w > J) {
                    mma(acc[0][J & 1], R0[J], xj.x, xj.y);
                    transpose_fragment(R0[J], t);
                    mma(col[1], t, x1.x, x1.y);
                  }
                  float v0 = join_x(col[0][0] + col[1][0], col[0][1] + col[1][1]),
                        v1 = join_x(col[0][2] + col[1][2], col[0][3] + col[1][3]);
                  if (q == 0) {
                    floats(MM::POV)[(J * 16 + w) * 16 + g] = v0;
                    floats(MM::POV)[(J * 16 + w) * 16 + 8 + g] = v1;
                    if (J == J1 && g == ((j + 1) & 7)) floats(MM::Y1P)[w] = ((j + 1) & 8) ? v1 : v0;
                  }
                }
              }
              yR += own_row(acc, q);
#pragma unroll
              for (int J = 0; J < kRegisterColumns; J++)
                if (w == J && J >= J1) {
                  const uint2 xj = load_shared_64(ctx.xs + J * 64);
                  mma(acc[0][0], R0[J], xj.x, xj.y);
                }
            }
          } else {
            if (I1 >= kRegisterColumns && I1 >= J1) {
              seg<1, 1, TT, kUnrollFirst>(acc, ctx, I1, I2, Js, I1 + 1);
              seg<2, 1, TT, kUnrollFirst>(acc, ctx, I1, I2, I1 + 1, I2 + 1);
              seg<2, 2, TT, kUnrollFirst>(acc, ctx, I1, I2, I2 + 1, TT);
            } else {
              seg<0, 1, TT, kUnrollFirst>(acc, ctx, I1, I2, Js, I2 + 1);
              seg<0, 2, TT, kUnrollFirst>(acc, ctx, I1, I2, I2 + 1, TT);
            }
          }
        }
      } else {
        const int e2 = min(I2 + 1, JF);
        if (I1 >= J1) {
          seg<1, 1, TT, kUnrollSecond>(acc, ctx, I1, I2, J1, I1 + 1);
          seg<2, 1, TT, kUnrollSecond>(acc, ctx, I1, I2, I1 + 1, e2);
          seg<2, 2, TT, kUnrollSecond>(acc, ctx, I1, I2, e2, JF);
          const int p1 = TT - 1 - I1;
          const uint32_t ta = ctx.tiles + (((p1 * (p1 + 1)) >> 1) + NF - 1) * 512,
                         xa = ctx.xs + JF * 64;
#pragma unroll
          for (int k0 = 0; k0 < NF; k0 += 4) {
            uint32_t f[4][4];
            uint2 xj[4];
#pragma unroll
            for (int k = k0; k < k0 + 4 && k < NF; k++) {
              xj[k - k0] = load_shared_64(xa + k * 64);
              load_tile_transposed(ta - k * 512, f[k - k0]);
            }
#pragma unroll
            for (int k = k0; k < k0 + 4 && k < NF; k++) {
              mma(acc[1][k & 1], RF[k], xj[k - k0].x, xj[k - k0].y);
              mma(acc[0][k & 1], f[k - k0], xj[k - k0].x, xj[k - k0].y);
            }
          }
        } else {
          seg<0, 1, TT, kUnrollSecond>(acc, ctx, I1, I2, J1, e2);
          seg<0, 2, TT, kUnrollSecond>(acc, ctx, I1, I2, max(e2, J1), JF);
          const uint32_t xa = ctx.xs + JF * 64;  // x = 0 for finished columns: no guards
#pragma unroll
          for (int k = 0; k < NF; k++) {
            const uint2 xj = load_shared_64(xa + k * 64);
            mma(acc[1][k & 1], RF[k], xj.x, xj.y);
          }
        }
      }
      y = own_row(acc, q);
    }
    const float xv = r > j ? s.av : 0.f;
    y = fmaf(s.dg, xv, y);
    if (kFirst) {
      float z = element<kFirst, TT>(s, registers, j + 1);
      ac = r > j + 1 ? z : (r == j + 1 ? s.dg : 0.f);
    }
    float vav = warp_sum(xv * (y + yR));
    if (lane == 0) floats(MM::VAV)[w] = vav;
    if (r == j + 1) floats(MM::SC)[2] = y;
  } else if (lane == 0)
    floats(MM::VAV)[w] = 0;
}

// Step 3: the thread's row of V and W of this column and its entry of the next column.
template <bool kFirst, int TT>
__device__ __forceinline__ void next_column(State& s, const Column& c,
                                            const Registers<TT>& registers, float y, float ac,
                                            const Output& out) {
  using MM = Map<TT>;
  constexpr int HT = TT / 2;
  const int j = c.j, i = c.i, J1 = c.next_tile;
  (void)j;
  (void)i;
  (void)J1;
  SEC;
  const bool active = w + HT >= J1;
  const int lane3 = lane;
  if (active) {
    if (!kFirst) {
      float z = element<kFirst, TT>(s, registers, j + 1);
      ac = r > j + 1 ? z : (r == j + 1 ? s.dg : 0.f);
    }
    const float beta = floats(MM::SC)[4], ti = floats(MM::SC)[5], inv = floats(MM::SC)[6],
                dj = floats(MM::SC)[8 + (j & 1)];
    float y1 = floats(MM::SC)[2];
    float S1 = 0, S2 = 0, T1 = 0, T2 = 0;
    if (i > 0) {
      const uint2 bv = load_shared_64(shared_address(sm) + MM::CF + (g & 3) * 32 + q * 8),
                  bw = load_shared_64(shared_address(sm) + MM::CF + (g & 3) * 32 + q * 8 + 128);
      uint32_t fa[4];
      float k2[4] = {0, 0, 0, 0}, k1[4] = {0, 0, 0, 0}, kt[4] = {0, 0, 0, 0};
      load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w + HT, lane3), fa);
      mma(k2, fa, bv.x, bv.y);
      load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w + HT, lane3), fa);
      mma(k2, fa, bw.x, bw.y);
      if (w >= J1) {
        load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w, lane3), fa);
        mma(k1, fa, bv.x, bv.y);
        load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w, lane3), fa);
        mma(k1, fa, bw.x, bw.y);
      }
      uint32_t at[4] = {g < 4 ? bv.x : 0u, 0u, g < 4 ? bv.y : 0u, 0u};
      mma(kt, at, bw.x, bw.y);  // rows: cW hi, lo, dW; columns: cV hi, lo, dV
      float e = join(kt[0], kt[1]);
      float e00 = __shfl_sync(~0u, e, 0), e10 = __shfl_sync(~0u, e, 4),
            e20 = __shfl_sync(~0u, e, 8), e01 = __shfl_sync(~0u, kt[0], 1),
            e11 = __shfl_sync(~0u, kt[0], 5);
      T2 = join(e00, e10);
      T1 = e20 + join(e01, e11);
      // lane q even holds S1 (hi, lo) of four rows, q odd S2
      float m0 = (q & 1) ? k1[0] : join(k1[0], k1[1]), m1 = (q & 1) ? k1[2] : join(k1[2], k1[3]);
      float n0 = (q & 1) ? k2[0] : join(k2[0], k2[1]), n1 = (q & 1) ? k2[2] : join(k2[2], k2[3]);
      float b0 = q < 2 ? m0 : n0, b1 = q < 2 ? m1 : n1;  // rows g and g+8 of my block
      float keep = (q & 1) ? b1 : b0, give = (q & 1) ? b0 : b1;
      float got = __shfl_xor_sync(~0u, give, 1);
      S1 = (q & 1) ? got : keep;
      S2 = (q & 1) ? keep : got;
    }
    float4 va = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < HT; k += 4) {
      float4 b = *(float4*)&floats(MM::VAV)[k];
      va.x += b.x;
      va.y += b.y;
      va.z += b.z;
      va.w += b.w;
    }
    const float xax = (va.x + va.y) + (va.z + va.w);
    if (kFirst && J1 < kRegisterColumns) {
      float4 ya = *(float4*)floats(MM::Y1P), yb = *(float4*)(floats(MM::Y1P) + 4),
             yc = *(float4*)(floats(MM::Y1P) + 8), yd = *(float4*)(floats(MM::Y1P) + 12);
      y1 += (((ya.x + ya.y) + (ya.z + ya.w)) + ((yb.x + yb.y) + (yb.z + yb.w))) +
            (((yc.x + yc.y) + (yc.z + yc.w)) + ((yd.x + yd.y) + (yd.z + yd.w)));
      if (w < kRegisterColumns && w >= J1 && q < 2) {
        float t0 = 0, t1 = 0;
#pragma unroll
        for (int k = 0; k < 16; k += 2) {
          t0 += floats(MM::POV)[(w * 16 + k) * 16 + (r & 15)];
          t1 += floats(MM::POV)[(w * 16 + k + 1) * 16 + (r & 15)];
        }
        y += t0 + t1;
      }
    }
    const float p1 = y1 - beta * dj - T1;
    const float pu = xax - 2.f * beta * y1 + beta * beta * dj - 2.f * T2;
    const float al2 = -0.5f * ti * ti * pu;
    const float w1 = __half2float(__float2half_rn(fmaf(ti, p1, al2)));
    if (r > j) {
      float p = y - beta * ac - S1;
      float v = r == j + 1 ? (ti == 0.f ? 0.f : 1.f) : s.av * inv;
      float ww = fmaf(ti, p, al2 * v);
      __half vh = __float2half_rn(v), wh = __float2half_rn(ww);
      char* pd = UB + (i >> 3) * 256 + (i & 7) * 2;
      *(__half*)pd = vh;
      *(__half*)(pd + 512) = wh;
      s.av = ac - S2 - (__half2float(vh) * w1 + __half2float(wh));
      if (r == j + 1) {
        out.coupling(j, beta);
        if (i < kPanel - 1) out.diagonal(j + 1, s.av);
      }
    }
  }
}

}  // namespace crucible::eigh::single
