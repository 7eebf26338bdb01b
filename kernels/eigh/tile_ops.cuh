// tile_ops.cuh: 16x16 FP16 tiles in shared memory as mma.m16n8k16 fragments (sm_80 and later).
//
// Tile layout in shared memory, 512 bytes: four 8x8 blocks of 128 bytes in the order (rows 0-7,
// columns 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15); a row of a block is 16 bytes. So the
// address tile + 16 * lane is what ldmatrix.x4 wants, and it yields the A fragment.
// A lane is (g, q) = (lane / 4, lane % 4): it holds rows g and g+8, columns 2q, 2q+1, 2q+8, 2q+9.
//
// A vector x that multiplies tiles is kept as two FP16 halves, x = (hi + lo / 2048) / kXScale,
// in the two columns of one B fragment, so a product has 22 bits of x. Per 16 rows: 32 bytes of
// hi, then 32 of lo, permuted so that a lane's four values are 8 contiguous bytes.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "shared_memory.cuh"

namespace crucible::eigh {

constexpr float kLowScale = 2048.f;
// max|A| < 1, and x is off the diagonal of a matrix similar to A, so |x_k| is at most half the
// spread of A's eigenvalues, normF(A) / sqrt(2) < n / sqrt(2): 32 times that is 46341 at n = 2048
// and stays a half (65504). An x of 1e-7 still keeps 12 bits and more.
constexpr float kXScale = 32.f;

__device__ __forceinline__ void load_tile(uint32_t address, uint32_t* f) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void load_tile_transposed(uint32_t address, uint32_t* f) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[2]), "=r"(f[1]), "=r"(f[3])
               : "r"(address)
               : "memory");
}
// By the whole warp; the __syncwarp keeps a tile that the warp has read until every lane has it.
__device__ __forceinline__ void store_tile(uint32_t tile, int lane, const uint32_t* f) {
  __syncwarp();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(tile + k * 128 + lane * 4), "r"(f[k]) : "memory");
  }
}
__device__ __forceinline__ uint32_t transpose_block(uint32_t a) {
  uint32_t d;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}
