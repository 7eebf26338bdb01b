// divide.h: eigenvectors of a symmetric tridiagonal matrix by divide and conquer (Cuppen 1981;
// deflation as in LAPACK's slaed2), with leaves solved by leaf.h.
//
// Vectors are rows of z, so rotating and moving them is contiguous. A node's rows hold its
// vectors in any order; order[] lists them by ascending value. The product of a level's
// secular vectors with the old rows is split at the cut, as each old row is zero on one side of
// it unless a deflating rotation mixed the two.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_DIVIDE_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_DIVIDE_H_

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gemm.h"
#include "leaf.h"
#include "secular.h"

namespace eigh_cpu {

template <class K>
struct Divider {
  // Doubles per value lane: lanes of the FP32 vector, half of them fit a register.
  static constexpr int W = K::kVector == 8 ? 4 : K::kVector == 4 ? 2 : 1;
  static constexpr bool kShort = K::kSecularShort == 1;
  enum Side { kTop = 0, kMixed = 1, kBottom = 2 };

  // n long each. d: values by row. e: couplings. first, last: end components of a row within its
  // node. The rest is scratch of one merge.
  double *d, *e, *first, *last, *poles, *weights, *pole_first, *pole_last, *coupling, *secular,
      *component;
  int *order, *merged, *side, *kept, *dropped, *slot;
  float *z, *s, *old_rows, *pack;  // n x ld each; pack: gemm's
  ptrdiff_t ld;
  double negligible;       // absolute: couplings and shifts below this are FP32 rounding
  double leaf_negligible;  // the same for a leaf's couplings, which cost next to nothing

  bool solve(int from, int m) {
    if (m <= K::kLeafSize) return leaf(from, m);
    // Halves that are multiples of 8 keep the pieces of z rows on vector boundaries.
    int top = m / 2;
    if (m >= 32) top = round_up(top, 8);
    const int cut = from + top;
    const double coupled = e[cut - 1], rho = std::fabs(coupled);
    d[cut - 1] -= rho;
    d[cut] -= rho;
    if (K::kLeafPair == 1 && m - top <= K::kLeafSize && top <= K::kLeafSize) {
      if (!Leaf<K>::solve_pair(prepare_leaf(from, top), prepare_leaf(cut, m - top))) return false;
      sort_leaf(from, top);
      sort_leaf(cut, m - top);
    } else if (!solve(from, top) || !solve(cut, m - top)) {
      return false;
    }
    return merge(from, top, m - top, coupled);
  }

  bool leaf(int from, int m) {
    if (!Leaf<K>::solve(prepare_leaf(from, m))) return false;
    sort_leaf(from, m);
    return true;
  }

  LeafProblem prepare_leaf(int from, int m) {
    for (int i = from; i < from + m; ++i) {
      z[i * ld + i] = 1.0f;
      first[i] = i == from;
      last[i] = i == from + m - 1;
    }
    return {m,  d + from,       e + from, first + from, last + from, z + from * ld + from,
            ld, leaf_negligible};
  }

  void sort_leaf(int from, int m) {
    for (int i = from; i < from + m; ++i) {
      int at = i;
      for (; at > from && d[order[at - 1]] > d[i]; --at) order[at] = order[at - 1];
      order[at] = i;
    }
  }

  bool merge(int from, int top, int bottom, double coupled) {
    const int m = top + bottom, cut = from + top;
    const double norm = std::sqrt(2.0), rho = 2.0 * std::fabs(coupled);
    std::merge(order + from, order + cut, order + cut, order + from + m, merged,
               [this](int a, int b) { return d[a] < d[b]; });
    for (int row = from; row < from + m; ++row) {
      const bool is_top = row < cut;
      coupling[row] = (is_top ? last[row] : std::copysign(first[row], first[row] * coupled)) / norm;
      (is_top ? last : first)[row] = 0.0;
      side[row] = is_top ? kTop : kBottom;
    }
    int count = 0, gone = 0;
    deflate(from, m, rho, &count, &gone);
    if (count == 0) {
      // Rotations may have moved values past one another.
      sort_rows(from, m, 0);
      return true;
    }
    move_rows(from, m, count, gone);
    return roots(from, top, bottom, count, rho);
  }

  // Splits merged[0..m) into kept[] (ascending, to be coupled) and dropped[].
  void deflate(int from, int m, double rho, int* count, int* gone) {
    int before = -1;
    for (int t = 0; t < m; ++t) {
      const int row = merged[t];
      if (rho * std::fabs(coupling[row]) <= negligible) {
        dropped[(*gone)++] = row;
        continue;
      }
      if (before >= 0) {
        const double p = coupling[before], q = coupling[row], square = p * p + q * q;
        if (std::fabs((d[row] - d[before]) * p * q) <= negligible * square) {
          coupling[row] = std::sqrt(square);
          rotate(from, m, before, row, q / coupling[row], -p / coupling[row]);
          dropped[(*gone)++] = before;
        } else {
          kept[(*count)++] = before;
        }
      }
      before = row;
    }
    if (before >= 0) kept[(*count)++] = before;
  }

