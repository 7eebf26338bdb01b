#include "checks/eigh/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <set>

#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

constexpr std::uint64_t kSeed = 20240607;

EighCase Case(std::string_view kind, std::int64_t n, std::int64_t batch = 1, double cond = 2) {
  return {"", std::string(kind), batch, n, cond};
}

float Largest(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

TEST(Families, EveryOneIsFiniteAndSymmetricToTheBitAtEveryOrder) {
  for (const Family& family : Families()) {
    for (const std::int64_t n : {1, 2, 3, 5, 31, 32, 33, 64}) {
      const std::vector<float> batch = GenerateBatch(Case(family.name, n, 3), kSeed, 2);
      for (std::int64_t b = 0; b < 3; ++b) {
        const float* a = batch.data() + b * n * n;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            ASSERT_TRUE(!family.finite || std::isfinite(a[i * n + j])) << family.name << " " << n;
            ASSERT_EQ(std::memcmp(&a[i * n + j], &a[j * n + i], sizeof(float)), 0)
                << family.name << " n=" << n << " at " << i << ", " << j;
          }
      }
    }
  }
}

TEST(Families, NamesAreUniqueAndEveryNameOfTheCaseTableIsKnown) {
  std::set<std::string_view> names;
  for (const Family& family : Families()) EXPECT_TRUE(names.insert(family.name).second);
  for (const char* name : {"dense",
                           "spectrum",
                           "psd",
                           "rankdef",
                           "nearrank",
                           "repeated",
                           "clustered",
                           "diagonal",
                           "band",
                           "rowscale",
                           "mixed",
                           "lapack_zero",
                           "lapack_identity",
                           "lapack_diag_even",
                           "lapack_diag_geometric",
                           "lapack_diag_clustered",
                           "lapack_diag_geometric_high",
                           "lapack_diag_geometric_low",
                           "lapack_dense_even_spectrum",
                           "lapack_dense_geometric_spectrum",
                           "lapack_dense_clustered",
                           "lapack_dense_even_high",
                           "lapack_dense_even_low",
                           "lapack_random_symmetric",
                           "lapack_random_high",
                           "lapack_random_low",
                           "lapack_band_even",
                           "lapack_band_even_high",
                           "lapack_band_even_low"})
    EXPECT_NE(FindFamily(name), nullptr) << name;
  EXPECT_EQ(FindFamily("dense_spectrum"), nullptr);
  EXPECT_EQ(FindFamily("lapack_"), nullptr);
}

TEST(Families, AMatrixDependsOnSeedAndIndexAlone) {
  for (const char* kind : {"dense", "clustered", "mixed", "lapack_band_even", "block_diagonal"}) {
    const std::int64_t n = 24;
    const std::vector<float> few = GenerateBatch(Case(kind, n, 2), kSeed, 1);
    const std::vector<float> many = GenerateBatch(Case(kind, n, 7), kSeed, 3);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << kind;
    const std::vector<float> other = GenerateBatch(Case(kind, n, 2), kSeed + 1, 1);
    EXPECT_NE(few, other) << kind;
    EXPECT_FALSE(std::equal(many.begin(), many.begin() + n * n, many.begin() + n * n)) << kind;
  }
}

TEST(Families, DenseScalesRowsAndColumnsByCond) {
  const std::int64_t n = 200;
  const Square a = GenerateMatrix(Case("dense", n, 1, 4), kSeed, 0);
  double first = 0, last = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    first = std::max(first, std::abs(a(0, j)));
    last = std::max(last, std::abs(a(n - 1, j)));
  }
  EXPECT_GT(first, .1);
  EXPECT_LT(last, 1e-3);
  EXPECT_GT(last, 1e-6);
}

TEST(Families, DenseHasTheVariancesOfASymmetrisedNormalMatrix) {
  const std::int64_t n = 300;
  const Square a = GenerateMatrix(Case("dense", n, 1, 0), kSeed, 0);
  double diagonal = 0, off = 0, mean = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    diagonal += a(i, i) * a(i, i) / n;
    for (std::int64_t j = 0; j < i; ++j) off += a(i, j) * a(i, j), mean += a(i, j);
  }
  const double pairs = .5 * n * (n - 1);
  EXPECT_NEAR(diagonal, 1.0, .3);  // five standard deviations
  EXPECT_NEAR(off / pairs, .5, .02);
  EXPECT_NEAR(mean / pairs, 0, .02);
}

