// solver.h: one matrix from input to eigenpairs, and the memory that takes.
//
// Scale by a power of two (exact) -> reduce to tridiagonal -> divide and conquer -> back-transform
// -> write the vectors, transposed, to the output. A diagonal input only needs sorting and comes
// out exact; NaN or Inf gives NaN. Reads the lower triangle, writes nothing but its outputs.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_SOLVER_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_SOLVER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "back.h"
#include "divide.h"
#include "reduce.h"

namespace eigh_cpu {

// Cuts aligned pieces off one block of memory; with no block it only counts.
class Arena {
 public:
  explicit Arena(void* base) : base_(static_cast<char*>(base)) {}
  template <class T>
  T* take(size_t count) {
    char* at = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  size_t used() const { return used_; }

 private:
  char* base_;
  size_t used_ = 0;
};

template <class K>
struct Solver {
  static constexpr int W = K::kVector, N = W * K::kTileVectors;
  static constexpr int kSlack = 64;  // floats readable past the last row

  int n;
  ptrdiff_t ld;
  float *a, *tau;
  Reducer<K> reducer;
  Divider<K> divider;
  BackTransform<K> back;

  static ptrdiff_t row_length(int n) {
    return std::max({round_up(n, 8), round_up(n, N), round_up(n, Reducer<K>::kBlock)}) + K::kRowPad;
  }

  Solver(int n_in, Arena& arena) : n(n_in), ld(row_length(n_in)) {
    const size_t square = n * ld + kSlack;
    a = arena.take<float>(square);
    tau = arena.take<float>(n + kSlack);
    divider.z = arena.take<float>(square);
    const size_t product = static_cast<size_t>(std::min(n, K::kBackRows)) * K::kBackBlock + kSlack;
    divider.s = back.product = arena.take<float>(std::max(square, product));
    divider.old_rows = back.vt =
        arena.take<float>(std::max(square, BackTransform<K>::vt_floats(n) + kSlack));
    reducer.panel = arena.take<float>(2 * K::kPanelWidth * ld + kSlack);
    reducer.swapped = arena.take<float>(2 * K::kPanelWidth * ld + kSlack);
    reducer.y = arena.take<float>(ld + kSlack);
    reducer.pack = divider.pack = back.pack = arena.take<float>(K::kGemmKBlock * N);
    reducer.ld = divider.ld = ld;
    for (double** p : {&divider.d, &divider.e, &divider.first, &divider.last, &divider.poles,
                       &divider.weights, &divider.pole_first, &divider.pole_last, &divider.coupling,
                       &divider.secular, &divider.component}) {
      *p = arena.take<double>(n + 1);
    }
    for (int** p : {&divider.order, &divider.merged, &divider.side, &divider.kept, &divider.dropped,
                    &divider.slot}) {
      *p = arena.take<int>(n + 1);
    }
  }

  int32_t solve(const float* input, float* values, float* vectors) {
    uint32_t largest = 0, beside_diagonal = 0;
    for (int i = 0; i < n; ++i) {
      const uint32_t off = largest_bits(input + static_cast<size_t>(i) * n, i);
      beside_diagonal = std::max(beside_diagonal, off);
      largest = std::max({largest, off, largest_bits(input + static_cast<size_t>(i) * n + i, 1)});
    }
    if (largest >= 0x7f800000u) return fail(-1, values, vectors);
    if (beside_diagonal == 0) return sort_diagonal(input, values, vectors);

    float top;
    std::memcpy(&top, &largest, sizeof top);
    int exponent;
    std::frexp(top, &exponent);
    copy_scaled(input, exponent);
    reducer.reduce(a, n, divider.d, divider.e, tau);
    std::memset(divider.z, 0, sizeof(float) * (n * ld + kSlack));
    double norm = 0.0;
    for (int i = 0; i < n; ++i) {
      norm = std::max(norm, std::fabs(divider.d[i]));
      if (i + 1 < n) norm = std::max(norm, std::fabs(divider.e[i]));
    }
    divider.negligible = std::ldexp(norm, -22);
    divider.leaf_negligible = std::ldexp(norm, -34);
    if (!divider.solve(0, n)) return fail(1, values, vectors);
    back.apply(divider.z, a, ld, n, tau);
    const double unscale = std::ldexp(1.0, exponent);
    for (int j = 0; j < n; ++j) values[j] = unscaled(divider.d[divider.order[j]], unscale);
    write_vectors(vectors);
    return 0;
  }

