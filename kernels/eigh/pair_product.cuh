// pair_product.cuh: the symmetric matrix-vector product of the two-block reduction, tile by tile.
//
// seg() runs over resident tiles of a warp's two row blocks; mode 0 leaves a row block out, 1 takes
// its tiles as they are (row of the matrix), 2 transposed (column). load_cold / multiply_cold take
// the tiles in L2, both directions at once, with the column sums left in shared memory.
#pragma once

#include "pair_layout.cuh"

namespace crucible::eigh::pair {

template <int M1, int M2, int G>
__device__ __forceinline__ void multiply_group(float (&acc)[2][2][4], uint32_t tl, int& i1, int& i2,
                                               int& m, uint32_t& xa) {
  uint32_t f1[G][4], f2[G][4];
  uint2 x[G];
#pragma unroll
  for (int u = 0; u < G; u++) {
    x[u] = load_shared_64(xa + u * 128);
    if (M1 == 1) load_tile(tl + i1 * 512, f1[u]);
    if (M1 == 2) load_tile_transposed(tl + i1 * 512, f1[u]);
    if (M2 == 1) load_tile(tl + i2 * 512, f2[u]);
    if (M2 == 2) load_tile_transposed(tl + i2 * 512, f2[u]);
    i1 -= M1 == 1 ? m - 1 : 1;
    i2 -= M2 == 1 ? m - 1 : 1;
    m -= 2;
  }
  xa += G * 128;
#pragma unroll
  for (int u = 0; u < G; u++) {
    if (M1) mma(acc[0][u & 1], f1[u], x[u].x, x[u].y);
    if (M2) mma(acc[1][u & 1], f2[u], x[u].x, x[u].y);
  }
}
template <int M1, int M2, int UR>
__device__ __forceinline__ void multiply_run(float (&acc)[2][2][4], uint32_t tl, uint32_t xs,
                                             int rows1, int rows2, int c, int Ja, int Jb) {
  Ja += (Ja ^ rows1 ^ c) & 1;
  if (Ja >= Jb) return;
  const int pivot_p = kTiles - 1 - rows1, p2 = kTiles - 1 - rows2, Jp = kTiles - 1 - Ja;
  int m = Jp + 1 - c, tri = (m * m) >> 2;
  int i1 = M1 == 1 ? tri + (pivot_p >> 1)
                   : (((pivot_p + 1 - c) * (pivot_p + 1 - c)) >> 2) + (Jp >> 1),
      i2 = M2 == 1 ? tri + (p2 >> 1) : (((p2 + 1 - c) * (p2 + 1 - c)) >> 2) + (Jp >> 1);
  uint32_t xa = xs + Ja * 64;
  int n = (Jb - Ja + 1) >> 1;
  constexpr int UN = (M1 && M2) ? UR : 2 * UR;
#pragma unroll 1
  for (; n >= UN; n -= UN) multiply_group<M1, M2, UN>(acc, tl, i1, i2, m, xa);
  if (UN > 4 && (n & 4)) multiply_group<M1, M2, 4>(acc, tl, i1, i2, m, xa);
  if (UN > 2 && (n & 2)) multiply_group<M1, M2, 2>(acc, tl, i1, i2, m, xa);
  if (UN > 1 && (n & 1)) multiply_group<M1, M2, 1>(acc, tl, i1, i2, m, xa);
}
// L2 tiles (w+16h, J), h = 0..3, J < 32; diagonal tiles there hold the strict lower part only, so
// every tile is used in both directions
__device__ __forceinline__ void load_cold(uint32_t (&f)[4][4], const uint4* cold_tiles, int warp,
                                          int c, int J) {
  if (J < kCold) {
    const int m = kTiles - J - c;
    const uint4* p = cold_tiles + (((m * m) >> 2) + ((15 - warp) >> 1)) * 32;
#pragma unroll
    for (int h = 0; h < 4; h++)
      if (h >= 2 || J <= warp + 16 * h) {
        uint4 v = __ldcg(p + 8 * (3 - h) * 32);
        f[h][0] = v.x;
        f[h][1] = v.y;
        f[h][2] = v.z;
        f[h][3] = v.w;
      }
  }
}
__device__ __forceinline__ void multiply_cold(const uint32_t (&f)[4][4], float (&upper)[2][2][4],
                                              float (&lower)[2][2][4], const uint2 (&xi)[4],
                                              uint32_t xs, int warp, int lane, int J,
                                              int next_block, int jr, uint32_t peerY1,
                                              uint32_t mb) {
  const int q = lane & 3, g = lane >> 2;
  if (J < kCold) {
    const uint2 xj = load_shared_64(xs + J * 64);
    float col[4] = {0, 0, 0, 0};
#pragma unroll
    for (int h = 3; h >= 0; h--)
      if (h >= 2 || J <= warp + 16 * h) {
        uint32_t t[4];
        mma(h < 2 ? upper[h & 1][0] : lower[h & 1][0], f[h], xj.x, xj.y);
        transpose_fragment(f[h], t);
        mma(col, t, xi[h].x, xi[h].y);
      }
    float v = q == 0 ? join_x(col[0], col[1]) : join_x(col[2], col[3]);
    if (q < 2) {
      floats(kColumnSums)[(J * 8 + (warp >> 1)) * 16 + g + 8 * q] = v;
      if (J == next_block && g + 8 * q == jr) st_async(peerY1 + (warp >> 1) * 4, v, mb);
    }
  }
}
}  // namespace crucible::eigh::pair
