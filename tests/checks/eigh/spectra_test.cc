// The generated matrices have the spectra they claim: LAPACK's FP64 eigenvalues of the FP64 matrix
// against closed forms written here anew.
#include "checks/eigh/spectra.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numbers>

#include "checks/eigh/families.h"

extern "C" void dsyev_(const char* job, const char* uplo, const int* n, double* a, const int* lda,
                       double* w, double* work, const int* lwork, int* info);

namespace crucible::eigh {
namespace {

using Values = std::vector<double>;
constexpr std::uint64_t kSeed = 77;

Values Eigenvalues(Square a) {
  const int n = static_cast<int>(a.n()), work_size = 64 * n;
  Values values(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(work_size));
  int info = -1;
  dsyev_("N", "L", &n, a.data(), &n, values.data(), work.data(), &work_size, &info);
  EXPECT_EQ(info, 0);
  return values;
}

Values Of(const char* kind, std::int64_t n, double cond = 2) {
  return Eigenvalues(GenerateMatrix({"", kind, 1, n, cond}, kSeed, 0));
}

void ExpectNear(Values got, Values want, const std::string& what) {
  std::sort(want.begin(), want.end());
  ASSERT_EQ(got.size(), want.size());
  double scale = 0;
  for (const double value : want) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-13 * scale * static_cast<double>(got.size()))
        << what << " n=" << want.size() << " eigenvalue " << i;
}

Values Absolute(Values values) {
  for (double& value : values) value = std::abs(value);
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Spectra, PrescribedSpectraOfTheRankedFamilies) {
  for (const std::int64_t n : {1, 2, 3, 31, 33, 96}) {
    Values alternating, rankdef, nearrank;
    const std::int64_t rank = 3 * n / 4;
    for (std::int64_t i = 0; i < n; ++i) {
      const double place = n == 1 ? 0 : static_cast<double>(i) / (n - 1);
      alternating.push_back((i % 2 == 0 ? -1 : 1) * std::pow(10, -3 * (1 - place)));
    }
    for (std::int64_t i = 0; i < rank; ++i) {
      const double place = rank == 1 ? 0 : static_cast<double>(i) / (rank - 1);
      rankdef.push_back(std::pow(10, -3 * (1 - place)));
    }
    nearrank = rankdef;
    for (std::int64_t i = 0; i < n - rank; ++i) {
      const double place = n - rank == 1 ? 0 : static_cast<double>(i) / (n - rank - 1);
      rankdef.push_back(0);
      nearrank.push_back(1e-6 * std::pow(10, -2 * (1 - place)));
    }
    ExpectNear(Of("spectrum", n, 3), alternating, "spectrum");
    ExpectNear(Of("diagonal", n, 3), alternating, "diagonal");
    ExpectNear(Of("shuffled_diagonal", n, 3), alternating, "shuffled_diagonal");
    ExpectNear(Of("rankdef", n, 3), rankdef, "rankdef");
    ExpectNear(Of("nearrank", n, 3), nearrank, "nearrank");
  }
}

TEST(Spectra, RepeatedHasSixteenLevelsAndFewerWhereNIsSmall) {
  for (const auto& [n, levels] : {std::pair{256, 16}, {64, 8}, {17, 2}, {7, 1}}) {
    Values values = Of("repeated", n);
    int distinct = 1;
    for (std::size_t i = 1; i < values.size(); ++i) distinct += values[i] - values[i - 1] > 1e-6;
    EXPECT_EQ(distinct, levels) << n;
    EXPECT_NEAR(values.front(), -1, 1e-12);
    EXPECT_NEAR(values.back(), levels == 1 ? -1 : 1, 1e-12);
  }
}

TEST(Spectra, ClusteredLiesAroundMinusOneAndOne) {
  const Values values = Of("clustered", 96);
  int low = 0, narrow = 0;
  for (const double value : values) {
    EXPECT_NEAR(std::abs(value), 1, 1.1e-5);
    low += value < 0;
    narrow += std::abs(value - 1) <= 1.0001e-6;
  }
  EXPECT_EQ(low, 32);     // the first third
  EXPECT_GE(narrow, 32);  // the middle third, and what of the last comes near
}

TEST(Spectra, LapackTypesUpToTheirRandomSigns) {
  for (const std::int64_t n : {2, 33, 64}) {
    Values even, geometric, clustered(static_cast<std::size_t>(n), kUlp);
    clustered[0] = 1;
    for (std::int64_t i = 0; i < n; ++i) {
      even.push_back(1 + (kUlp - 1) * static_cast<double>(i) / (n - 1));
      geometric.push_back(std::pow(kUlp, static_cast<double>(i) / (n - 1)));
    }
    ExpectNear(Absolute(Of("lapack_dense_even", n)), even, "even");
    ExpectNear(Absolute(Of("lapack_dense_geometric", n)), geometric, "geometric");
    ExpectNear(Absolute(Of("lapack_dense_clustered", n)), clustered, "clustered");
    ExpectNear(Absolute(Of("lapack_diag_clustered", n)), clustered, "diag clustered");
    for (double& value : even) value *= std::sqrt(double{FLT_MIN});
    ExpectNear(Absolute(Of("lapack_dense_even_low", n)), even, "even low");
  }
  const Values signs = Of("lapack_dense_even", 64);
  const auto negative = std::count_if(signs.begin(), signs.end(), [](double x) { return x < 0; });
  EXPECT_GT(negative, 10);
  EXPECT_LT(negative, 54);
}

TEST(Spectra, ClosedFormsOfTheStructuredFamilies) {
  using std::numbers::pi;
  for (const std::int64_t n : {1, 2, 16, 33}) {
    Values one_two_one, clement, min_ij;
    for (std::int64_t k = 1; k <= n; ++k) {
      one_two_one.push_back(2 + 2 * std::cos(k * pi / (n + 1)));
      clement.push_back(static_cast<double>(n + 1 - 2 * k));
      min_ij.push_back(1 / (2 - 2 * std::cos((2 * k - 1) * pi / (2 * n + 1))));
    }
    ExpectNear(Of("one_two_one", n), one_two_one, "one_two_one");
    ExpectNear(Of("one_two_one_conjugated", n), one_two_one, "conjugated");
    ExpectNear(Of("clement", n), clement, "clement");
    ExpectNear(Of("min_ij", n), min_ij, "min_ij");
  }
  ExpectNear(Absolute(Of("hadamard", 64)), Values(64, 1.0), "hadamard");
}

TEST(Spectra, JacobiMatricesGiveTheNodesOfTheirGaussRules) {
  const std::int64_t n = 12;
  for (const double x : Of("legendre", n)) {
    double p0 = 1, p1 = x;  // P_n(x) by its recurrence
    for (int k = 1; k < n; ++k) p0 = std::exchange(p1, ((2 * k + 1) * x * p1 - k * p0) / (k + 1));
    EXPECT_NEAR(p1, 0, 1e-12) << x;
  }
  const Values laguerre = Of("laguerre", 2), hermite = Of("hermite", 3);
  EXPECT_NEAR(laguerre[0], 2 - std::sqrt(2.0), 1e-14);  // roots of x^2 - 4x + 2
  EXPECT_NEAR(laguerre[1], 2 + std::sqrt(2.0), 1e-14);
  EXPECT_NEAR(hermite[2], std::sqrt(1.5), 1e-14);  // roots of 8x^3 - 12x
}

TEST(Spectra, PairsRanksAndRanges) {
  const Values pairs = Of("plus_minus_pairs", 41);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    EXPECT_NEAR(pairs[i], -pairs[pairs.size() - 1 - i], 1e-12);
  const Values rank_one = Of("rank_one", 40);
  EXPECT_NEAR(rank_one[38], 0, 1e-12);
  EXPECT_GT(rank_one[39], 10);
  const Values gram = Of("gram", 40);  // five samples
  EXPECT_NEAR(gram[34], 0, 1e-12);
  EXPECT_GT(gram[35], .1);
  const Values near = Of("near_identity_spectrum", 40);
  EXPECT_GE(near.front(), .9 - 1e-12);
  EXPECT_LE(near.back(), 1 + 1e-12);
  EXPECT_GT(near.back() - near.front(), .05);
  const Values psd = Of("psd", 40);
  EXPECT_GE(psd.front(), -1e-12);
  const Values wilkinson = Of("wilkinson", 21);
  EXPECT_NEAR(wilkinson[20], 10.746194182903393, 1e-12);
  EXPECT_NEAR(wilkinson[20] - wilkinson[19], 0, 1e-12);
  const Values flt_max = Of("flt_max", 33);
  EXPECT_LE(std::max(-flt_max.front(), flt_max.back()), FLT_MAX * (1 + 1e-12));
}

TEST(Spectra, RandomOrthogonalIsOrthogonalAndNotFavouringAnyDirection) {
  const std::int64_t n = 24;
  const int trials = 400;
  double corner = 0, trace = 0, positive = 0;
  for (int t = 0; t < trials; ++t) {
    const Square q = RandomOrthogonal(n, Random(MixKey(kSeed, static_cast<std::uint64_t>(t))));
    if (t == 0)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double dot = 0;
          for (std::int64_t k = 0; k < n; ++k) dot += q(i, k) * q(j, k);
          ASSERT_NEAR(dot, i == j ? 1 : 0, 1e-13);
        }
    corner += n * q(n - 1, n - 1) * q(n - 1, n - 1) / trials;
    positive += q(0, 0) > 0;
    for (std::int64_t i = 0; i < n; ++i) trace += q(i, i);
  }
  // Haar: E q_ij^2 = 1/n, E trace = 0 with variance 1 (so the sum has deviation sqrt(trials)).
  EXPECT_NEAR(corner, 1, 5 * std::sqrt(2.0 / trials));
  EXPECT_NEAR(trace, 0, 5 * std::sqrt(trials));
  EXPECT_NEAR(positive, trials / 2.0, 5 * std::sqrt(trials) / 2);
}

}  // namespace
}  // namespace crucible::eigh