  void rotate(int from, int m, int p, int q, double c, double sn) {
    const double dp = d[p], dq = d[q];
    d[p] = dp * c * c + dq * sn * sn;
    d[q] = dp * sn * sn + dq * c * c;
    for (double* end : {first, last}) {
      const double a = end[p], b = end[q];
      end[p] = c * a + sn * b;
      end[q] = c * b - sn * a;
    }
    float* a = z + p * ld + from;
    float* b = z + q * ld + from;
    const float cf = static_cast<float>(c), sf = static_cast<float>(sn);
    for (int j = 0; j < m; ++j) {
      const float aj = a[j], bj = b[j];
      a[j] = cf * aj + sf * bj;
      b[j] = cf * bj - sf * aj;
    }
    if (side[p] != side[q]) side[p] = side[q] = kMixed;
  }

  // Copies the kept rows, grouped by side, to old_rows[0..count) and the dropped ones to the end
  // of the node's rows. slot[t] is where kept[t] went.
  void move_rows(int from, int m, int count, int gone) {
    int start[3] = {};
    for (int t = 0; t < count; ++t) {
      for (int after = side[kept[t]] + 1; after < 3; ++after) ++start[after];
    }
    for (int t = 0; t < count; ++t) {
      const int row = kept[t];
      slot[t] = start[side[row]]++;
      std::memcpy(old_rows + slot[t] * ld, z + row * ld + from, sizeof(float) * m);
      poles[t] = d[row];
      secular[t] = coupling[row];
      pole_first[t] = first[row];
      pole_last[t] = last[row];
    }
    // Through scratch: a dropped row may lie where another one goes.
    for (int t = 0; t < gone; ++t) {
      const int row = dropped[t];
      std::memcpy(old_rows + (count + t) * ld, z + row * ld + from, sizeof(float) * m);
      weights[t] = d[row];
      coupling[from + t] = first[row];
      component[t] = last[row];
    }
    for (int t = 0; t < gone; ++t) {
      const int row = from + count + t;
      std::memcpy(z + row * ld + from, old_rows + (count + t) * ld, sizeof(float) * m);
      d[row] = weights[t];
      first[row] = coupling[from + t];
      last[row] = component[t];
    }
  }

  bool roots(int from, int top, int bottom, int count, double rho) {
    const int m = top + bottom;
    int tops = 0, mixed = 0;
    for (int t = 0; t < count; ++t) {
      tops += side[kept[t]] == kTop;
      mixed += side[kept[t]] == kMixed;
    }
    double total = 0.0;
    for (int t = 0; t < count; ++t) {
      weights[t] = rho * secular[t] * secular[t];
      total += weights[t];
    }
    for (int j = 0; j < count; ++j) {
      const Root root = secular_root<W, kShort>(j, count, poles, weights, total);
      if (!root.converged) return false;
      vector(from, j, count, root);
    }
    const int reach_top = tops + mixed, reach_bottom = count - tops;
    float* rows = z + from * ld + from;
    gemm<K>(count, top, reach_top, {s, ld, 1}, old_rows, ld, rows, ld, Into::kSet, 0, pack);
    gemm<K>(count, bottom, reach_bottom, {s + tops, ld, 1}, old_rows + tops * ld + top, ld,
            rows + top, ld, Into::kSet, 0, pack);
    sort_rows(from, m, count);
    return true;
  }

  // Row j of s and the value and end components of the new row j.
  void vector(int from, int j, int count, const Root& root) {
    using T = typename DoubleVector<W>::Type;
    const double pole = poles[root.pole];
    T squares_of = {}, head_of = {}, tail_of = {};
    int t = 0;
    for (; t + W <= count; t += W) {
      const T x = load_doubles<W>(secular + t) *
                  reciprocal<W, kShort>((load_doubles<W>(poles + t) - pole) - root.offset);
      *reinterpret_cast<typename DoubleVector<W>::InMemory*>(component + t) = x;
      squares_of += x * x;
      head_of += x * load_doubles<W>(pole_first + t);
      tail_of += x * load_doubles<W>(pole_last + t);
    }
    double squares = sum_doubles<W>(squares_of), head = sum_doubles<W>(head_of),
           tail = sum_doubles<W>(tail_of);
    for (; t < count; ++t) {
      const double x = secular[t] * reciprocal<1, kShort>((poles[t] - pole) - root.offset);
      component[t] = x;
      squares += x * x;
      head += x * pole_first[t];
      tail += x * pole_last[t];
    }
    const double inverse = 1.0 / std::sqrt(squares);
    float* row = s + j * ld;
    for (t = 0; t < count; ++t) row[slot[t]] = static_cast<float>(component[t] * inverse);
    d[from + j] = pole + root.offset;
    first[from + j] = head * inverse;
    last[from + j] = tail * inverse;
  }

  // The node's rows by value: `count` new ones, ascending already, and the dropped ones.
  void sort_rows(int from, int m, int count) {
    for (int i = 0; i < m; ++i) {
      int at = i;
      if (i > count) {
        for (; at > count && d[merged[at - 1]] > d[from + i]; --at) merged[at] = merged[at - 1];
      }
      merged[at] = from + i;
    }
    std::merge(merged, merged + count, merged + count, merged + m, order + from,
               [this](int a, int b) { return d[a] < d[b]; });
  }
};

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_DIVIDE_H_
