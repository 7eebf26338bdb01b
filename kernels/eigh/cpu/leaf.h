// leaf.h: eigenvectors of a small symmetric tridiagonal matrix by the implicit QL method
// (Bowdler, Martin, Reinsch and Wilkinson 1968), with Wilkinson's shift.
//
// Values and rotations are FP64, the vectors FP32 rows. The first and the last component of each
// vector are also kept in FP64: they are all that the levels above need to find eigenvalues.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_LEAF_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_LEAF_H_

#include <algorithm>
#include <cmath>

#include "vectors.h"

namespace eigh_cpu {

// One leaf: m values d, couplings e, m rows of z (the identity on entry, a vector each on return),
// their end components. On return d holds the eigenvalues, unsorted, and e is lost. Rows may
// spill up to kVector - 1 columns to the right, where they rewrite the zeros that are there.
struct LeafProblem {
  int m;
  double *d, *e, *first, *last;
  float* z;
  ptrdiff_t ld;
  double negligible;  // |e| at most this counts as zero
};

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

  // The sweeps of one leaf, a rotation at a time.
  struct Chain {
    explicit Chain(const LeafProblem& problem) : leaf(problem) {}

    LeafProblem leaf;
    int l = 0, top = 0, i = -1, sweep = 0;
    double s = 1.0, c = 1.0, p = 0.0, g = 0.0;
    float c_of[K::kLeafSize], s_of[K::kLeafSize];

    // Goes to the next sweep. False when every value has converged, or one does not.
    bool begin() {
      for (; l < leaf.m; ++l, sweep = 0) {
        top = l;
        while (top < leaf.m - 1 && std::fabs(leaf.e[top]) > leaf.negligible) ++top;
        if (top > l) break;
      }
      if (l >= leaf.m || sweep++ == kSweepsMax) return false;
      const double* d = leaf.d;
      const double coupling = leaf.e[l];
      const double half = (d[l + 1] - d[l]) / (2.0 * coupling);
      g = d[top] - d[l] + coupling / (half + std::copysign(std::sqrt(half * half + 1.0), half));
      s = c = 1.0;
      p = 0.0;
      i = top - 1;
      return true;
    }

    int left() const { return i - l + 1; }
    bool converged() const { return l >= leaf.m; }

    void rotation() {
      double *d = leaf.d, *e = leaf.e;
      const double f = s * e[i], b = c * e[i];
      const double r = std::sqrt(f * f + g * g);
      if (i + 1 < top) e[i + 1] = r;
      // r = 0 only when f and g are: any rotation will do, and this one is none.
      s = r > 0.0 ? f / r : 0.0;
      c = r > 0.0 ? g / r : 1.0;
      g = d[i + 1] - p;
      const double t = (d[i] - g) * s + 2.0 * c * b;
      p = s * t;
      d[i + 1] = g + p;
      g = c * t - b;
      c_of[i] = static_cast<float>(c);
      s_of[i] = static_cast<float>(s);
      for (double* end : {leaf.first, leaf.last}) {
        const double low = end[i], high = end[i + 1];
        end[i + 1] = s * low + c * high;
        end[i] = c * low - s * high;
      }
      if constexpr (K::kLeafDelay == 0) {
        rotate(leaf.z + i * leaf.ld, leaf.ld, leaf.m, c_of[i], s_of[i]);
      }
      --i;
    }

    void end() {
      if constexpr (K::kLeafDelay == 1) {
        rotate_sweep(leaf.z, leaf.ld, leaf.m, l, top, c_of, s_of);
      }
      leaf.d[l] -= p;
      leaf.e[l] = g;
      if (top < leaf.m - 1) leaf.e[top] = 0.0;
    }

    bool finish() {
      while (begin()) {
        while (i >= l) rotation();
        end();
      }
      return converged();
    }
  };

  static bool solve(const LeafProblem& leaf) {
    Chain chain(leaf);
    return chain.finish();
  }

  // Both leaves, a rotation of each in turn: each rotation waits for the square root and the
  // division of the one before it, and the other leaf's work fills that wait.
  static bool solve_pair(const LeafProblem& one, const LeafProblem& other) {
    Chain a(one), b(other);
    bool a_runs = a.begin(), b_runs = b.begin();
    while (a_runs && b_runs) {
      for (int steps = std::min(a.left(), b.left()); steps > 0; --steps) {
        a.rotation();
        b.rotation();
      }
      if (a.left() == 0) {
        a.end();
        a_runs = a.begin();
      }
      if (b.left() == 0) {
        b.end();
        b_runs = b.begin();
      }
    }
    // One of them has no sweep left (or gave up); the other may be in the middle of one.
    for (Chain* chain : {&a, &b}) {
      if (!(chain == &a ? a_runs : b_runs)) continue;
      while (chain->left() > 0) chain->rotation();
      chain->end();
      chain->finish();
    }
    return a.converged() && b.converged();
  }
};

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_LEAF_H_
