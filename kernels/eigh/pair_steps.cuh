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
  constexpr int kFirstRow = kFirst ? 0 : 1;
  const int j = c.j, next_block = c.next_block, parity = j & 1;
  const int panel_start = c.panel;
  const bool cold = c.cold;
  const uint32_t exchange_barrier = c.first_barrier(), cold_barrier = c.second_barrier();
  THREAD_PLACE;
  const bool active = kFirst || warp + 48 >= next_block;
  if (active) {
    float tail = 0;
#pragma unroll
    for (int k = kFirstRow; k < 2; k++) {
      const int r = row + 512 * k;
      const float x_entry = r > j ? s.entry[k] : 0.f;
      if (r > j + 1) tail = fmaf(x_entry, x_entry, tail);
      if (r >= panel_start) store_x(X_SLOT + 2048 * k, x_entry);
      if (r == j + 1) {
        floats(kScalars)[kAlpha] = x_entry;
        floats(kScalars)[kPivotDiagonal + parity] = s.diagonal_entry[k];
      }
    }
    tail = warp_sum(tail);
    if (lane == 0) floats(kTailSums)[warp] = tail;
  } else if (lane == 0)
    floats(kTailSums)[warp] = 0;
  if (tid_ == 0) {
    const int na = kFirst ? 16 : min(16, kTiles - next_block);
    mbarrier_expect(exchange_barrier, na * 132 + 4 + (cold ? 32 : 0));
    if (cold) mbarrier_expect(cold_barrier, 2048);
  }
}

