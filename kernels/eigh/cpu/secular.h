// secular.h: one root of the secular equation 1 + rho sum z_i^2 / (d_i - x) = 0.
//
// A root is kept as the index of its nearest pole and the offset from it, so that d_i - x loses
// no digits beside that pole. The sums left and right of the root are each replaced by a pole
// with the same value and slope (Bunch, Nielsen and Sorensen 1978), which converges
// quadratically; a bracket catches steps that leave it. Everything is FP64 for FP32 vectors, so
// after deflation at FP32 precision the vectors are orthogonal without a further pass, and the
// roots do not depend on one another.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_SECULAR_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_SECULAR_H_

#include <cmath>

namespace eigh_cpu {

struct Root {
  int pole;
  double offset;
  bool converged;
};

// Vectors of W doubles, and of W floats for their quotients.
template <int W>
struct DoubleVector {
  typedef double Type __attribute__((vector_size(8 * W)));
  typedef double InMemory __attribute__((vector_size(8 * W), aligned(8), may_alias));
  typedef float Single __attribute__((vector_size(4 * W)));
};
template <>
struct DoubleVector<1> {
  using Type = double;
  using InMemory = double;
};

// 1 / x, by FP64 division or by FP32 division and one Newton step: 4e-15 for a third of the time.
template <int W, bool kShort>
inline typename DoubleVector<W>::Type reciprocal(typename DoubleVector<W>::Type x) {
  using T = typename DoubleVector<W>::Type;
  if constexpr (!kShort) {
    return 1.0 / x;
  } else if constexpr (W == 1) {
    const double guess = 1.0f / static_cast<float>(x);
    return guess + guess * (1.0 - x * guess);
  } else {
    using S = typename DoubleVector<W>::Single;
    const T guess = __builtin_convertvector(1.0f / __builtin_convertvector(x, S), T);
    return guess + guess * (1.0 - x * guess);
  }
}

template <int W>
inline typename DoubleVector<W>::Type load_doubles(const double* p) {
  return *reinterpret_cast<const typename DoubleVector<W>::InMemory*>(p);
}
template <int W>
inline double sum_doubles(typename DoubleVector<W>::Type v) {
  if constexpr (W == 1) {
    return v;
  } else if constexpr (W == 2) {
    return v[0] + v[1];
  } else {
    return (v[0] + v[2]) + (v[1] + v[3]);
  }
}

// value += sum w_i / (d_i - pole - offset), slope += sum w_i / (d_i - pole - offset)^2.
template <int W, bool kShort>
inline void secular_sums(const double* d, const double* w, int from, int to, double pole,
                         double offset, double* value, double* slope) {
  using T = typename DoubleVector<W>::Type;
  int i = from;
  if constexpr (W > 1) {
    T v[2] = {}, s[2] = {};
    for (; i + 2 * W <= to; i += 2 * W) {
#pragma GCC unroll 2
      for (int u = 0; u < 2; ++u) {
        const T inverse = reciprocal<W, kShort>((load_doubles<W>(d + i + u * W) - pole) - offset);
        const T term = load_doubles<W>(w + i + u * W) * inverse;
        v[u] += term;
        s[u] += term * inverse;
      }
    }
    *value += sum_doubles<W>(v[0] + v[1]);
    *slope += sum_doubles<W>(s[0] + s[1]);
  }
  for (; i < to; ++i) {
    const double inverse = reciprocal<1, kShort>((d[i] - pole) - offset);
    const double term = w[i] * inverse;
    *value += term;
    *slope += term * inverse;
  }
}

// Root j of k: in (d[j], d[j+1]), the last in (d[k-1], d[k-1] + sum w]. d ascending, w_i =
// rho z_i^2 > 0, total = sum w.
template <int W, bool kShort>
Root secular_root(int j, int k, const double* d, const double* w, double total) {
  const bool last = j == k - 1;
  const double gap = last ? total : d[j + 1] - d[j];
  double value = 0.0, slope = 0.0;
  // The sign at the middle of the interval says which pole is nearer.
  double low = 0.0, high = 0.5 * gap;
  int pole = j;
  double offset;
  secular_sums<W, kShort>(d, w, 0, k, d[j], 0.5 * gap, &value, &slope);
  value += 1.0;
  if (last) {
    if (value < 0.0) {
      low = 0.5 * gap;
      high = gap;
    }
    const double rest = value + w[j] / (0.5 * gap);
    offset = rest > 0.0 ? w[j] / rest : gap;
  } else {
    // Start from the two poles beside the root, the others as they are at the middle.
    const double rest = value + w[j] / (0.5 * gap) - w[j + 1] / (0.5 * gap);
    double b, q;
    if (value < 0.0) {
      pole = j + 1;
      low = -0.5 * gap;
      high = 0.0;
      b = -rest * gap + w[j] + w[j + 1];
      q = -w[j + 1] * gap;
    } else {
      b = rest * gap + w[j] + w[j + 1];
      q = w[j] * gap;
    }
    // rest x^2 - b x + q = 0
    const double root = std::sqrt(std::fabs(b * b - 4.0 * rest * q));
    offset = b > 0.0 ? 2.0 * q / (b + root) : (b - root) / (2.0 * rest);
  }
  if (!(offset > low && offset < high)) offset = 0.5 * (low + high);

  for (int step = 0; step < 200; ++step) {
    double left = 0.0, left_slope = 0.0, right = 0.0, right_slope = 0.0;
    secular_sums<W, kShort>(d, w, 0, j + 1, d[pole], offset, &left, &left_slope);
    secular_sums<W, kShort>(d, w, j + 1, k, d[pole], offset, &right, &right_slope);
    const double f = 1.0 + left + right;
    if (f == 0.0) return {pole, offset, true};
    (f < 0.0 ? low : high) = offset;

    const double near = (d[j] - d[pole]) - offset;
    double move;
    if (last) {
      move = f * near / (f - left_slope * near);
    } else {
      const double far = (d[j + 1] - d[pole]) - offset;
      const double c = f - near * left_slope - far * right_slope;
      const double b = (near + far) * f - near * far * (left_slope + right_slope);
      const double q = near * far * f;
      const double root = std::sqrt(std::fabs(b * b - 4.0 * c * q));
      move = b > 0.0 ? 2.0 * q / (b + root) : (b - root) / (2.0 * c);
    }
    const double next = offset + move;
    if (next >= low && next <= high && next != 0.0) {
      // A quadratic step this small leaves an error of about its square.
      if (std::fabs(move) <= 1e-6 * std::fabs(next)) return {pole, next, true};
      offset = next;
    } else {
      const double middle = 0.5 * (low + high);
      if (middle == low || middle == high) return {pole, offset, true};
      offset = middle;
    }
    // What is left of the rounding error of f cannot move the root any further.
    if (high - low <= 4e-16 * std::fabs(offset)) return {pole, offset, true};
  }
  return {pole, offset, false};
}

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_SECULAR_H_