__device__ __forceinline__ void transpose_fragment(const uint32_t* f, uint32_t* t) {
  t[0] = transpose_block(f[0]);
  t[2] = transpose_block(f[1]);
  t[1] = transpose_block(f[2]);
  t[3] = transpose_block(f[3]);
}
__device__ __forceinline__ void mma(float* c, const uint32_t* a, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint2 load_shared_64(uint32_t address) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
  return v;
}
__device__ __forceinline__ float2 to_float2(uint32_t u) {
  return __half22float2(*reinterpret_cast<__half2*>(&u));
}
__device__ __forceinline__ uint32_t to_half2(float2 v) {
  const __half2 h = __float22half2_rn(v);
  return *reinterpret_cast<const uint32_t*>(&h);
}
__device__ __forceinline__ float fast_rsqrt(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The product with x from the accumulators of its hi and lo columns.
__device__ __forceinline__ float join(float hi, float lo) { return fmaf(lo, 1.f / kLowScale, hi); }
__device__ __forceinline__ float join_x(float hi, float lo) {
  return join(hi, lo) * (1.f / kXScale);
}
__device__ __forceinline__ void store_x(char* at, float value) {
  const float x = value * kXScale;
  const __half hi = __float2half_rn(x);
  *reinterpret_cast<__half*>(at) = hi;
  *reinterpret_cast<__half*>(at + 32) = __float2half_rn((x - __half2float(hi)) * kLowScale);
}

// A warp's two row blocks, each summed in two accumulators: the value of the row this lane owns
// (lane q: row block q / 2, row g + 8 * (q % 2)).
__device__ __forceinline__ float own_row(const float (&acc)[2][2][4], int q) {
  const int k = q >> 1;
  const float h0 = k ? acc[1][0][0] + acc[1][1][0] : acc[0][0][0] + acc[0][1][0];
  const float l0 = k ? acc[1][0][1] + acc[1][1][1] : acc[0][0][1] + acc[0][1][1];
  const float h1 = k ? acc[1][0][2] + acc[1][1][2] : acc[0][0][2] + acc[0][1][2];
  const float l1 = k ? acc[1][0][3] + acc[1][1][3] : acc[0][0][3] + acc[0][1][3];
  return (q & 1) ? join_x(h1, l1) : join_x(h0, l0);
}

enum class Diagonal { kNone, kBothHalves, kStrictLower };

// Clears what a diagonal tile does not hold: its diagonal (kept apart in FP32), for kStrictLower
// its upper half too.
__device__ __forceinline__ void clear_diagonal(float2* o, Diagonal kind, int g, int q) {
  if (kind == Diagonal::kNone) return;
  const bool low = kind == Diagonal::kStrictLower;
  if (low) o[2] = make_float2(0.f, 0.f);
  if (low ? g <= 2 * q : g == 2 * q) o[0].x = o[3].x = 0.f;
  if (low ? g <= 2 * q + 1 : g == 2 * q + 1) o[0].y = o[3].y = 0.f;
}

// tile -= V_I W_J^T + W_I V_J^T: fragments in and out, FP32 sums, rounded once.
__device__ __forceinline__ void update_tile(uint32_t* f, const uint32_t* v_i, const uint32_t* w_i,
                                            const uint32_t* w_j, const uint32_t* v_j, Diagonal kind,
                                            int g, int q) {
  const float2 x0 = to_float2(f[0]), x1 = to_float2(f[1]);
  const float2 x2 = to_float2(f[2]), x3 = to_float2(f[3]);
  float left[4] = {-x0.x, -x0.y, -x1.x, -x1.y}, right[4] = {-x2.x, -x2.y, -x3.x, -x3.y};
  mma(left, v_i, w_j[0], w_j[2]);
  mma(right, v_i, w_j[1], w_j[3]);
  mma(left, w_i, v_j[0], v_j[2]);
  mma(right, w_i, v_j[1], v_j[3]);
  float2 o[4] = {
      {-left[0], -left[1]}, {-left[2], -left[3]}, {-right[0], -right[1]}, {-right[2], -right[3]}};
  clear_diagonal(o, kind, g, q);
#pragma unroll
  for (int k = 0; k < 4; ++k) f[k] = to_half2(o[k]);
}

// The input of a reduction: one triangle of a, scaled, behind `pad` zero rows and columns.
struct PaddedInput {
  const float* a;
  int n, pad, exponent;
  bool upper, zero;  // zero: a non-finite matrix, read as 0

  __device__ __forceinline__ float scaled(float value) const {
    const int first = -exponent / 2, second = -exponent - first;
    return value * __int_as_float((127 + first) << 23) * __int_as_float((127 + second) << 23);
  }
  __device__ __forceinline__ float at(int row, int column) const {
    const int r = max(row, column) - pad, c = min(row, column) - pad;
    if (c < 0 || zero) return 0.f;
    return scaled(
        __ldcs(a + (upper ? static_cast<int64_t>(c) * n + r : static_cast<int64_t>(r) * n + c)));
  }
  // The lane's part of tile (I, J), in fragment order, before rounding.
  __device__ __forceinline__ void tile(int block_row, int block_column, int g, int q,
                                       float2* v) const {
    const int row = block_row * 16 + g, column = block_column * 16 + 2 * q;
    if (!upper && !zero && block_row > block_column && (n & 1) == 0 && block_column * 16 >= pad) {
      const float* p = a + static_cast<int64_t>(row - pad) * n + (column - pad);
      v[0] = __ldcs(reinterpret_cast<const float2*>(p));
      v[1] = __ldcs(reinterpret_cast<const float2*>(p + static_cast<int64_t>(8) * n));
      v[2] = __ldcs(reinterpret_cast<const float2*>(p + 8));
      v[3] = __ldcs(reinterpret_cast<const float2*>(p + static_cast<int64_t>(8) * n + 8));
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = make_float2(scaled(v[k].x), scaled(v[k].y));
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int r = row + 8 * (k & 1), c = column + 8 * (k >> 1);
        v[k] = make_float2(at(r, c), at(r, c + 1));
      }
    }
  }
};

}  // namespace crucible::eigh
