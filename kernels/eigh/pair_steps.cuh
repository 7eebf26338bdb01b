// pair_steps.cuh: the three steps of a column of the two-block reduction.
//
// 1 publish_column, 2 dots_and_scalars and product, 3 next_column; a block barrier lies between
// them, and product / next_column exchange sums with the peer block by st.async.
#pragma once

#include "pair_product.cuh"
#include "partial_barrier.cuh"

namespace crucible::eigh::pair {

// Step 1: x and the partial norm to shared memory; announces what the peer will send.
template <bool kFirst>
__device__ __forceinline__ void publish_column(const State& s, const Column& c) {
  constexpr int S0 = kFirst ? 0 : 1;
  const int j = c.j, i = c.i, J1 = c.next_tile, par = j & 1;
  (void)i;
  (void)par;
  const int p0 = c.panel;
  const bool useA = c.cold;
  const uint32_t mbB = c.first_barrier(), mbA = c.second_barrier();
  SEC;
  const bool active = kFirst || w + 48 >= J1;
  if (active) {
    float sg = 0;
#pragma unroll
    for (int k = S0; k < 2; k++) {
      const int r = ra + 512 * k;
      const float xv = r > j ? s.av[k] : 0.f;
      if (r > j + 1) sg = fmaf(xv, xv, sg);
      if (r >= p0) store_x(XSTA + 2048 * k, xv);
      if (r == j + 1) {
        floats(oSC)[0] = xv;
        floats(oSC)[8 + par] = s.dg[k];
      }
    }
    sg = warp_sum(sg);
    if (lane == 0) floats(oRED)[w] = sg;
  } else if (lane == 0)
    floats(oRED)[w] = 0;
  if (tid_ == 0) {
    const int na = kFirst ? 16 : min(16, kTiles - J1);
    expect_bytes(mbB, na * 132 + 4 + ((useA) ? 32 : 0));
    if (useA) expect_bytes(mbA, 2048);
  }
}

// Step 2, first part: V^T x (even warps) and W^T x (odd warps); warps 0 and 1 make the reflector's
// scalars and the coefficients of the panel's corrections from them.
__device__ __forceinline__ void dots_and_scalars(const State& s, const Column& c,
                                                 const Output& out) {
  const int j = c.j, i = c.i, J1 = c.next_tile, par = j & 1;
  const uint32_t smb = c.memory;
  (void)i;
  (void)par;
  SEC;
  const uint32_t xs = smb + oXS + (g & 1) * 32 + q * 8;
  const int lb = w & 1, kq = w >> 1;
  float acc[4][4];
#pragma unroll
  for (int k = 0; k < 16; k++) acc[k >> 2][k & 3] = 0.f;
  if (i > 0) {
    const uint32_t ua = smb + oU + lb * 512;
    int I = J1 + kq;
#pragma unroll 1
    for (; I + 24 < kTiles; I += 32) {
      uint32_t f[4][4];
      uint2 xb[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        load_tile_transposed(ua + panel_offset(I + 8 * k, lane), f[k]);
        xb[k] = load_shared_64(xs + (I + 8 * k) * 64);
      }
#pragma unroll
      for (int k = 0; k < 4; k++) mma(acc[k], f[k], xb[k].x, xb[k].y);
    }
#pragma unroll 1
    for (; I < kTiles; I += 8) {
      uint32_t f[4];
      load_tile_transposed(ua + panel_offset(I, lane), f);
      uint2 xb = load_shared_64(xs + I * 64);
      mma(acc[0], f, xb.x, xb.y);
    }
  }
  float h0 = (q & 1) ? (acc[0][2] + acc[1][2]) + (acc[2][2] + acc[3][2])
                     : (acc[0][0] + acc[1][0]) + (acc[2][0] + acc[3][0]);
  float l0 = (q & 1) ? (acc[0][3] + acc[1][3]) + (acc[2][3] + acc[3][3])
                     : (acc[0][1] + acc[1][1]) + (acc[2][1] + acc[3][1]);
  h0 = join_x(h0, l0);
  float* dp = floats(oRA) + lb * 128 + g + 8 * (q & 1);
  if (kq > 0) {
    if (q < 2) dp[(kq - 1) * 16] = h0;
    if (lb)
      partial_arrive<2, 256>();
    else
      partial_arrive<1, 256>();
  } else {
    const float al = floats(oSC)[0], sg = sum16(floats(oRED));
    float s2 = fmaf(al, al, sg), nr = s2 * fast_rsqrt(s2), be = -copysignf(nr, al),
          ti = -fast_reciprocal(be), inv = fast_reciprocal(al - be);
    if (!(sg > kTailSquared)) {
      be = al;
      ti = 0;
      inv = 0;
    }
    if (tid_ == 0) {
      floats(oSC)[4] = be;
      floats(oSC)[5] = ti;
      floats(oSC)[6] = inv;
      if (s.c == 0) out.reflector_scale(j, ti == 0.f ? 0.f : 1.f - al / be);
    }
    if (lb)
      partial_wait<2, 256>();
    else
      partial_wait<1, 256>();
    h0 += ((dp[0] + dp[16]) + (dp[32] + dp[48])) + ((dp[64] + dp[80]) + dp[96]);
    if (q < 2) {
      const int l = g + 8 * q, b3 = ((j + 1) >> 3) & 1;
      __half d =
          *(const __half*)(sm + oU + J1 * 1024 + w * 512 + (b3 + 2 * q) * 128 +
                           ((((j + 1) & 7) ^ (2 * (2 * ((J1 >> 4) & 1) + b3))) << 4) + g * 2);
      float cc = h0 - be * __half2float(d);
      if (l >= i) {
        cc = 0;
        d = __ushort_as_half(0);
      }
      __half* cd = (__half*)(sm + oCF) + (w ? 0 : 64) + (g >> 1) * 4 + q * 2 + (g & 1);
      __half ch = __float2half_rn(cc);
      cd[0] = ch;
      cd[16] = __float2half_rn((cc - __half2float(ch)) * kLowScale);
      cd[32] = d;
    }
  }
}

// Step 2, second part: this block's part of A x for the thread's rows, sent to the peer.
template <bool kFirst>
__device__ __forceinline__ void product(const State& s, const Column& c, uint32_t (&F0)[4][4],
                                        uint32_t (&F1)[4][4], float (&y)[2]) {
  constexpr int S0 = kFirst ? 0 : 1;
  const int j = c.j, i = c.i, J1 = c.next_tile, par = j & 1;
  const uint32_t smb = c.memory;
  (void)i;
  (void)par;
  const bool useA = c.cold;
  SEC;
  const bool active = kFirst || w + 48 >= J1;
  const uint32_t xs = smb + oXS + (g & 1) * 32 + q * 8, tl = smb + lane * 16;
  if (active) {
    float yR[2] = {0, 0};
    float aA[2][2][4], aB[2][2][4];
#pragma unroll
    for (int k = 0; k < 16; k++)
      aA[k >> 3][(k >> 2) & 1][k & 3] = aB[k >> 3][(k >> 2) & 1][k & 3] = 0.f;
    const int I1 = w + 32, I2 = w + 48;
    if (kFirst) {
#pragma unroll 1
      for (int ph = 0; ph < 2; ph++) {
        if (ph == (((w >> 2) & 1))) {
          if (useA) {
            yR[1] = -own_row(aB, q);
            uint2 xi[4];
#pragma unroll
            for (int h = 0; h < 4; h++) xi[h] = load_shared_64(xs + (w + 16 * h) * 64);
            const int jr = (j + 1) & 15;
            const uint32_t py = s.peer + oY1X + par * 32, pm = s.peer + oMB + par * 8;
            const uint4* gt = s.gt + lane;
            int J = J1 + ((J1 ^ w ^ s.c) & 1);
#pragma unroll 1
            for (; J < kCold; J += 4) {
              multiply_cold(F0, aA, aB, xi, xs, w, lane, J, J1, jr, py, pm);
              load_cold(F0, gt, w, s.c, J + 4);
              multiply_cold(F1, aA, aB, xi, xs, w, lane, J + 2, J1, jr, py, pm);
              load_cold(F1, gt, w, s.c, J + 6);
            }
            yR[1] += own_row(aB, q);
            yR[0] = own_row(aA, q);
            if (i < kPanel - 1) {
              const int Jn = (j + 2) >> 4, Jm = Jn + ((Jn ^ w ^ s.c) & 1);
              load_cold(F0, gt, w, s.c, Jm);
              load_cold(F1, gt, w, s.c, Jm + 2);
            }
          }
        } else {
          seg<1, 1, kUnrollFirst>(aB, tl, xs, I1, I2, s.c, kCold, I1 + 1);
          seg<2, 1, kUnrollFirst>(aB, tl, xs, I1, I2, s.c, I1 + 1, I2 + 1);
          seg<2, 2, kUnrollFirst>(aB, tl, xs, I1, I2, s.c, I2 + 1, kTiles);
        }
      }
    } else {
      if (I1 >= J1) {
        seg<1, 1, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, J1, I1 + 1);
        seg<2, 1, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, I1 + 1, I2 + 1);
        seg<2, 2, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, I2 + 1, kTiles);
      } else {
        seg<0, 1, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, J1, I2 + 1);
        seg<0, 2, kUnrollSecond>(aB, tl, xs, I1, I2, s.c, I2 + 1, kTiles);
      }
    }
    float vav = 0;
    y[1] = own_row(aB, q);
    if (kFirst) y[0] = yR[0];
