// reduce.h: Householder reduction of a symmetric matrix to tridiagonal form.
//
// From the last row upwards, so the part still to reduce is always the leading square and its
// rows start aligned. Row k (left of the diagonal) holds column k's entries; its reflector v_k
// (v_k[k-1] = 1, zero from k on) replaces it, and H_k = I - tau_k v_k v_k^T. In a panel of
// kPanelWidth columns the trailing matrix stays as it was: A v is corrected by the panel's
// earlier vectors, and one update of rank 2 kPanelWidth follows (Dongarra, Sorensen and
// Hammarling 1989, LAPACK's latrd). Cost 4/3 n^3 flops, half of it in A v, which is bound by
// reading A once a column.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_REDUCE_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_REDUCE_H_

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gemm.h"
#include "vectors.h"

namespace eigh_cpu {

template <class K>
struct Reducer {
  static constexpr int W = K::kVector, U = K::kSymvUnroll, R = K::kSymvRows;
  static constexpr bool kHalf = K::kSymvHalf == 1;
  // The half form keeps diagonal blocks whole, so that no vector crosses the diagonal.
  static constexpr int kBlock = R > W* U ? R : W* U;

  // The panel's vectors as rows v0 w0 v1 w1 ..., and the same with each pair swapped.
  float *panel, *swapped, *y, *pack;
  ptrdiff_t ld;

  // out[r] += row r . x for `count` rows.
  static void dots(const float* rows, ptrdiff_t ld, int count, int length, const float* x,
                   float* out) {
    int r = 0;
    for (; r + R <= count; r += R) {
      dot_rows<W, U, R, false>(rows + r * ld, ld, length, x, out + r, nullptr, nullptr);
    }
    for (; r < count; ++r) {
      dot_rows<W, U, 1, false>(rows + r * ld, ld, length, x, out + r, nullptr, nullptr);
    }
  }

  static void subtract(const float* rows, ptrdiff_t ld, int count, int length, const float* scale,
                       float* y) {
    int r = 0;
    for (; r + R <= count; r += R) subtract_rows<W, U, R>(rows + r * ld, ld, length, scale + r, y);
    for (; r < count; ++r) subtract_rows<W, U, 1>(rows + r * ld, ld, length, scale + r, y);
  }

  // y = A[0..k)[0..k) v; v is zero from k on, y is left zero from k on.
  void multiply(const float* a, int k, const float* v) const {
    std::memset(y, 0, sizeof(float) * ld);
    if constexpr (!kHalf) {
      dots(a, ld, k, k, v, y);
      return;
    }
    int i = 0;
    for (; i + R <= k; i += R) half_rows<R>(a, k, i, v);
    for (; i < k; ++i) half_rows<1>(a, k, i, v);
  }

  template <int Rows>
  void half_rows(const float* a, int k, int i, const float* v) const {
    const int diagonal = i / kBlock * kBlock;
    const int width = std::min(kBlock, k - diagonal);
    const float* rows = a + i * ld;
    float out[Rows] = {};
    float scale[Rows];
    for (int r = 0; r < Rows; ++r) scale[r] = v[i + r];
    dot_rows<W, U, Rows, true>(rows, ld, diagonal, v, out, scale, y);
    dot_rows<W, U, Rows, false>(rows + diagonal, ld, width, v + diagonal, out, nullptr, nullptr);
    for (int r = 0; r < Rows; ++r) y[i + r] += out[r];
  }

  // Makes x[0..k) into v and returns tau; beta is what H x leaves in x[k-1]. The matrix is scaled
  // to a largest entry near 1: a tail of 1e-30 is far below its rounding and counts as zero, and
  // no quotient overflows.
  static float reflector(float* x, int k, double* beta) {
    double squares[4] = {};
    int i = 0;
    for (; i + 4 <= k - 1; i += 4) {
      for (int u = 0; u < 4; ++u) squares[u] += static_cast<double>(x[i + u]) * x[i + u];
    }
    for (; i < k - 1; ++i) squares[0] += static_cast<double>(x[i]) * x[i];
    const double tail = (squares[0] + squares[2]) + (squares[1] + squares[3]);
    const double alpha = x[k - 1];
    x[k - 1] = 1.0f;
    if (tail <= 1e-60) {
      *beta = alpha;
      return 0.0f;
    }
    *beta = -std::copysign(std::sqrt(alpha * alpha + tail), alpha);
    const float scale = static_cast<float>(1.0 / (alpha - *beta));
    for (i = 0; i < k - 1; ++i) x[i] *= scale;
    return static_cast<float>((*beta - alpha) / *beta);
  }

  // One column: k is its index, `done` how many of this panel came before it.
  void column(float* a, int k, int done, double* d, double* e, float* tau) {
    float* x = a + k * ld;
    float t[2 * K::kPanelWidth];
    for (int q = 0; q < 2 * done; ++q) t[q] = panel[q * ld + k];
    subtract(swapped, ld, 2 * done, k + 1, t, x);
    d[k] = x[k];
    tau[k] = reflector(x, k, &e[k - 1]);
    std::memset(x + k, 0, sizeof(float) * (ld - k));
    if (tau[k] == 0.0f) std::memset(x, 0, sizeof(float) * k);

    float* v = panel + 2 * done * ld;
    std::memcpy(v, x, sizeof(float) * ld);
    multiply(a, k, v);
    std::fill(t, t + 2 * done, 0.0f);
    dots(panel, ld, 2 * done, k, v, t);
    subtract(swapped, ld, 2 * done, k, t, y);

    float yv = 0.0f;
    dots(y, ld, 1, k, v, &yv);
    const float half = 0.5f * tau[k] * tau[k] * yv;
    float* w = v + ld;
    for (int i = 0; i < k; ++i) w[i] = tau[k] * y[i] - half * v[i];
    std::memset(w + k, 0, sizeof(float) * (ld - k));
    std::memcpy(swapped + 2 * done * ld, w, sizeof(float) * ld);
    std::memcpy(swapped + (2 * done + 1) * ld, v, sizeof(float) * ld);
  }

  // a: n rows of ld floats, the lower triangle (full square form: all) set, finite beyond n.
  void reduce(float* a, int n, double* d, double* e, float* tau) {
    for (int end = n; end > 1;) {
      const int width = std::min(K::kPanelWidth, end - 1);
      for (int done = 0; done < width; ++done) column(a, end - 1 - done, done, d, e, tau);
      end -= width;
      // Whole tiles: what lies right of the square is never read again.
      gemm<K>(end, round_up(end, K::kVector * K::kTileVectors), 2 * width, {panel, 1, ld}, swapped,
              ld, a, ld, Into::kSubtract, kHalf ? kBlock : 0, pack);
    }
    d[0] = a[0];
  }
};

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_REDUCE_H_