// Step 2, first part: V^T x (even warps) and W^T x (odd warps); warps 0 and 1 make the reflector's
// scalars and the coefficients of the panel's corrections from them. Partial barriers 1 (even
// warps) and 2 (odd), 256 threads each: seven arrive, warp 0 or 1 waits. One phase a column, two
// block barriers between two of them. The dots lie where the peer's second exchange of this column
// lands; the peer sends that after it has the first one, which warps 0 and 1 send after reading
// them.
__device__ __forceinline__ void dots_and_scalars(const State& s, const Column& c,
                                                 const Output& out) {
  const int j = c.j, i = c.i, next_block = c.next_block;
  const uint32_t memory = c.memory;
  THREAD_PLACE;
  const uint32_t xs = memory + kXAt + (g & 1) * 32 + q * 8;
  const int of_w = warp & 1, share = warp >> 1;
  float acc[4][4];
#pragma unroll
  for (int k = 0; k < 16; k++) acc[k >> 2][k & 3] = 0.f;
  if (i > 0) {
    const uint32_t ua = memory + kPanelAt + of_w * 512;
    int I = next_block + share;
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
  float dot = panel_dot(acc, q);
  float* dots = floats(kPeerColdProduct) + of_w * 128 + g + 8 * (q & 1);
  if (share > 0) {
    if (q < 2) dots[(share - 1) * 16] = dot;
    if (of_w)
      partial_arrive<2, 256>();
    else
      partial_arrive<1, 256>();
  } else {
    const float alpha = floats(kScalars)[kAlpha], tail = sum16(floats(kTailSums));
    const ReflectorScalars reflector = make_reflector(alpha, tail);
    if (tid_ == 0) {
      floats(kScalars)[kBeta] = reflector.beta;
      floats(kScalars)[kScaledTau] = reflector.scaled_tau;
      floats(kScalars)[kInverse] = reflector.inverse;
      if (s.c == 0) out.reflector_scale(j, tau_of(reflector, alpha));
    }
    if (of_w)
      partial_wait<2, 256>();
    else
      partial_wait<1, 256>();
    dot += ((dots[0] + dots[16]) + (dots[32] + dots[48])) + ((dots[64] + dots[80]) + dots[96]);
    if (q < 2) {
      const int l = g + 8 * q, column_half = ((j + 1) >> 3) & 1;
      const __half pivot =
          *(const __half*)(sm + kPanelAt + next_block * 1024 + warp * 512 +
                           (column_half + 2 * q) * 128 +
                           ((((j + 1) & 7) ^ (2 * (2 * ((next_block >> 4) & 1) + column_half)))
                            << 4) +
                           g * 2);
      store_coefficient(sm + kCoefficients, warp, g, q, dot, reflector, pivot, l, i);
    }
  }
}

// Step 2, second part: this block's part of A x for the thread's rows, sent to the peer.
template <bool kFirst>
__device__ __forceinline__ void product(const State& s, const Column& c, uint32_t (&cold0)[4][4],
                                        uint32_t (&cold1)[4][4], float (&y)[2]) {
  constexpr int kFirstRow = kFirst ? 0 : 1;
  const int j = c.j, i = c.i, next_block = c.next_block, parity = j & 1;
  const uint32_t memory = c.memory;
  const bool cold = c.cold;
  THREAD_PLACE;
  const bool active = kFirst || warp + 48 >= next_block;
  const uint32_t xs = memory + kXAt + (g & 1) * 32 + q * 8, tl = memory + lane * 16;
  if (active) {
    float y_rows[2] = {0, 0};
    float upper[2][2][4], lower[2][2][4];
#pragma unroll
    for (int k = 0; k < 16; k++)
      upper[k >> 3][(k >> 2) & 1][k & 3] = lower[k >> 3][(k >> 2) & 1][k & 3] = 0.f;
    const int rows1 = warp + 32, rows2 = warp + 48;
    if (kFirst) {
#pragma unroll 1
      for (int ph = 0; ph < 2; ph++) {
        if (ph == (((warp >> 2) & 1))) {
          if (cold) {
            y_rows[1] = -own_row(lower, q);
            uint2 xi[4];
#pragma unroll
            for (int h = 0; h < 4; h++) xi[h] = load_shared_64(xs + (warp + 16 * h) * 64);
            const int jr = (j + 1) & 15;
            const uint32_t py = s.peer + kPeerPivotSums + parity * 32,
                           pm = s.peer + kBarriers + parity * 8;
            const uint4* cold_tiles = s.cold_tiles + lane;
            int J = next_block + ((next_block ^ warp ^ s.c) & 1);
#pragma unroll 1
            for (; J < kCold; J += 4) {
              multiply_cold(cold0, upper, lower, xi, xs, warp, lane, J, next_block, jr, py, pm);
              load_cold(cold0, cold_tiles, warp, s.c, J + 4);
              multiply_cold(cold1, upper, lower, xi, xs, warp, lane, J + 2, next_block, jr, py, pm);
              load_cold(cold1, cold_tiles, warp, s.c, J + 6);
            }
            y_rows[1] += own_row(lower, q);
            y_rows[0] = own_row(upper, q);
            if (i < kPanel - 1) {
              const int Jn = (j + 2) >> 4, Jm = Jn + ((Jn ^ warp ^ s.c) & 1);
              load_cold(cold0, cold_tiles, warp, s.c, Jm);
              load_cold(cold1, cold_tiles, warp, s.c, Jm + 2);
            }
          }
        } else {
          multiply_run<1, 1, kUnrollFirst>(lower, tl, xs, rows1, rows2, s.c, kCold, rows1 + 1);
          multiply_run<2, 1, kUnrollFirst>(lower, tl, xs, rows1, rows2, s.c, rows1 + 1, rows2 + 1);
          multiply_run<2, 2, kUnrollFirst>(lower, tl, xs, rows1, rows2, s.c, rows2 + 1, kTiles);
        }
      }
    } else {
      if (rows1 >= next_block) {
        multiply_run<1, 1, kUnrollSecond>(lower, tl, xs, rows1, rows2, s.c, next_block, rows1 + 1);
        multiply_run<2, 1, kUnrollSecond>(lower, tl, xs, rows1, rows2, s.c, rows1 + 1, rows2 + 1);
        multiply_run<2, 2, kUnrollSecond>(lower, tl, xs, rows1, rows2, s.c, rows2 + 1, kTiles);
      } else {
        multiply_run<0, 1, kUnrollSecond>(lower, tl, xs, rows1, rows2, s.c, next_block, rows2 + 1);
        multiply_run<0, 2, kUnrollSecond>(lower, tl, xs, rows1, rows2, s.c, rows2 + 1, kTiles);
      }
    }
    float quadratic_part = 0;
    y[1] = own_row(lower, q);
    if (kFirst) y[0] = y_rows[0];
#pragma unroll
    for (int k = kFirstRow; k < 2; k++) {
      const int r = row + 512 * k;
      const float x_entry = r > j ? s.entry[k] : 0.f;
      if (s.c == 0) y[k] = fmaf(s.diagonal_entry[k], x_entry, y[k]);
      quadratic_part = fmaf(x_entry, y[k] + y_rows[k], quadratic_part);
      if (r == j + 1) {
        floats(kScalars)[kPivotProduct] = y[k];
        st_async(s.peer + kPeerPivot + parity * 4, y[k], s.peer + kBarriers + parity * 8);
      }
    }
    st_async(s.peer + kPeerProduct + parity * 2048 + tid_ * 4, y[1],
             s.peer + kBarriers + parity * 8);
    quadratic_part = warp_sum(quadratic_part);
    if (lane == 0) {
      floats(kQuadraticSums)[warp] = quadratic_part;
      st_async(s.peer + kQuadraticSums + 64 + parity * 64 + warp * 4, quadratic_part,
               s.peer + kBarriers + parity * 8);
    }
  } else if (lane == 0) {
    floats(kQuadraticSums)[warp] = 0;
    floats(kQuadraticSums)[16 + warp] = 0;
    floats(kQuadraticSums)[32 + warp] = 0;
  }
}

// Step 3: the rows of V and W of this column and the next column, from the sums of both blocks.
template <bool kFirst>
__device__ __forceinline__ void next_column(State& s, const Column& c, float (&y)[2],
                                            const unsigned short (&next_entries)[2],
                                            const Output& out) {
  constexpr int kFirstRow = kFirst ? 0 : 1;
  const int j = c.j, i = c.i, next_block = c.next_block, parity = j & 1;
  const uint32_t memory = c.memory;
  const bool cold = c.cold;
  const uint32_t exchange_barrier = c.first_barrier(), cold_barrier = c.second_barrier();
  THREAD_PLACE;
  const bool active = kFirst || warp + 48 >= next_block;
  if (active) {
    if (cold) {
      if (block_row >= next_block) {
        float t0 = 0, t1 = 0;
#pragma unroll
        for (int k = 0; k < 8; k += 2) {
          t0 += floats(kColumnSums)[(block_row * 8 + k) * 16 + (row & 15)];
          t1 += floats(kColumnSums)[(block_row * 8 + k + 1) * 16 + (row & 15)];
        }
        y[0] += t0 + t1;
      }
      {
        mbarrier_wait_cluster(exchange_barrier, (j >> 1) & 1);
        st_async(s.peer + kPeerColdProduct + tid_ * 4, y[0], s.peer + kBarriers + 16);
      }
    }
    const float beta = floats(kScalars)[kBeta], scaled_tau = floats(kScalars)[kScaledTau],
                inverse = floats(kScalars)[kInverse],
                pivot_diagonal = floats(kScalars)[kPivotDiagonal + parity];
    float p_correction[2] = {0, 0}, next_correction[2] = {0, 0}, pivot_correction = 0,
          quadratic_correction = 0;
    if (i > 0) {
      const uint2 v_coefficients = load_shared_64(memory + kCoefficients + (g & 3) * 32 + q * 8),
                  w_coefficients =
                      load_shared_64(memory + kCoefficients + (g & 3) * 32 + q * 8 + 128);
      float kt[4] = {0, 0, 0, 0};
      uint32_t at[4] = {g < 4 ? v_coefficients.x : 0u, 0u, g < 4 ? v_coefficients.y : 0u, 0u};
      mma(kt, at, w_coefficients.x, w_coefficients.y);
#pragma unroll
      for (int k = kFirstRow; k < 2; k++) {
        uint32_t fragment[4];
        float k2[4] = {0, 0, 0, 0}, k1[4] = {0, 0, 0, 0};
        const int Ia = warp + 32 * k, Ib = Ia + 16;
        if (Ib >= next_block) {
          load_tile(memory + kPanelAt + panel_offset(Ib, lane), fragment);
          mma(k2, fragment, v_coefficients.x, v_coefficients.y);
          load_tile(memory + kPanelAt + 512 + panel_offset(Ib, lane), fragment);
          mma(k2, fragment, w_coefficients.x, w_coefficients.y);
        }
        if (Ia >= next_block) {
          load_tile(memory + kPanelAt + panel_offset(Ia, lane), fragment);
          mma(k1, fragment, v_coefficients.x, v_coefficients.y);
          load_tile(memory + kPanelAt + 512 + panel_offset(Ia, lane), fragment);
          mma(k1, fragment, w_coefficients.x, w_coefficients.y);
        }
        float m0 = (q & 1) ? k1[0] : join(k1[0], k1[1]), m1 = (q & 1) ? k1[2] : join(k1[2], k1[3]);
        float n0 = (q & 1) ? k2[0] : join(k2[0], k2[1]), n1 = (q & 1) ? k2[2] : join(k2[2], k2[3]);
        float b0 = q < 2 ? m0 : n0, b1 = q < 2 ? m1 : n1;
        float keep = (q & 1) ? b1 : b0, give = (q & 1) ? b0 : b1;
        float got = __shfl_xor_sync(~0u, give, 1);
        p_correction[k] = (q & 1) ? got : keep;
        next_correction[k] = (q & 1) ? keep : got;
      }
      float e = join(kt[0], kt[1]);
      float e00 = __shfl_sync(~0u, e, 0), e10 = __shfl_sync(~0u, e, 4),
            e20 = __shfl_sync(~0u, e, 8), e01 = __shfl_sync(~0u, kt[0], 1),
            e11 = __shfl_sync(~0u, kt[0], 5);
      quadratic_correction = join(e00, e10);
      pivot_correction = e20 + join(e01, e11);
    }
    {
      if (!cold)
        mbarrier_wait_cluster(exchange_barrier, (j >> 1) & 1);
      else
        mbarrier_wait_cluster(cold_barrier, j & 1);
    }
    float quadratic =
        sum16(floats(kQuadraticSums)) + sum16(floats(kQuadraticSums + 64 + parity * 64));
    float own_pivot = floats(kScalars)[kPivotProduct], peer_pivot = floats(kPeerPivot)[parity];
    if (cold) {
      float t[8];
#pragma unroll
      for (int k = 0; k < 8; k++)
        t[k] = floats(kColumnSums)[(next_block * 8 + k) * 16 + ((j + 1) & 15)];
      own_pivot += ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
      peer_pivot += sum8(floats(kPeerPivotSums + parity * 32));
      y[0] += floats(kPeerColdProduct)[tid_];
    }
    y[1] += floats(kPeerProduct + parity * 2048)[tid_];
    const float pivot_product = own_pivot + peer_pivot;
    // The corrections carry the factor scaled_tau of the coefficients, the quadratic one twice.
    const float pivot_p = pivot_product - beta * pivot_diagonal;
    const float v_dot_p = quadratic - 2.f * beta * pivot_product + beta * beta * pivot_diagonal;
    const float shift = fmaf(-0.5f * scaled_tau * scaled_tau, v_dot_p, quadratic_correction);
    const float pivot_w =
        __half2float(__float2half_rn(fmaf(scaled_tau, pivot_p, shift - pivot_correction)));
    __syncwarp();  // every lane has read the panel's tiles that the warp now writes to
#pragma unroll
    for (int k = kFirstRow; k < 2; k++) {
      const int r = row + 512 * k;
      if (r > j) {
        const float next_entry =
            r == j + 1 ? s.diagonal_entry[k] : __half2float(__ushort_as_half(next_entries[k]));
        const float p = y[k] - beta * next_entry;
        float v = r == j + 1 ? (scaled_tau == 0.f ? 0.f : 1.f) : s.entry[k] * inverse;
        float w_entry = fmaf(scaled_tau, p, fmaf(shift, v, -p_correction[k]));
        __half v_half = __float2half_rn(v), w_half = __float2half_rn(w_entry);
        char* pd = PANEL_ROW + 32768 * k + (i >> 3) * 256 + (i & 7) * 2;
        *(__half*)pd = v_half;
        *(__half*)(pd + 512) = w_half;
        s.entry[k] = next_entry - next_correction[k] -
                     (__half2float(v_half) * pivot_w + __half2float(w_half));
        if (r == j + 1 && s.c == 0) {
          out.coupling(j, beta);
          if (i < kPanel - 1) out.diagonal(j + 1, s.entry[k]);
        }
      }
    }
  }
}

}  // namespace crucible::eigh::pair
