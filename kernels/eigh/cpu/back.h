// back.h: turns eigenvectors of the tridiagonal matrix into those of the full one.
//
// Reflectors go in blocks H_k ... H_{k+b-1} = I - V T V^T (compact WY, Schreiber and Van Loan
// 1989). A vector is a row z, so z := z - (z (V T)) V^T: two products a block, with V T made
// once and used for every group of kBackRows vectors, which stays in cache over all blocks.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_BACK_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_BACK_H_

#include <algorithm>
#include <cstring>

#include "gemm.h"
#include "reduce.h"

namespace eigh_cpu {

template <class K>
struct BackTransform {
  static constexpr int B = K::kBackBlock, kTileWidth = K::kVector * K::kTileVectors;

  float* vt;       // all blocks' V T, one after the other: vt_floats(n)
  float* product;  // min(n, kBackRows) x B
  float* pack;

  static size_t vt_floats(size_t n) { return (n + B) * (n / 2 + 2 * B); }

  // V T of the reflectors k .. k + width - 1: rows of v, each zero from its index on.
  void make_vt(const float* v, ptrdiff_t ld, int k, int width, const float* tau, float* out) const {
    const int length = k + width - 1;
    float t[B * B + kTileWidth] = {};
    for (int i = 0; i < width; ++i) {
      float g[B] = {};
      Reducer<K>::dots(v + k * ld, ld, i, k + i, v + (k + i) * ld, g);
      for (int r = 0; r < i; ++r) {
        float total = 0.0f;
        for (int q = r; q < i; ++q) total += t[r * B + q] * g[q];
        t[r * B + i] = -tau[k + i] * total;
      }
      t[i * B + i] = tau[k + i];
    }
    gemm<K>(length, B, width, {v + k * ld, 1, ld}, t, B, out, B, Into::kSet, 0, pack);
  }

  // z: n rows. v, tau: as reduce() leaves them.
  void apply(float* z, const float* v, ptrdiff_t ld, int n, const float* tau) {
    float* at = vt;
    for (int k = 1; k < n; k += B) {
      const int width = std::min(B, n - k);
      make_vt(v, ld, k, width, tau, at);
      at += (k + width - 1) * B;
    }
    for (int row = 0; row < n; row += K::kBackRows) {
      const int rows = std::min(K::kBackRows, n - row);
      float* part = z + row * ld;
      at = vt;
      for (int k = 1; k < n; k += B) {
        const int width = std::min(B, n - k), length = k + width - 1;
        gemm<K>(rows, B, length, {part, ld, 1}, at, B, product, B, Into::kSet, 0, pack);
        gemm<K>(rows, length, width, {product, B, 1}, v + k * ld, ld, part, ld, Into::kSubtract, 0,
                pack);
        at += length * B;
      }
    }
  }
};

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_BACK_H_
