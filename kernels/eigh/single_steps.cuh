// single_steps.cuh: the three steps of a column of the one-block reduction.
//
// 1 publish_column, | 2 dots_and_scalars and multiply, | 3 next_column; | is a barrier of the whole
// block. There is none between step 3 and step 1 of the next column, and none is needed: step 1
// writes x, the tail sums, alpha and the pivot diagonal of its own parity; step 3 reads none of
// these (the pivot diagonal it reads is the other parity's). What step 2 writes (beta, tau, the
// inverse, the pivot product, coefficients, quadratic, column and pivot sums, dots) is last read in
// step 3 of the column before, which every thread has left when it passes the barrier after step 1.
// Step 3 reads the panel's tiles of the warp's own block rows by ldmatrix and then writes this
// column of its own rows: same warp, program order; step 2 of the next column reads them all, after
// the barrier of step 1.
#pragma once

#include "partial_barrier.cuh"
#include "single_product.cuh"

namespace crucible::eigh::single {

// Step 1: x and the partial norm to shared memory.
template <int TT>
__device__ __forceinline__ void publish_column(const State& s, const Column& c) {
  using Memory = MemoryMap<TT>;
  constexpr int kHalf = TT / 2;
  const int j = c.j, next_block = c.next_block;
  const int panel_start = c.panel;
  THREAD_PLACE;
  const bool active = warp + kHalf >= next_block;
  if (active) {
    const float x_entry = row > j ? s.entry : 0.f;
    float tail = row > j + 1 ? x_entry * x_entry : 0.f;
    if (row >= panel_start) store_x(X_SLOT, x_entry);
    if (row == j + 1) {
      scalar<TT>(kAlpha) = x_entry;
      scalar<TT>(kPivotDiagonal + (j & 1)) = s.diagonal_entry;
    }
    tail = warp_sum(tail);
    if (lane == 0) floats(Memory::kTailSums)[warp] = tail;
  } else {
    if (lane == 0) floats(Memory::kTailSums)[warp] = 0;
    if (row == j) {
      char* xst = X_SLOT;
      *(__half*)xst = *(__half*)(xst + 32) = __ushort_as_half(0);
    }
  }
}

// Step 2 of warps 0-5: V^T x (even warps) and W^T x (odd), three warps each; then warps 0 and 1
// make the reflector's scalars and the coefficients of W (warp 0) and of V (warp 1).
//
// Partial barriers 1 (warps 0, 2, 4) and 2 (warps 1, 3, 5), 96 threads each, carry the dots from
// the two helpers, which arrive and go on, to warp 0 or 1, which waits. One phase a column: the
// helpers reach the next one, and write the dots again, only after the two block barriers that
// follow, so after warp 0 or 1 has left this phase and read its dots.
template <int TT>
__device__ __forceinline__ void dots_and_scalars(const State& s, const Column& c,
                                                 const Output& out) {
  using Memory = MemoryMap<TT>;
  constexpr int kHalf = TT / 2;
  const int j = c.j, i = c.i, next_block = c.next_block;
  THREAD_PLACE;
  const Context ctx = PRODUCT_CONTEXT;
  // coefficients of W (warp 0) and of V (warp 1)
  const int of_w = warp & 1, share = warp >> 1;
  float acc[4][4];
#pragma unroll
  for (int k = 0; k < 16; k++) acc[k >> 2][k & 3] = 0.f;
  if (i > 0) {
    const uint32_t ua = shared_address(sm) + Memory::kPanelAt + of_w * 512;
    int I = next_block + share;
#pragma unroll 1
    for (; I + 9 < TT; I += 12) {
      uint32_t f[4][4];
      uint2 xb[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        load_tile_transposed(ua + panel_offset<kHalf>(I + 3 * k, lane), f[k]);
        xb[k] = load_shared_64(ctx.xs + (I + 3 * k) * 64);
      }
#pragma unroll
      for (int k = 0; k < 4; k++) mma(acc[k], f[k], xb[k].x, xb[k].y);
    }
#pragma unroll 1
    for (; I < TT; I += 3) {
      uint32_t f[4];
      load_tile_transposed(ua + panel_offset<kHalf>(I, lane), f);
      uint2 xb = load_shared_64(ctx.xs + I * 64);
      mma(acc[0], f, xb.x, xb.y);
    }
  }
  float dot = panel_dot(acc, q);
  float* dots = floats(Memory::kDots) + of_w * 32 + g + 8 * (q & 1);
  if (share > 0) {
    if (q < 2) dots[(share - 1) * 16] = dot;
    if (of_w)
      partial_arrive<2, 96>();
    else
      partial_arrive<1, 96>();
  } else {
    float4 t = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < kHalf; k += 4) {
      float4 b = *(float4*)&floats(Memory::kTailSums)[k];
      t.x += b.x;
      t.y += b.y;
      t.z += b.z;
      t.w += b.w;
    }
    const float alpha = scalar<TT>(kAlpha), tail = (t.x + t.y) + (t.z + t.w);
    const ReflectorScalars reflector = make_reflector(alpha, tail);
    if (tid_ == 0) {
      scalar<TT>(kBeta) = reflector.beta;
      scalar<TT>(kScaledTau) = reflector.scaled_tau;
      scalar<TT>(kInverse) = reflector.inverse;
      out.reflector_scale(j, tau_of(reflector, alpha));
    }
    if (of_w)
      partial_wait<2, 96>();
    else
      partial_wait<1, 96>();
    dot += dots[0] + dots[16];
    if (q < 2) {
      const int l = g + 8 * q, column_half = ((j + 1) >> 3) & 1;
      const __half pivot = *(
          const __half*)(sm + Memory::kPanelAt + next_block * 1024 + warp * 512 +
                         (column_half + 2 * q) * 128 +
                         ((((j + 1) & 7) ^ (2 * (2 * (next_block >= kHalf) + column_half))) << 4) +
                         g * 2);
      store_coefficient(sm + Memory::kCoefficients, warp, g, q, dot, reflector, pivot, l, i);
    }
  }
}

