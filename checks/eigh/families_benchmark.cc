// The families of the ranked and correctness cases. `cond` is a dynamic range in decades.
#include <algorithm>
#include <cmath>

#include "checks/eigh/families.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

// Purposes of the random streams of one matrix.
enum : std::uint64_t { kEntries = 1, kRotation = 2, kProfile = 3 };

Square ScaledNormal(const FamilyInput& in, double decades) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  if (decades != 0) a.ScaleBothSides(Logspace(0, -decades, in.n));
  return a;
}

Square Dense(const FamilyInput& in) { return ScaledNormal(in, in.cond); }
Square RowScale(const FamilyInput& in) { return ScaledNormal(in, std::max(in.cond, 4.0)); }

Square FromSpectrumOf(const FamilyInput& in, const std::vector<double>& spectrum) {
  return FromSpectrum(spectrum, in.random.Stream(kRotation));
}
Square Spectrum(const FamilyInput& in) {
  return FromSpectrumOf(in, AlternatingSpectrum(in.n, in.cond));
}
Square RankDeficient(const FamilyInput& in) {
  return FromSpectrumOf(in, RankDeficientSpectrum(in.n, in.cond));
}
Square NearRankDeficient(const FamilyInput& in) {
  return FromSpectrumOf(in, NearRankDeficientSpectrum(in.n, in.cond));
}
Square Repeated(const FamilyInput& in) { return FromSpectrumOf(in, RepeatedSpectrum(in.n)); }
Square Clustered(const FamilyInput& in) { return FromSpectrumOf(in, ClusteredSpectrum(in.n)); }

Square PositiveSemidefinite(const FamilyInput& in) {
  const std::int64_t n = in.n;
  std::vector<double> g(static_cast<std::size_t>(n * n));
  in.random.Stream(kEntries).FillNormal(g.data(), g.size());
  const std::vector<double> s = Logspace(0, -std::max(in.cond, 1.0), n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) g[i * n + j] *= s[j];
  return GramMatrix(g, n, n, 1.0 / static_cast<double>(n));
}

Square Diagonal(const FamilyInput& in) {
  Square a(in.n);
  const std::vector<double> values = AlternatingSpectrum(in.n, in.cond);
  for (std::int64_t i = 0; i < in.n; ++i) a(i, i) = values[i];
  return a;
}

Square Band(const FamilyInput& in) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  const std::int64_t width = std::max<std::int64_t>(2, std::min<std::int64_t>(32, in.n / 32));
  const std::vector<double> shift = Linspace(-1, 1, in.n);
  for (std::int64_t i = 0; i < in.n; ++i) {
    a(i, i) += shift[i];
    for (std::int64_t j = 0; j < in.n; ++j)
      if (std::abs(i - j) > width) a(i, j) = 0;
  }
  return a;
}

Square Mixed(const FamilyInput& in) {
  static constexpr struct {
    int weight;
    Square (*make)(const FamilyInput&);
  } kProfiles[] = {{6, Dense},
                   {1, Spectrum},
                   {2, PositiveSemidefinite},
                   {1, RankDeficient},
                   {1, NearRankDeficient},
                   {1, Repeated},
                   {1, Clustered},
                   {1, Band},
                   {1, RowScale}};
  constexpr int kAll = 15, kDenseWeight = 6;
  // One of the first two matrices is dense and the other is not: so every batch of two or more has
  // both, and a matrix still depends on (seed, index) alone.
  const std::int64_t dense_index = Random(MixKey(in.seed, 0x6d6978)).Below(2);
  Random draw = in.random.Stream(kProfile);
  std::int64_t ticket = draw.Below(kAll);
  if (in.index == dense_index) ticket = 0;
  if (in.index == 1 - dense_index) ticket = kDenseWeight + draw.Below(kAll - kDenseWeight);
  for (const auto& profile : kProfiles) {
    if (ticket < profile.weight) return profile.make(in);
    ticket -= profile.weight;
  }
  return Dense(in);
}

}  // namespace

std::vector<Family> BenchmarkFamilies() {
  return {
      {"dense", "S sym(G) S, S = diag(logspace(0, -cond))", Dense},
      {"spectrum", "+-logspace(-max(cond,1), 0), negative at even index", Spectrum},
      {"psd", "(G S)(G S)^T / n", PositiveSemidefinite},
      {"rankdef", "a quarter of the spectrum exactly zero", RankDeficient},
      {"nearrank", "a quarter of the spectrum between 1e-8 and 1e-6", NearRankDeficient},
      {"repeated", "at most 16 distinct eigenvalues", Repeated},
      {"clustered", "two clusters 1e-5 wide and one 1e-6 wide", Clustered},
      {"diagonal", "diag of the spectrum family", Diagonal},
      {"band", "sym(G) inside a band plus linspace(-1, 1) on the diagonal", Band},
      {"rowscale", "dense over at least four decades of row scale", RowScale},
      {"mixed", "each matrix of a family of its own", Mixed},
  };
}

}  // namespace crucible::eigh
