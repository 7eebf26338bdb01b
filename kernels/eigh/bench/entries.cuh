// entries.cuh: the formulas of the families, one entry at a time, in FP64.
//
// symmetric(): entry (i, j), i >= j, of a family given by its entries. eigenvalue(): of a family
// given by its spectrum. factor(): entry of X where the family is X X^T. Facts of the public
// problem's generators are in docs/eigh.md.
#pragma once

#include "random.cuh"

namespace crucible::eigh::bench {

enum class Kind {
  // by entries
  kZero,
  kIdentity,
  kMultiple,
  kDiagonal,
  kDiagonalShuffled,
  kDense,
  kRowScale,
  kBand,
  kUniform,
  kArrowLast,
  kArrowFirst,
  kWilkinson,
  kGlued,
  kOneTwoOne,
  kClement,
  kHilbert,
  kToeplitz,
  kMinIj,
  kGradedDown,
  kGradedUp,
  kOnesTiny,
  kNearIdentity,
  kLegendre,
  kLaguerre,
  kHermite,
  kBlocks,
  kPlusMinus,
  kBipartite,
  kBlockSign,
  kDistance,
  kTinyTails,
  kZeroTails,
  kHadamard,
  kFloatMax,
  // by spectrum (kDiag*: without a conjugation)
  kSpectrum,
  kRankDef,
  kNearRank,
  kRepeated,
  kClustered,
  kNearOne,
  kEven,
  kGeometric,
  kOneLarge,
  // X X^T
  kPsd,
  kKahan,
  kRankOne,
  kFewSamples
};

struct Formula {
  Kind kind;
  bool conjugate = false;  // random orthogonal conjugation
  bool signs = false;      // random signs of the eigenvalues
  bool cut_band = false;   // zero outside a random bandwidth
  double scale = 1;        // of the finished entries
  double cond = 0;
};

constexpr double kUlp = 0x1p-22;  // 2 eps of FP32

__device__ inline double log_space(double a, double b, int i, int n) {
  return exp10(n > 1 ? a + (b - a) * i / (n - 1) : a);
}
__device__ inline double line(double a, double b, int i, int n) {
  return n > 1 ? a + (b - a) * i / (n - 1) : a;
}

__device__ inline double tridiagonal(Kind kind, int i, int j, int n, const Random& random) {
  if (i - j > 1) return 0;
  switch (kind) {
    case Kind::kWilkinson:
      return i == j ? fabs(i - (n - 1) / 2.0) : 1;
    case Kind::kGlued: {  // W21+ blocks; the glue is 1e-4 ... 1e-14, one a matrix
      const double glue = exp10(-4.0 - 10.0 * random.uniform(n, n));
      return i == j ? fabs(i % 21 - 10.0) : (i % 21 == 0 ? glue : 1);
    }
    case Kind::kOneTwoOne:
      return i == j ? 2 : -1;
    case Kind::kClement:
      return i == j ? 0 : sqrt(static_cast<double>(i) * (n - i));
    case Kind::kLegendre:
      return i == j ? 0 : i / sqrt(4.0 * i * i - 1);
    case Kind::kLaguerre:
      return i == j ? 2.0 * i + 1 : i;
    default:  // kHermite
      return i == j ? 0 : sqrt(i / 2.0);
  }
}

__device__ inline double symmetric(const Formula& f, int i, int j, int n, const Random& random) {
  const double g = random.normal(i, j);
  const double diagonal = i == j;
  switch (f.kind) {
    case Kind::kZero:
      return 0;
    case Kind::kIdentity:
      return diagonal;
    case Kind::kMultiple:
      return diagonal * -2.718281828;
    case Kind::kDiagonal:
      return diagonal * (i % 2 ? 1 : -1) * log_space(-fmax(f.cond, 1.0), 0, i, n);
    case Kind::kDiagonalShuffled:
      return diagonal * g;
    case Kind::kDense:
    case Kind::kRowScale: {
      const double e = f.kind == Kind::kDense ? f.cond : fmax(f.cond, 4.0);
      const double value = i == j ? g : g * 0.70710678118654752;  // (G + G^T) / 2
      return value * log_space(0, -e, i, n) * log_space(0, -e, j, n);
    }
    case Kind::kBand: {
      const int width = max(2, min(32, n / 32));
      const double value = i == j ? g : g * 0.70710678118654752;
      return (i - j <= width ? value : 0) + diagonal * line(-1, 1, i, n);
    }
    case Kind::kUniform: {
      const double u = 2 * random.uniform(i, j) - 1, v = 2 * random.uniform(j + n, i) - 1;
      return i == j ? u : (u + v) / 2;
    }
    case Kind::kArrowLast:
      return i == j ? i + 1 : (i == n - 1 ? sqrt(j + 1.0) : 0);
    case Kind::kArrowFirst:
      return i == j ? i + 1 : (j == 0 ? sqrt(i + 1.0) : 0);
    case Kind::kHilbert:
      return 1.0 / (i + j + 1);
    case Kind::kToeplitz:
      return pow(f.cond, i - j);
    case Kind::kMinIj:
      return j + 1;
    case Kind::kGradedDown:
      return g * log_space(0, -4, i, n) * log_space(0, -4, j, n);
    case Kind::kGradedUp:
      return g * log_space(-4, 0, i, n) * log_space(-4, 0, j, n);
    case Kind::kOnesTiny:
      return 1 + diagonal * 1e-6 * g;
    case Kind::kNearIdentity:
      return diagonal * 0.97 + 1e-4 * g;
    case Kind::kBlocks: {  // blocks of 7 rows without any coupling
      return i / 7 == j / 7 ? g : 0;
    }
    case Kind::kPlusMinus:
      return i >= n / 2 && j < n / 2 ? g : 0;
    case Kind::kBipartite:  // cond * adjacency of K_{n/2,n/2}: W^T u reaches .27 n^2
      return i >= n / 2 && j < n / 2 ? f.cond : 0;
    case Kind::kBlockSign:  // .999 [1 1; 1 -1] of blocks
      return j >= n / 2 ? -.999 : .999;
    case Kind::kDistance:
      return i - j;
    case Kind::kTinyTails:
    case Kind::kZeroTails:
      return i - j <= 1 + j % 3 ? g : (f.kind == Kind::kTinyTails ? 1e-20 * g : 0);
    case Kind::kHadamard:
      return (__popc(i & j) & 1 ? -1 : 1) / sqrt(static_cast<double>(n));
    case Kind::kFloatMax:
      return i + j == n - 1 ? 3.4e38 : 0;  // eigenvalues +-3.4e38: L can hold them
    default:
      return tridiagonal(f.kind, i, j, n, random);
  }
}

__device__ inline double eigenvalue(const Formula& f, int i, int n, const Random& random) {
  const double c = fmax(f.cond, 1.0);
  const int low = n - 3 * n / 4;
  double value = 0;
  switch (f.kind) {
    case Kind::kSpectrum:
      value = (i % 2 ? 1 : -1) * log_space(-c, 0, i, n);
      break;
    case Kind::kRankDef:
      value = i < low ? 0 : log_space(-c, 0, i - low, n - low);
      break;
    case Kind::kNearRank:
      value = i < low ? 1e-6 * log_space(-2, 0, i, low) : log_space(-c, 0, i - low, n - low);
      break;
    case Kind::kRepeated: {
      const int m = max(1, min(16, n / 8));
      value = line(-1, 1, i * m / n, m);
      break;
    }
    case Kind::kClustered: {
      const int first = n / 3, end = 2 * n / 3;
      const double x = line(-1, 1, i, n);
      value = i >= first && i < end ? 1 + 1e-6 * line(-1, 1, i - first, end - first)
                                    : (x > 0) - (x < 0) + 1e-5 * x;
      break;
    }
    case Kind::kNearOne:
      value = 0.9 + 0.1 * random.uniform(i, n + 1);
      break;
    case Kind::kEven:
      value = line(1, kUlp, i, n);
      break;
    case Kind::kGeometric:
      value = log_space(0, log10(kUlp), i, n);
      break;
    default:  // kOneLarge
      value = i == 0 ? 1 : kUlp;
  }
  return f.signs && (random.bits(i, n + 7) & 1) ? -value : value;
}

__device__ inline double factor(const Formula& f, int i, int k, int n, const Random& random) {
  switch (f.kind) {
    case Kind::kPsd:
      return random.normal(i, k) * log_space(0, -fmax(f.cond, 1.0), k, n) / sqrt(double(n));
    case Kind::kKahan: {
      constexpr double kSine = 0.9553364891, kCosine = 0.2955202067;  // of 1.2704 and its like
      return k < i ? 0 : pow(kSine, i) * (k == i ? 1 : -kCosine);
    }
    case Kind::kRankOne:
      return k == 0 ? random.normal(i, k) : 0;
    default:  // kFewSamples
      return k < max(1, n / 16) ? random.normal(i, k) : 0;
  }
}

}  // namespace crucible::eigh::bench