// Step 2 of all warps: y = A x for the thread's row, x^T A x by warp; ac, the row's entry of column
// j + 1, where it is in registers.
template <bool kFirst, int TT>
__device__ __forceinline__ void multiply(const State& s, const Column& c,
                                         const Registers<TT>& registers, float& y,
                                         float& next_entry) {
  using Memory = MemoryMap<TT>;
  constexpr int kHalf = TT / 2, kHeld = Memory::kHeld, kHeldFrom = Memory::kHeldFrom;
  const int j = c.j, next_block = c.next_block;
  const auto& first_upper = registers.first_upper;
  const auto& first_lower = registers.first_lower;
  const auto& held = registers.held;
  THREAD_PLACE;
  const bool active = warp + kHalf >= next_block;
  const Context ctx = PRODUCT_CONTEXT;
  if (active) {
    float y_rows = 0;
    {
      float acc[2][2][4];
#pragma unroll
      for (int k = 0; k < 16; k++) acc[k >> 3][(k >> 2) & 1][k & 3] = 0.f;
      const int rows1 = warp, rows2 = warp + kHalf;
      if (kFirst) {
        const int Js = max(next_block, kRegisterColumns);
#pragma unroll 1
        for (int ph = 0; ph < 2; ph++) {
          if (ph == ((warp >> 2) & 1)) {
            {
              y_rows = -own_row(acc, q);
              const uint2 x1 = load_shared_64(ctx.xs + rows1 * 64),
                          x2 = load_shared_64(ctx.xs + rows2 * 64);
#pragma unroll
              for (int J = 0; J < kRegisterColumns; J++) {
                if (J >= next_block) {
                  uint32_t f2[4], t[4];
                  const uint2 xj = load_shared_64(ctx.xs + J * 64);
                  float col[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
                  if (J < kRegisterColumns - 1) {
                    f2[0] = first_lower[J < kRegisterColumns - 1 ? J : 0][0];
                    f2[1] = first_lower[J < kRegisterColumns - 1 ? J : 0][1];
                    f2[2] = first_lower[J < kRegisterColumns - 1 ? J : 0][2];
                    f2[3] = first_lower[J < kRegisterColumns - 1 ? J : 0][3];
                  } else
                    load_tile(ctx.tiles + ((((TT - 1 - J) * (TT - J)) >> 1) + TT - 1 - rows2) * 512,
                              f2);
                  mma(acc[1][J & 1], f2, xj.x, xj.y);
                  transpose_fragment(f2, t);
                  mma(col[0], t, x2.x, x2.y);
                  if (warp > J) {
                    mma(acc[0][J & 1], first_upper[J], xj.x, xj.y);
                    transpose_fragment(first_upper[J], t);
                    mma(col[1], t, x1.x, x1.y);
                  }
                  float v0 = join_x(col[0][0] + col[1][0], col[0][1] + col[1][1]),
                        v1 = join_x(col[0][2] + col[1][2], col[0][3] + col[1][3]);
                  if (q == 0) {
                    floats(Memory::kColumnSums)[(J * 16 + warp) * 16 + g] = v0;
                    floats(Memory::kColumnSums)[(J * 16 + warp) * 16 + 8 + g] = v1;
                    if (J == next_block && g == ((j + 1) & 7))
                      floats(Memory::kPivotSums)[warp] = ((j + 1) & 8) ? v1 : v0;
                  }
                }
              }
              y_rows += own_row(acc, q);
#pragma unroll
              for (int J = 0; J < kRegisterColumns; J++)
                if (warp == J && J >= next_block) {
                  const uint2 xj = load_shared_64(ctx.xs + J * 64);
                  mma(acc[0][0], first_upper[J], xj.x, xj.y);
                }
            }
          } else {
            if (rows1 >= kRegisterColumns && rows1 >= next_block) {
              multiply_run<1, 1, TT, kUnrollFirst>(acc, ctx, rows1, rows2, Js, rows1 + 1);
              multiply_run<2, 1, TT, kUnrollFirst>(acc, ctx, rows1, rows2, rows1 + 1, rows2 + 1);
              multiply_run<2, 2, TT, kUnrollFirst>(acc, ctx, rows1, rows2, rows2 + 1, TT);
            } else {
              multiply_run<0, 1, TT, kUnrollFirst>(acc, ctx, rows1, rows2, Js, rows2 + 1);
              multiply_run<0, 2, TT, kUnrollFirst>(acc, ctx, rows1, rows2, rows2 + 1, TT);
            }
          }
        }
      } else {
        const int e2 = min(rows2 + 1, kHeldFrom);
        if (rows1 >= next_block) {
          multiply_run<1, 1, TT, kUnrollSecond>(acc, ctx, rows1, rows2, next_block, rows1 + 1);
          multiply_run<2, 1, TT, kUnrollSecond>(acc, ctx, rows1, rows2, rows1 + 1, e2);
          multiply_run<2, 2, TT, kUnrollSecond>(acc, ctx, rows1, rows2, e2, kHeldFrom);
          const int pivot_p = TT - 1 - rows1;
          const uint32_t ta = ctx.tiles + (((pivot_p * (pivot_p + 1)) >> 1) + kHeld - 1) * 512,
                         xa = ctx.xs + kHeldFrom * 64;
#pragma unroll
          for (int k0 = 0; k0 < kHeld; k0 += 4) {
            uint32_t f[4][4];
            uint2 xj[4];
#pragma unroll
            for (int k = k0; k < k0 + 4 && k < kHeld; k++) {
              xj[k - k0] = load_shared_64(xa + k * 64);
              load_tile_transposed(ta - k * 512, f[k - k0]);
            }
#pragma unroll
            for (int k = k0; k < k0 + 4 && k < kHeld; k++) {
              mma(acc[1][k & 1], held[k], xj[k - k0].x, xj[k - k0].y);
              mma(acc[0][k & 1], f[k - k0], xj[k - k0].x, xj[k - k0].y);
            }
          }
        } else {
          multiply_run<0, 1, TT, kUnrollSecond>(acc, ctx, rows1, rows2, next_block, e2);
          multiply_run<0, 2, TT, kUnrollSecond>(acc, ctx, rows1, rows2, max(e2, next_block),
                                                kHeldFrom);
          const uint32_t xa = ctx.xs + kHeldFrom * 64;  // x = 0 for finished columns: no guards
#pragma unroll
          for (int k = 0; k < kHeld; k++) {
            const uint2 xj = load_shared_64(xa + k * 64);
            mma(acc[1][k & 1], held[k], xj.x, xj.y);
          }
        }
      }
      y = own_row(acc, q);
    }
    const float x_entry = row > j ? s.entry : 0.f;
    y = fmaf(s.diagonal_entry, x_entry, y);
    if (kFirst) {
      float z = element<kFirst, TT>(s, registers, j + 1);
      next_entry = row > j + 1 ? z : (row == j + 1 ? s.diagonal_entry : 0.f);
    }
    float vav = warp_sum(x_entry * (y + y_rows));
    if (lane == 0) floats(Memory::kQuadraticSums)[warp] = vav;
    if (row == j + 1) scalar<TT>(kPivotProduct) = y;
  } else if (lane == 0)
    floats(Memory::kQuadraticSums)[warp] = 0;
}

// Step 3: the thread's row of V and W of this column and its entry of the next column.
template <bool kFirst, int TT>
__device__ __forceinline__ void next_column(State& s, const Column& c,
                                            const Registers<TT>& registers, float y,
                                            float next_entry, const Output& out) {
  using Memory = MemoryMap<TT>;
  constexpr int kHalf = TT / 2;
  const int j = c.j, i = c.i, next_block = c.next_block;
  THREAD_PLACE;
  const bool active = warp + kHalf >= next_block;
  if (active) {
    if (!kFirst) {
      float z = element<kFirst, TT>(s, registers, j + 1);
      next_entry = row > j + 1 ? z : (row == j + 1 ? s.diagonal_entry : 0.f);
    }
    const float beta = scalar<TT>(kBeta), scaled_tau = scalar<TT>(kScaledTau),
                inverse = scalar<TT>(kInverse),
                pivot_diagonal = scalar<TT>(kPivotDiagonal + (j & 1));
    float pivot_product = scalar<TT>(kPivotProduct);
    float p_correction = 0, next_correction = 0, pivot_correction = 0, quadratic_correction = 0;
    if (i > 0) {
      const uint2 v_coefficients = load_shared_64(shared_address(sm) + Memory::kCoefficients +
                                                  (g & 3) * 32 + q * 8),
                  w_coefficients = load_shared_64(shared_address(sm) + Memory::kCoefficients +
                                                  (g & 3) * 32 + q * 8 + 128);
      uint32_t fragment[4];
      float k2[4] = {0, 0, 0, 0}, k1[4] = {0, 0, 0, 0}, kt[4] = {0, 0, 0, 0};
      load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(warp + kHalf, lane),
                fragment);
      mma(k2, fragment, v_coefficients.x, v_coefficients.y);
      load_tile(
          shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(warp + kHalf, lane),
          fragment);
      mma(k2, fragment, w_coefficients.x, w_coefficients.y);
      if (warp >= next_block) {
        load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(warp, lane),
                  fragment);
        mma(k1, fragment, v_coefficients.x, v_coefficients.y);
        load_tile(shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(warp, lane),
                  fragment);
        mma(k1, fragment, w_coefficients.x, w_coefficients.y);
      }
      uint32_t at[4] = {g < 4 ? v_coefficients.x : 0u, 0u, g < 4 ? v_coefficients.y : 0u, 0u};
      mma(kt, at, w_coefficients.x,
          w_coefficients.y);  // rows: cW hi, lo, dW; columns: cV hi, lo, dV
      float e = join(kt[0], kt[1]);
      float e00 = __shfl_sync(~0u, e, 0), e10 = __shfl_sync(~0u, e, 4),
            e20 = __shfl_sync(~0u, e, 8), e01 = __shfl_sync(~0u, kt[0], 1),
            e11 = __shfl_sync(~0u, kt[0], 5);
      quadratic_correction = join(e00, e10);
      pivot_correction = e20 + join(e01, e11);
      // lane q even holds S1 (hi, lo) of four rows, q odd S2
      float m0 = (q & 1) ? k1[0] : join(k1[0], k1[1]), m1 = (q & 1) ? k1[2] : join(k1[2], k1[3]);
      float n0 = (q & 1) ? k2[0] : join(k2[0], k2[1]), n1 = (q & 1) ? k2[2] : join(k2[2], k2[3]);
      float b0 = q < 2 ? m0 : n0, b1 = q < 2 ? m1 : n1;  // rows g and g+8 of my block
      float keep = (q & 1) ? b1 : b0, give = (q & 1) ? b0 : b1;
      float got = __shfl_xor_sync(~0u, give, 1);
      p_correction = (q & 1) ? got : keep;
      next_correction = (q & 1) ? keep : got;
    }
    float4 quadratic_parts = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < kHalf; k += 4) {
      float4 b = *(float4*)&floats(Memory::kQuadraticSums)[k];
      quadratic_parts.x += b.x;
      quadratic_parts.y += b.y;
      quadratic_parts.z += b.z;
      quadratic_parts.w += b.w;
    }
    const float quadratic =
        (quadratic_parts.x + quadratic_parts.y) + (quadratic_parts.z + quadratic_parts.w);
    if (kFirst && next_block < kRegisterColumns) {
      float4 ya = *(float4*)floats(Memory::kPivotSums),
             yb = *(float4*)(floats(Memory::kPivotSums) + 4),
             yc = *(float4*)(floats(Memory::kPivotSums) + 8),
             yd = *(float4*)(floats(Memory::kPivotSums) + 12);
      pivot_product += (((ya.x + ya.y) + (ya.z + ya.w)) + ((yb.x + yb.y) + (yb.z + yb.w))) +
                       (((yc.x + yc.y) + (yc.z + yc.w)) + ((yd.x + yd.y) + (yd.z + yd.w)));
      if (warp < kRegisterColumns && warp >= next_block && q < 2) {
        float t0 = 0, t1 = 0;
#pragma unroll
        for (int k = 0; k < 16; k += 2) {
          t0 += floats(Memory::kColumnSums)[(warp * 16 + k) * 16 + (row & 15)];
          t1 += floats(Memory::kColumnSums)[(warp * 16 + k + 1) * 16 + (row & 15)];
        }
        y += t0 + t1;
      }
    }
    // The corrections carry the factor scaled_tau of the coefficients, the quadratic one twice.
    const float pivot_p = pivot_product - beta * pivot_diagonal;
    const float v_dot_p = quadratic - 2.f * beta * pivot_product + beta * beta * pivot_diagonal;
    const float shift = fmaf(-0.5f * scaled_tau * scaled_tau, v_dot_p, quadratic_correction);
    const float pivot_w =
        __half2float(__float2half_rn(fmaf(scaled_tau, pivot_p, shift - pivot_correction)));
    if (row > j) {
      const float p = y - beta * next_entry;
      float v = row == j + 1 ? (scaled_tau == 0.f ? 0.f : 1.f) : s.entry * inverse;
      float w_entry = fmaf(scaled_tau, p, fmaf(shift, v, -p_correction));
      __half v_half = __float2half_rn(v), w_half = __float2half_rn(w_entry);
      char* pd = PANEL_ROW + (i >> 3) * 256 + (i & 7) * 2;
      *(__half*)pd = v_half;
      *(__half*)(pd + 512) = w_half;
      s.entry =
          next_entry - next_correction - (__half2float(v_half) * pivot_w + __half2float(w_half));
      if (row == j + 1) {
        out.coupling(j, beta);
        if (i < kPanel - 1) out.diagonal(j + 1, s.entry);
      }
    }
  }
}

}  // namespace crucible::eigh::single
