// Structured matrices from textbooks and from what optimisers decompose.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "checks/eigh/families.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

enum : std::uint64_t { kEntries = 1, kRotation = 2, kParameter = 6, kChoice = 7 };

template <class Entry>
Square FromEntries(std::int64_t n, Entry entry) {
  Square a(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      a.Set(i, j, entry(static_cast<double>(i), static_cast<double>(j)));  // j <= i
  return a;
}

Square ScalarIdentity(const FamilyInput& in) {
  Random random = in.random.Stream(kParameter);
  const double c = random.Sign() * std::pow(10.0, random.Uniform(-3, 3));
  return FromEntries(in.n, [=](double i, double j) { return i == j ? c : 0.0; });
}

Square ShuffledDiagonal(const FamilyInput& in) {
  std::vector<double> values = AlternatingSpectrum(in.n, in.cond);
  Random random = in.random.Stream(kChoice);
  for (std::int64_t i = in.n - 1; i > 0; --i) std::swap(values[i], values[random.Below(i + 1)]);
  Square a(in.n);
  for (std::int64_t i = 0; i < in.n; ++i) a(i, i) = values[i];
  return a;
}

Square Hilbert(const FamilyInput& in) {
  return FromEntries(in.n, [](double i, double j) { return 1 / (i + j + 1); });
}

// K K^T, K = diag(s^i) (I - c N), N strictly upper ones, s^2 + c^2 = 1.
Square Kahan(const FamilyInput& in) {
  const std::int64_t n = in.n;
  const double s = std::sin(1.2), c = std::cos(1.2);
  std::vector<double> k(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    const double row = std::pow(s, static_cast<double>(i));
    k[i * n + i] = row;
    for (std::int64_t j = i + 1; j < n; ++j) k[i * n + j] = -c * row;
  }
  return GramMatrix(k, n, n, 1.0);
}

Square Toeplitz(const FamilyInput& in) {
  constexpr std::array<double, 3> kRho = {.5, .9, .999};
  const double rho = kRho[static_cast<std::size_t>(in.random.Stream(kChoice).Below(3))];
  return FromEntries(in.n, [=](double i, double j) { return std::pow(rho, i - j); });
}

Square MinIj(const FamilyInput& in) {
  return FromEntries(in.n, [](double, double j) { return j + 1; });
}

Square Graded(const FamilyInput& in, double from, double to) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  a.ScaleBothSides(Logspace(from, to, in.n));
  return a;
}
Square GradedUp(const FamilyInput& in) { return Graded(in, -8, 0); }
Square GradedDown(const FamilyInput& in) { return Graded(in, 0, -8); }

Square OnesDiagonal(const FamilyInput& in) {
  Random random = in.random.Stream(kEntries);
  return FromEntries(
      in.n, [&](double i, double j) { return i == j ? 1 + 1e-5 * random.Uniform(-1, 1) : 1.0; });
}

Square NearIdentity(const FamilyInput& in) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  a.Scale(1e-4);
  for (std::int64_t i = 0; i < in.n; ++i) a(i, i) += .97;
  return a;
}

Square NearIdentitySpectrum(const FamilyInput& in) {
  Random random = in.random.Stream(kParameter);
  std::vector<double> values(static_cast<std::size_t>(in.n));
  for (double& value : values) value = random.Uniform(.9, 1);
  return FromSpectrum(values, in.random.Stream(kRotation));
}

// Dense blocks of random sizes on the diagonal; the couplings between them are exactly zero.
Square BlockDiagonal(const FamilyInput& in) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  Random random = in.random.Stream(kChoice);
  std::vector<std::int64_t> block(static_cast<std::size_t>(in.n));
  std::int64_t left = 0;
  for (std::int64_t i = 0, number = -1; i < in.n; ++i, --left) {
    if (left == 0) ++number, left = 1 + random.Below(std::max<std::int64_t>(1, in.n / 3));
    block[i] = number;
  }
  for (std::int64_t i = 0; i < in.n; ++i)
    for (std::int64_t j = 0; j < in.n; ++j)
      if (block[i] != block[j]) a(i, j) = 0;
  return a;
}

