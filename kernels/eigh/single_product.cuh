// single_product.cuh: runs of tiles of the symmetric matrix-vector product of one warp.
#pragma once

#include "single_layout.cuh"

namespace crucible::eigh::single {

struct Context {
  uint32_t tiles, xs;
  int lane;
};

// --- the matrix-vector product, a run of tiles at a time ---
// Mode 0: nothing, 1: the tile, 2: the tile transposed.
template <int M>
__device__ __forceinline__ void load(const Context& c, int index, uint32_t* f) {
  if (M == 1)
    load_tile(c.tiles + index * 512, f);
  else
    load_tile_transposed(c.tiles + index * 512, f);
}
template <int M1, int M2, int G>
__device__ __forceinline__ void multiply_group(float (&acc)[2][2][4], const Context& c, int& i1,
                                               int& i2, int& Jp, uint32_t& xa) {
  uint32_t f1[G][4], f2[G][4];
  uint2 x[G];
#pragma unroll
  for (int u = 0; u < G; u++) {
    x[u] = load_shared_64(xa + u * 64);
    if (M1) load<M1>(c, i1, f1[u]);
    if (M2) load<M2>(c, i2, f2[u]);
    i1 -= M1 == 1 ? Jp : 1;
    i2 -= M2 == 1 ? Jp : 1;
    Jp--;
  }
  xa += G * 64;
#pragma unroll
  for (int u = 0; u < G; u++) {
    if (M1) {
      mma(acc[0][u & 1], f1[u], x[u].x, x[u].y);
    }
    if (M2) {
      mma(acc[1][u & 1], f2[u], x[u].x, x[u].y);
    }
  }
}
template <int M1, int M2, int T, int UR>
__device__ __forceinline__ void multiply_run(float (&acc)[2][2][4], const Context& c, int rows1,
                                             int rows2, int Ja, int Jb) {
  if (Ja >= Jb) return;
  const int pivot_p = T - 1 - rows1, p2 = T - 1 - rows2;
  int Jp = T - 1 - Ja, tri = (Jp * (Jp + 1)) >> 1;
  int i1 = M1 == 1 ? tri + pivot_p : ((pivot_p * (pivot_p + 1)) >> 1) + Jp,
      i2 = M2 == 1 ? tri + p2 : ((p2 * (p2 + 1)) >> 1) + Jp;
  uint32_t xa = c.xs + Ja * 64;
  int n = Jb - Ja;
  constexpr int UN = (M1 && M2) ? UR : 2 * UR;
#pragma unroll 1
  for (; n >= UN; n -= UN) multiply_group<M1, M2, UN>(acc, c, i1, i2, Jp, xa);
  if (UN > 4 && (n & 4)) multiply_group<M1, M2, 4>(acc, c, i1, i2, Jp, xa);
  if (UN > 2 && (n & 2)) multiply_group<M1, M2, 2>(acc, c, i1, i2, Jp, xa);
  if (UN > 1 && (n & 1)) multiply_group<M1, M2, 1>(acc, c, i1, i2, Jp, xa);
}

}  // namespace crucible::eigh::single