TEST(Families, MixedHasADenseMatrixAndAnotherForEverySeed) {
  // With cond 0 the dense profile keeps entries of order one in every row; no other profile of the
  // first two matrices is bit-identical to the dense family.
  const std::int64_t n = 24;
  std::set<std::int64_t> dense_places;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<float> mixed = GenerateBatch(Case("mixed", n, 2, 0), seed, 1);
    const std::vector<float> dense = GenerateBatch(Case("dense", n, 2, 0), seed, 1);
    int equal = 0;
    for (std::int64_t b = 0; b < 2; ++b)
      if (std::equal(mixed.begin() + b * n * n, mixed.begin() + (b + 1) * n * n,
                     dense.begin() + b * n * n))
        ++equal, dense_places.insert(b);
    EXPECT_EQ(equal, 1) << "seed " << seed;
  }
  EXPECT_EQ(dense_places.size(), 2u);
}

TEST(Families, BandIsZeroOutsideItsBandAndFullInside) {
  const std::int64_t n = 256;  // width 8
  const Square a = GenerateMatrix(Case("band", n), kSeed, 0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      EXPECT_EQ(a(i, j) != 0, std::abs(i - j) <= 8) << i << ", " << j;
}

TEST(Families, HighAndLowReachTheEndsOfTheRangeWithoutLeavingIt) {
  const double high = std::sqrt(double{FLT_MAX}), low = std::sqrt(double{FLT_MIN});
  for (const char* kind :
       {"lapack_dense_even", "lapack_random", "lapack_band_even", "lapack_diag_geometric"}) {
    const std::string name(kind);
    const float up = Largest(GenerateBatch(Case(name + "_high", 33, 2), kSeed, 1));
    const float down = Largest(GenerateBatch(Case(name + "_low", 33, 2), kSeed, 1));
    EXPECT_GT(up, .05 * high) << kind;
    EXPECT_LE(up, 1.01 * high) << kind;
    EXPECT_GT(down, .05 * low) << kind;
    EXPECT_LE(down, 1.01 * low) << kind;
  }
}

TEST(Families, SubnormalAndFltMaxAreWhatTheySay) {
  for (const std::int64_t n : {1, 2, 33}) {
    const std::vector<float> tiny = GenerateBatch(Case("subnormal", n, 4), kSeed, 1);
    EXPECT_LT(Largest(tiny), FLT_MIN);
    EXPECT_GT(Largest(tiny), 1e-3f * FLT_MIN);
    const std::vector<float> huge = GenerateBatch(Case("flt_max", n, 4), kSeed, 1);
    EXPECT_EQ(Largest(huge), FLT_MAX);
  }
}

TEST(Families, NanInfPoisonsOneMatrixAndLeavesTheOthersDense) {
  std::set<std::int64_t> places;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const EighCase parameters = Case("nan_inf", 9, 4);
    const std::vector<float> dirty = GenerateBatch(parameters, seed, 1);
    const std::vector<float> clean = GenerateBatch(Case("dense", 9, 4), seed, 1);
    const std::int64_t poisoned = PoisonedIndex(parameters, seed);
    places.insert(poisoned);
    for (std::int64_t b = 0; b < 4; ++b) {
      const auto from = dirty.begin() + b * 81, to = from + 81;
      const bool finite = std::all_of(from, to, [](float x) { return std::isfinite(x); });
      EXPECT_EQ(finite, b != poisoned) << "seed " << seed;
      EXPECT_EQ(std::equal(from, to, clean.begin() + b * 81), b != poisoned);
    }
  }
  EXPECT_EQ(places.size(), 4u);
}

TEST(Families, ColumnTailsHasTinyAndExactZeroTailsAndBlockDiagonalHasZeroCouplings) {
  const std::int64_t n = 60;
  const std::vector<float> tails = GenerateBatch(Case("column_tails", n), kSeed, 1);
  int zero_tails = 0, tiny_tails = 0;
  for (std::int64_t j = 0; j + 10 < n; ++j) {
    float largest = 0;
    for (std::int64_t i = j + 2; i < n; ++i)
      largest = std::max(largest, std::abs(tails[i * n + j]));
    zero_tails += largest == 0;
    tiny_tails += largest > 0 && largest < 1e-18f;
  }
  EXPECT_GT(zero_tails, 5);
  EXPECT_GT(tiny_tails, 5);
  const std::vector<float> blocks = GenerateBatch(Case("block_diagonal", n), kSeed, 1);
  const auto zeros = std::count(blocks.begin(), blocks.end(), 0.0f);
  EXPECT_GT(zeros, n * n / 4);
  EXPECT_LT(zeros, n * n - n);
}

}  // namespace
}  // namespace crucible::eigh