// [0 B; B^T 0]: eigenvalues come in pairs +-sigma.
Square PlusMinusPairs(const FamilyInput& in) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  const std::int64_t half = in.n / 2;
  for (std::int64_t i = 0; i < in.n; ++i)
    for (std::int64_t j = 0; j < in.n; ++j)
      if ((i < half) == (j < half)) a(i, j) = 0;
  return a;
}

// Blocks of one value each, n/2 rows wide: the products of a blocked reduction grow like n^2.
Square Bipartite(const FamilyInput& in) {
  const double half = static_cast<double>(in.n / 2);
  return FromEntries(in.n, [=](double i, double j) { return i >= half && j < half ? .999 : 0.0; });
}
Square BlockSign(const FamilyInput& in) {
  const double half = static_cast<double>(in.n / 2);
  return FromEntries(in.n, [=](double, double j) { return j >= half ? -.999 : .999; });
}

// Some columns end in 1e-20 or in exact zeros below the subdiagonal: reflectors of tiny vectors.
Square ColumnTails(const FamilyInput& in) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  Random random = in.random.Stream(kChoice);
  for (std::int64_t j = 0; j < in.n; ++j) {
    const std::int64_t choice = random.Below(3);
    if (choice == 0) continue;
    for (std::int64_t i = j + 2; i < in.n; ++i) a.Set(i, j, choice == 1 ? 1e-20 * a(i, j) : 0.0);
  }
  return a;
}

Square GramOfSamples(const FamilyInput& in, std::int64_t samples) {
  std::vector<double> x(static_cast<std::size_t>(in.n * samples));
  in.random.Stream(kEntries).FillNormal(x.data(), x.size());
  return GramMatrix(x, in.n, samples, 1.0 / static_cast<double>(samples));
}
Square RankOne(const FamilyInput& in) { return GramOfSamples(in, 1); }
Square Gram(const FamilyInput& in) {
  return GramOfSamples(in, std::max<std::int64_t>(1, in.n / 8));
}

// Sylvester's Hadamard matrix over sqrt(n), cut to n: eigenvalues +-1 where n is a power of two.
Square Hadamard(const FamilyInput& in) {
  const double scale = 1 / std::sqrt(static_cast<double>(in.n));
  return FromEntries(in.n, [=](double i, double j) {
    const auto common = static_cast<std::uint64_t>(i) & static_cast<std::uint64_t>(j);
    return (std::popcount(common) & 1) != 0 ? -scale : scale;
  });
}

}  // namespace

std::vector<Family> StructuredFamilies() {
  return {
      {"scalar_identity", "c I, |c| between 1e-3 and 1e3", ScalarIdentity},
      {"shuffled_diagonal", "the diagonal family in random order", ShuffledDiagonal},
      {"hilbert", "1 / (i + j - 1)", Hilbert},
      {"kahan", "K K^T of Kahan's matrix", Kahan},
      {"toeplitz", "rho^|i-j|, rho one of .5 .9 .999", Toeplitz},
      {"min_ij", "min(i, j)", MinIj},
      {"graded_up", "D sym(G) D, D from 1e-8 to 1", GradedUp},
      {"graded_down", "D sym(G) D, D from 1 to 1e-8", GradedDown},
      {"ones_diagonal", "all ones plus a tiny diagonal", OnesDiagonal},
      {"near_identity", ".97 I + 1e-4 sym(G)", NearIdentity},
      {"near_identity_spectrum", "a spectrum in [.9, 1]", NearIdentitySpectrum},
      {"block_diagonal", "blocks with exact zero couplings", BlockDiagonal},
      {"plus_minus_pairs", "[0 B; B^T 0]", PlusMinusPairs},
      {"bipartite", ".999 times the adjacency matrix of K_{n/2,n/2}", Bipartite},
      {"block_sign", ".999 [1 1; 1 -1] of blocks", BlockSign},
      {"column_tails", "columns that end in 1e-20 or exact zeros", ColumnTails},
      {"rank_one", "v v^T", RankOne},
      {"gram", "second moments of n/8 samples", Gram},
      {"hadamard", "Hadamard over sqrt(n)", Hadamard},
  };
}

}  // namespace crucible::eigh
