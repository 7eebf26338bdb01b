// leaf.h: eigenvectors of a small symmetric tridiagonal matrix by the implicit QL method
// (Bowdler, Martin, Reinsch and Wilkinson 1968), with Wilkinson's shift.
//
// Values and rotations are FP64, the vectors FP32 rows. The first and the last component of each
// vector are also kept in FP64: they are all that the levels above need to find eigenvalues.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_LEAF_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_LEAF_H_

#include <cmath>

#include "vectors.h"

namespace eigh_cpu {

template <class K>
struct Leaf {
  static constexpr int kSweepsMax = 60;  // a value; two or three are usual

  // Rows i and i + 1 of z, both `length` long.
  static void rotate(float* z, ptrdiff_t ld, int length, float c, float s) {
    constexpr int W = K::kVector;
    for (int j = 0; j < length; j += W) {
      const Vector<W> low = load<W>(z + j), high = load<W>(z + ld + j);
      store<W>(z + ld + j, low * s + high * c);
      store<W>(z + j, low * c - high * s);
    }
  }

  // The rotations of a whole sweep, rows `top` down to `bottom`, a column strip at a time: the
  // row that two neighbouring rotations share stays in a register.
  static void rotate_sweep(float* z, ptrdiff_t ld, int length, int bottom, int top, const float* c,
                           const float* s) {
    constexpr int W = K::kVector;
    int j = 0;
    for (; j + 2 * W <= length; j += 2 * W) strip<2>(z + j, ld, bottom, top, c, s);
    for (; j < length; j += W) strip<1>(z + j, ld, bottom, top, c, s);
  }

  template <int V>
  static void strip(float* z, ptrdiff_t ld, int bottom, int top, const float* c, const float* s) {
    constexpr int W = K::kVector;
    Vector<W> carried[V];
    for (int v = 0; v < V; ++v) carried[v] = load<W>(z + top * ld + v * W);
    for (int i = top - 1; i >= bottom; --i) {
      for (int v = 0; v < V; ++v) {
        const Vector<W> low = load<W>(z + i * ld + v * W);
        store<W>(z + (i + 1) * ld + v * W, low * s[i] + carried[v] * c[i]);
        carried[v] = low * c[i] - carried[v] * s[i];
      }
    }
    for (int v = 0; v < V; ++v) store<W>(z + bottom * ld + v * W, carried[v]);
  }

  // d[0..m), e[0..m-1) in, eigenvalues in d out (unsorted), e lost. z: m rows, the identity on
  // entry, a vector each on return; vectors may spill up to kVector - 1 columns to the right,
  // where they rewrite the zeros that are there. |e| <= `negligible` counts as zero.
  static bool solve(int m, double* d, double* e, float* z, ptrdiff_t ld, double* first,
                    double* last, double negligible) {
    float c_of[K::kLeafSize], s_of[K::kLeafSize];
    for (int l = 0; l < m; ++l) {
      for (int sweep = 0;; ++sweep) {
        int top = l;
        while (top < m - 1 && std::fabs(e[top]) > negligible) ++top;
        if (top == l) break;
        if (sweep == kSweepsMax) return false;
        double g = (d[l + 1] - d[l]) / (2.0 * e[l]);
        g = d[top] - d[l] + e[l] / (g + std::copysign(std::sqrt(g * g + 1.0), g));
        double s = 1.0, c = 1.0, p = 0.0;
        int i = top - 1;
        for (; i >= l; --i) {
          const double f = s * e[i], b = c * e[i];
          double r = std::sqrt(f * f + g * g);
          if (i + 1 < top) e[i + 1] = r;
          if (r == 0.0) {
            d[i + 1] -= p;
            break;
          }
          s = f / r;
          c = g / r;
          g = d[i + 1] - p;
          r = (d[i] - g) * s + 2.0 * c * b;
          p = s * r;
          d[i + 1] = g + p;
          g = c * r - b;
          c_of[i] = static_cast<float>(c);
          s_of[i] = static_cast<float>(s);
          for (double* end : {first, last}) {
            const double low = end[i], high = end[i + 1];
            end[i + 1] = s * low + c * high;
            end[i] = c * low - s * high;
          }
          if constexpr (K::kLeafDelay == 0) rotate(z + i * ld, ld, m, c_of[i], s_of[i]);
        }
        if constexpr (K::kLeafDelay == 1) {
          if (i + 1 < top) rotate_sweep(z, ld, m, i + 1, top, c_of, s_of);
        }
        if (i < l) {
          d[l] -= p;
          e[l] = g;
        }
        if (top < m - 1) e[top] = 0.0;
      }
    }
    return true;
  }
};

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_LEAF_H_