#pragma unroll
    for (int k = S0; k < 2; k++) {
      const int r = ra + 512 * k;
      const float xv = r > j ? s.av[k] : 0.f;
      if (s.c == 0) y[k] = fmaf(s.dg[k], xv, y[k]);
      vav = fmaf(xv, y[k] + yR[k], vav);
      if (r == j + 1) {
        floats(oSC)[2] = y[k];
        st_async(s.peer + oY1S + par * 4, y[k], s.peer + oMB + par * 8);
      }
    }
    st_async(s.peer + oRB + par * 2048 + tid_ * 4, y[1], s.peer + oMB + par * 8);
    vav = warp_sum(vav);
    if (lane == 0) {
      floats(oVAV)[w] = vav;
      st_async(s.peer + oVAV + 64 + par * 64 + w * 4, vav, s.peer + oMB + par * 8);
    }
  } else if (lane == 0) {
    floats(oVAV)[w] = 0;
    floats(oVAV)[16 + w] = 0;
    floats(oVAV)[32 + w] = 0;
  }
}

// Step 3: the rows of V and W of this column and the next column, from the sums of both blocks.
template <bool kFirst>
__device__ __forceinline__ void next_column(State& s, const Column& c, float (&y)[2],
                                            const unsigned short (&an)[2], const Output& out) {
  constexpr int S0 = kFirst ? 0 : 1;
  const int j = c.j, i = c.i, J1 = c.next_tile, par = j & 1;
  const uint32_t smb = c.memory;
  (void)i;
  (void)par;
  const bool useA = c.cold;
  const uint32_t mbB = c.first_barrier(), mbA = c.second_barrier();
  SEC;
  const bool active = kFirst || w + 48 >= J1;
  const int lane3 = lane;
  if (active) {
    if (useA) {
      if (rIa >= J1) {
        float t0 = 0, t1 = 0;
#pragma unroll
        for (int k = 0; k < 8; k += 2) {
          t0 += floats(oPOV)[(rIa * 8 + k) * 16 + (ra & 15)];
          t1 += floats(oPOV)[(rIa * 8 + k + 1) * 16 + (ra & 15)];
        }
        y[0] += t0 + t1;
      }
      {
        mbarrier_wait(mbB, (j >> 1) & 1);
        st_async(s.peer + oRA + tid_ * 4, y[0], s.peer + oMB + 16);
      }
    }
    const float beta = floats(oSC)[4], ti = floats(oSC)[5], inv = floats(oSC)[6],
                dj = floats(oSC)[8 + par];
    float S1[2] = {0, 0}, S2[2] = {0, 0}, T1 = 0, T2 = 0;
    if (i > 0) {
      const uint2 bv = load_shared_64(smb + oCF + (g & 3) * 32 + q * 8),
                  bw = load_shared_64(smb + oCF + (g & 3) * 32 + q * 8 + 128);
      float kt[4] = {0, 0, 0, 0};
      uint32_t at[4] = {g < 4 ? bv.x : 0u, 0u, g < 4 ? bv.y : 0u, 0u};
      mma(kt, at, bw.x, bw.y);
#pragma unroll
      for (int k = S0; k < 2; k++) {
        uint32_t fa[4];
        float k2[4] = {0, 0, 0, 0}, k1[4] = {0, 0, 0, 0};
        const int Ia = w + 32 * k, Ib = Ia + 16;
        if (Ib >= J1) {
          load_tile(smb + oU + panel_offset(Ib, lane3), fa);
          mma(k2, fa, bv.x, bv.y);
          load_tile(smb + oU + 512 + panel_offset(Ib, lane3), fa);
          mma(k2, fa, bw.x, bw.y);
        }
        if (Ia >= J1) {
          load_tile(smb + oU + panel_offset(Ia, lane3), fa);
          mma(k1, fa, bv.x, bv.y);
          load_tile(smb + oU + 512 + panel_offset(Ia, lane3), fa);
          mma(k1, fa, bw.x, bw.y);
        }
        float m0 = (q & 1) ? k1[0] : join(k1[0], k1[1]), m1 = (q & 1) ? k1[2] : join(k1[2], k1[3]);
        float n0 = (q & 1) ? k2[0] : join(k2[0], k2[1]), n1 = (q & 1) ? k2[2] : join(k2[2], k2[3]);
        float b0 = q < 2 ? m0 : n0, b1 = q < 2 ? m1 : n1;
        float keep = (q & 1) ? b1 : b0, give = (q & 1) ? b0 : b1;
        float got = __shfl_xor_sync(~0u, give, 1);
        S1[k] = (q & 1) ? got : keep;
        S2[k] = (q & 1) ? keep : got;
      }
      float e = join(kt[0], kt[1]);
      float e00 = __shfl_sync(~0u, e, 0), e10 = __shfl_sync(~0u, e, 4),
            e20 = __shfl_sync(~0u, e, 8), e01 = __shfl_sync(~0u, kt[0], 1),
            e11 = __shfl_sync(~0u, kt[0], 5);
      T2 = join(e00, e10);
      T1 = e20 + join(e01, e11);
    }
    {
      if (!useA)
        mbarrier_wait(mbB, (j >> 1) & 1);
      else
        mbarrier_wait(mbA, j & 1);
    }
    float xax = sum16(floats(oVAV)) + sum16(floats(oVAV + 64 + par * 64));
    float y1o = floats(oSC)[2], y1p = floats(oY1S)[par];
    if (useA) {
      float t[8];
#pragma unroll
      for (int k = 0; k < 8; k++) t[k] = floats(oPOV)[(J1 * 8 + k) * 16 + ((j + 1) & 15)];
      y1o += ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
      y1p += sum8(floats(oY1X + par * 32));
      y[0] += floats(oRA)[tid_];
    }
    y[1] += floats(oRB + par * 2048)[tid_];
    const float y1 = y1o + y1p;
    const float p1 = y1 - beta * dj - T1;
    const float pu = xax - 2.f * beta * y1 + beta * beta * dj - 2.f * T2;
    const float al2 = -0.5f * ti * ti * pu;
    const float w1 = __half2float(__float2half_rn(fmaf(ti, p1, al2)));
#pragma unroll
    for (int k = S0; k < 2; k++) {
      const int r = ra + 512 * k;
      if (r > j) {
        const float ac = r == j + 1 ? s.dg[k] : __half2float(__ushort_as_half(an[k]));
        float p = y[k] - beta * ac - S1[k];
        float v = r == j + 1 ? (ti == 0.f ? 0.f : 1.f) : s.av[k] * inv;
        float ww = fmaf(ti, p, al2 * v);
        __half vh = __float2half_rn(v), wh = __float2half_rn(ww);
        char* pd = UBA + 32768 * k + (i >> 3) * 256 + (i & 7) * 2;
        *(__half*)pd = vh;
        *(__half*)(pd + 512) = wh;
        s.av[k] = ac - S2[k] - (__half2float(vh) * w1 + __half2float(wh));
        if (r == j + 1 && s.c == 0) {
          out.coupling(j, beta);
          if (i < kPanel - 1) out.diagonal(j + 1, s.av[k]);
        }
      }
    }
  }
}

}  // namespace crucible::eigh::pair
