// vectors.h: vectors of 1, 4 or 8 floats as GCC vector extensions, and the loops over rows of
// them that the reduction is made of.
//
// Rows may start anywhere (unaligned loads); lengths are rounded up to whole vectors, so every
// row has kVector * kSymvUnroll floats of readable, finite slack after its end.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_VECTORS_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_VECTORS_H_

#include <cstddef>

namespace eigh_cpu {

template <int W>
struct VectorOf;
template <>
struct VectorOf<1> {
  using Type = float;
  using InMemory = float;
};
template <>
struct VectorOf<4> {
  typedef float Type __attribute__((vector_size(16)));
  typedef float InMemory __attribute__((vector_size(16), aligned(4), may_alias));
};
template <>
struct VectorOf<8> {
  typedef float Type __attribute__((vector_size(32)));
  typedef float InMemory __attribute__((vector_size(32), aligned(4), may_alias));
};

template <int W>
using Vector = typename VectorOf<W>::Type;

template <int W>
inline Vector<W> load(const float* p) {
  return *reinterpret_cast<const typename VectorOf<W>::InMemory*>(p);
}
template <int W>
inline void store(float* p, Vector<W> v) {
  *reinterpret_cast<typename VectorOf<W>::InMemory*>(p) = v;
}
// Keeps a loaded vector in its register: GCC otherwise reads it again for every use, since it is
// still in memory, and the loads become the bottleneck of the matrix product.
template <class V>
inline void pin(V& v) {
#if defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#else
  (void)v;
#endif
}

template <int W>
inline float sum(Vector<W> v) {
  if constexpr (W == 1) {
    return v;
  } else if constexpr (W == 4) {
    return (v[0] + v[2]) + (v[1] + v[3]);
  } else {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
  }
}

// A 4 x 4 square of rows at a, b, c, d, transposed, to rows `step` floats apart.
inline void transpose4(const float* a, const float* b, const float* c, const float* d, float* to,
                       ptrdiff_t step) {
  const Vector<4> va = load<4>(a), vb = load<4>(b), vc = load<4>(c), vd = load<4>(d);
  const Vector<4> ab_low = __builtin_shufflevector(va, vb, 0, 4, 1, 5);
  const Vector<4> ab_high = __builtin_shufflevector(va, vb, 2, 6, 3, 7);
  const Vector<4> cd_low = __builtin_shufflevector(vc, vd, 0, 4, 1, 5);
  const Vector<4> cd_high = __builtin_shufflevector(vc, vd, 2, 6, 3, 7);
  store<4>(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store<4>(to + step, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store<4>(to + 2 * step, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store<4>(to + 3 * step, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

inline int round_up(int n, int step) { return (n + step - 1) / step * step; }

// out[r] (+)= dot(rows[r], x) over `length`, and in the half form y += rows[r] * scale[r].
// R rows share each load of x (and of y), U vectors a step keep R * U chains in flight.
template <int W, int U, int R, bool kHalf>
inline void dot_rows(const float* rows, ptrdiff_t ld, int length, const float* x, float* out,
                     const float* scale, float* y) {
  Vector<W> acc[R][U] = {};
  for (int j = 0; j < length; j += W * U) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      const int at = j + u * W;
      const Vector<W> xv = load<W>(x + at);
      Vector<W> yv = {};
      if constexpr (kHalf) yv = load<W>(y + at);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Vector<W> a = load<W>(rows + r * ld + at);
        acc[r][u] += a * xv;
        if constexpr (kHalf) yv += a * scale[r];
      }
      if constexpr (kHalf) store<W>(y + at, yv);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    Vector<W> total = acc[r][0];
#pragma GCC unroll 4
    for (int u = 1; u < U; ++u) total += acc[r][u];
    out[r] += sum<W>(total);
  }
}

// y -= sum over R rows of scale[r] * rows[r], over `length` rounded up to whole steps.
template <int W, int U, int R>
inline void subtract_rows(const float* rows, ptrdiff_t ld, int length, const float* scale,
                          float* y) {
  for (int j = 0; j < length; j += W * U) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      const int at = j + u * W;
      Vector<W> yv = load<W>(y + at);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) yv -= load<W>(rows + r * ld + at) * scale[r];
      store<W>(y + at, yv);
    }
  }
}

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_VECTORS_H_
