// Tridiagonal and arrowhead matrices: what a tridiagonal solver and a deflation rule find hard.
#include <cmath>

#include "checks/eigh/families.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

enum : std::uint64_t { kRotation = 2, kParameter = 6 };

// Couples i and i+1 with off(i), puts diagonal(i) on the diagonal.
template <class Diagonal, class Off>
Square Tridiagonal(std::int64_t n, Diagonal diagonal, Off off) {
  Square a(n);
  for (std::int64_t i = 0; i < n; ++i) {
    a(i, i) = diagonal(static_cast<double>(i));
    if (i + 1 < n) a.Set(i, i + 1, off(static_cast<double>(i)));
  }
  return a;
}

Square ArrowheadLast(const FamilyInput& in) {
  Square a(in.n);
  for (std::int64_t i = 0; i < in.n; ++i) {
    if (i + 1 < in.n) a.Set(i, in.n - 1, std::sqrt(static_cast<double>(i + 1)));
    a(i, i) = static_cast<double>(i + 1);
  }
  return a;
}

Square ArrowheadFirst(const FamilyInput& in) {
  Square a(in.n);
  for (std::int64_t i = 0; i < in.n; ++i) {
    if (i > 0) a.Set(0, i, std::sqrt(static_cast<double>(i + 1)));
    a(i, i) = static_cast<double>(i + 1);
  }
  return a;
}

Square Wilkinson(const FamilyInput& in) {
  const double middle = static_cast<double>(in.n - 1) / 2;
  return Tridiagonal(
      in.n, [=](double i) { return std::abs(i - middle); }, [](double) { return 1.0; });
}

// Blocks W21+ coupled by a small glue: eigenvalues in groups that agree to many digits.
Square GluedWilkinson(const FamilyInput& in) {
  constexpr std::int64_t kBlock = 21;
  const double glue = std::pow(10.0, in.random.Stream(kParameter).Uniform(-14, -4));
  return Tridiagonal(
      in.n,
      [](double i) { return std::abs(std::fmod(i, static_cast<double>(kBlock)) - kBlock / 2); },
      [=](double i) { return static_cast<std::int64_t>(i + 1) % kBlock == 0 ? glue : 1.0; });
}

Square OneTwoOne(const FamilyInput& in) {
  return Tridiagonal(
      in.n, [](double) { return 2.0; }, [](double) { return 1.0; });
}

Square OneTwoOneConjugated(const FamilyInput& in) {
  return Conjugated(OneTwoOne(in), in.random.Stream(kRotation));
}

// The symmetric form: integer eigenvalues -(n-1), -(n-3), …, n-1.
Square Clement(const FamilyInput& in) {
  const double n = static_cast<double>(in.n);
  return Tridiagonal(
      in.n, [](double) { return 0.0; }, [=](double i) { return std::sqrt((i + 1) * (n - 1 - i)); });
}

// Jacobi matrices: the eigenvalues are the nodes of the Gauss rule.
Square Legendre(const FamilyInput& in) {
  return Tridiagonal(
      in.n, [](double) { return 0.0; },
      [](double i) { return (i + 1) / std::sqrt(4 * (i + 1) * (i + 1) - 1); });
}

Square Laguerre(const FamilyInput& in) {
  return Tridiagonal(
      in.n, [](double i) { return 2 * i + 1; }, [](double i) { return i + 1; });
}

Square Hermite(const FamilyInput& in) {
  return Tridiagonal(
      in.n, [](double) { return 0.0; }, [](double i) { return std::sqrt((i + 1) / 2); });
}

}  // namespace

std::vector<Family> TridiagonalFamilies() {
  return {
      {"arrowhead_last", "a_ii = i, last row sqrt(i)", ArrowheadLast},
      {"arrowhead_first", "a_ii = i, first row sqrt(i)", ArrowheadFirst},
      {"wilkinson", "W_n^+: pairs that agree to many digits", Wilkinson},
      {"glued_wilkinson", "W21+ blocks, glue 1e-4 to 1e-14", GluedWilkinson},
      {"one_two_one", "tridiag(1, 2, 1)", OneTwoOne},
      {"one_two_one_conjugated", "U tridiag(1, 2, 1) U^T", OneTwoOneConjugated},
      {"clement", "integer eigenvalues", Clement},
      {"legendre", "Legendre Jacobi matrix", Legendre},
      {"laguerre", "Laguerre Jacobi matrix", Laguerre},
      {"hermite", "Hermite Jacobi matrix", Hermite},
  };
}

}  // namespace crucible::eigh