  // An eigenvalue that only rounding pushed over the largest float stays finite: FLT_MAX is then as
  // near to it as its own error. One that is larger than that is infinite, as it should be.
  float unscaled(double value, double unscale) const {
    constexpr double kLargest = std::numeric_limits<float>::max();
    const double exact = value * unscale;
    const double rounding = 8.0 * n * std::numeric_limits<float>::epsilon();
    if (std::fabs(exact) > kLargest && std::fabs(exact) <= kLargest * (1.0 + rounding)) {
      return static_cast<float>(std::copysign(kLargest, exact));
    }
    return static_cast<float>(exact);
  }

  template <class Real>
  void copy_times(const float* input, Real scale) {
    for (int i = 0; i < n; ++i) {
      const float* from = input + static_cast<size_t>(i) * n;
      float* to = a + i * ld;
      for (int j = 0; j <= i; ++j) to[j] = static_cast<float>(from[j] * scale);
      for (int j = i + 1; j < ld; ++j) to[j] = 0.0f;
    }
  }

  // The largest |x|, compared as bits: NaN counts as larger than Inf.
  static uint32_t largest_bits(const float* x, int count) {
    uint32_t largest = 0;
    for (int i = 0; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, x + i, sizeof bits);
      bits &= 0x7fffffffu;
      largest = bits > largest ? bits : largest;
    }
    return largest;
  }

  void copy_scaled(const float* input, int exponent) {
    // FP32 does where the factor is representable; FP64 holds every factor FP32 input needs.
    if (exponent > -120 && exponent < 120) {
      copy_times(input, std::ldexp(1.0f, -exponent));
    } else {
      copy_times(input, std::ldexp(1.0, -exponent));
    }
    std::memset(a + n * ld, 0, sizeof(float) * kSlack);
    // The full form reads it all, the half form the diagonal blocks.
    constexpr int kTile = 16;
    for (int i = 0; i < n; i += kTile) {
      const int first = Reducer<K>::kHalf ? i / Reducer<K>::kBlock * Reducer<K>::kBlock : 0;
      for (int j = first / kTile * kTile; j <= i; j += kTile) {
        for (int r = i; r < std::min(i + kTile, n); ++r) {
          for (int c = j; c < std::min(j + kTile, r); ++c) a[c * ld + r] = a[r * ld + c];
        }
      }
    }
  }

  // vectors(r, c) = component r of the c-th vector: a transposition, in squares of 4 that stay
  // in registers (vector form), a strip of 16 rows at a time.
  void write_vectors(float* vectors) const {
    constexpr int kStrip = 16;
    for (int i = 0; i < n; i += kStrip) {
      const int end = std::min(i + kStrip, n);
      int c = 0;
      if constexpr (W > 1) {
        for (; c + 4 <= n; c += 4) {
          const float* rows[4];
          for (int k = 0; k < 4; ++k) rows[k] = divider.z + divider.order[c + k] * ld;
          int r = i;
          for (; r + 4 <= end; r += 4) {
            float* to = vectors + static_cast<size_t>(r) * n + c;
            transpose4(rows[0] + r, rows[1] + r, rows[2] + r, rows[3] + r, to, n);
          }
          for (; r < end; ++r) {
            for (int k = 0; k < 4; ++k) vectors[static_cast<size_t>(r) * n + c + k] = rows[k][r];
          }
        }
      }
      for (; c < n; ++c) {
        const float* row = divider.z + divider.order[c] * ld;
        for (int r = i; r < end; ++r) vectors[static_cast<size_t>(r) * n + c] = row[r];
      }
    }
  }

  int32_t sort_diagonal(const float* input, float* values, float* vectors) {
    int* order = divider.order;
    const size_t step = static_cast<size_t>(n) + 1;
    for (int i = 0; i < n; ++i) order[i] = i;
    std::stable_sort(order, order + n,
                     [&](int x, int y) { return input[x * step] < input[y * step]; });
    std::memset(vectors, 0, sizeof(float) * n * n);
    for (int j = 0; j < n; ++j) {
      values[j] = input[order[j] * step];
      vectors[static_cast<size_t>(order[j]) * n + j] = 1.0f;
    }
    return 0;
  }

  int32_t fail(int32_t info, float* values, float* vectors) const {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill(values, values + n, nan);
    std::fill(vectors, vectors + static_cast<size_t>(n) * n, nan);
    return info;
  }
};

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_SOLVER_H_
