// gemm.h: C (=, +=, -=) A B on row-major blocks, by a register tile of kTileRows x kTileVectors
// vectors whose A entries are broadcast and whose B rows are read as whole vectors.
//
// A is read through two strides, so its transpose needs no copy. B's rows must be readable (and
// finite) to the next multiple of the tile's width; C is written inside its columns only.
// Sum order is fixed by the knobs, never by the number of threads.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_GEMM_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_GEMM_H_

#include <algorithm>
#include <cstring>

#include "vectors.h"

namespace eigh_cpu {

enum class Into { kSet, kAdd, kSubtract };

struct Operand {
  const float* data;
  ptrdiff_t row, column;  // strides in floats
};

template <class K, int R>
inline void gemm_tile(int depth, Operand a, const float* b, ptrdiff_t ldb, float* c, ptrdiff_t ldc,
                      int columns, Into into) {
  constexpr int W = K::kVector, V = K::kTileVectors, N = W * V;
  Vector<W> acc[R][V] = {};
  for (int p = 0; p < depth; ++p) {
    Vector<W> row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      row[v] = load<W>(b + v * W);
      if constexpr (W > 1) pin(row[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float scale = a.data[r * a.row];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] += row[v] * scale;
    }
    a.data += a.column;
    b += ldb;
  }
  if (columns >= N) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        float* at = c + r * ldc + v * W;
        Vector<W> value = acc[r][v];
        if (into == Into::kAdd) value = load<W>(at) + value;
        if (into == Into::kSubtract) value = load<W>(at) - value;
        store<W>(at, value);
      }
    }
    return;
  }
  float edge[N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store<W>(edge + v * W, acc[r][v]);
    for (int j = 0; j < columns; ++j) {
      float* at = c + r * ldc + j;
      *at = into == Into::kSet ? edge[j] : into == Into::kAdd ? *at + edge[j] : *at - edge[j];
    }
  }
}

// Rows [from, to) in tiles of R, what is left in tiles of half the rows, and so on.
template <class K, int R>
inline void gemm_rows(int from, int to, int depth, Operand a, const float* b, ptrdiff_t ldb,
                      float* c, ptrdiff_t ldc, int columns, Into into) {
  for (; from + R <= to; from += R) {
    gemm_tile<K, R>(depth, {a.data + from * a.row, a.row, a.column}, b, ldb, c + from * ldc, ldc,
                    columns, into);
  }
  if constexpr (R > 1) {
    if (from < to) gemm_rows<K, R / 2>(from, to, depth, a, b, ldb, c, ldc, columns, into);
  }
}

// C [m x n] from A [m x depth] and B [depth x n]. With diagonal_block d > 0 only the lower
// triangle of C in blocks of d (the diagonal blocks whole) is computed. `pack` holds
// kGemmKBlock x tile width floats.
template <class K>
void gemm(int m, int n, int depth, Operand a, const float* b, ptrdiff_t ldb, float* c,
          ptrdiff_t ldc, Into into, int diagonal_block, float* pack) {
  constexpr int N = K::kVector * K::kTileVectors;
  for (int p = 0; p < depth || p == 0; p += K::kGemmKBlock) {
    const int step = std::min(K::kGemmKBlock, depth - p);
    const Into how = p > 0 && into == Into::kSet ? Into::kAdd : into;
    for (int j = 0; j < n; j += N) {
      const int first = diagonal_block > 0 ? j / diagonal_block * diagonal_block : 0;
      const float* block = b + p * ldb + j;
      ptrdiff_t block_ld = ldb;
      if constexpr (K::kGemmPack == 1) {
        for (int q = 0; q < step; ++q)
          std::memcpy(pack + q * N, block + q * ldb, N * sizeof(float));
        block = pack;
        block_ld = N;
      }
      gemm_rows<K, K::kTileRows>(first, m, step, {a.data + p * a.column, a.row, a.column}, block,
                                 block_ld, c + j, ldc, std::min(N, n - j), how);
    }
  }
}

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_GEMM_H_
