// What the CPU kernel answers: every family within a tenth of the gates, and the edges of its
// contract. The same test judges every configuration that knob_sweep.cmake compiles.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/eigh_cpu_families.h"
#include "tests/kernels/eigh_cpu_solve.h"

namespace eigh_cpu_test {
namespace {

class EighCpu : public testing::TestWithParam<int> {};

TEST_P(EighCpu, SolvesEveryFamilyWithinATenthOfTheGates) {
  const int n = GetParam();
  if (quick() && n > 100 && n != 257) GTEST_SKIP() << "EIGH_CPU_QUICK is set";
  std::mt19937 random(1000 + n);
  for (const auto& [name, make] : families()) {
    if (n > 200 && name.find("in a random basis") != std::string::npos) continue;
    const std::vector<float> a = rounded(make(n, random));
    const Output out = solve(1, n, a, 1);
    expect_solved(n, a.data(), out, 0, name + " n = " + std::to_string(n));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EighCpu,
                         testing::Values(1, 2, 3, 31, 32, 33, 64, 65, 100, 176, 177, 257, 352));

TEST(EighCpuEdges, EmptyBatchesAndMatricesAreFine) {
  EXPECT_EQ(1, library().abi());
  EXPECT_EQ('{', library().configuration()[0]);
  // A condition of every result: a rejection holds only under the compiler it was measured with.
  EXPECT_NE(std::string(library().configuration()).find("\"compiler\":\"" __VERSION__),
            std::string::npos);
  EXPECT_EQ(0, library().solve(0, 5, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 1));
  int32_t info[2] = {7, 7};
  EXPECT_EQ(0, library().solve(2, 0, nullptr, nullptr, nullptr, info, nullptr, 0, 1));
  EXPECT_EQ(0, info[0]);
  EXPECT_EQ(0, info[1]);
}

TEST(EighCpuEdges, BadArgumentsAreRefusedAndNothingIsWritten) {
  const std::vector<float> a(2 * 9, 1.0f);
  std::vector<float> l(6, -5.0f), q(18, -5.0f);
  std::vector<int32_t> info(2, -5);
  std::vector<char> work(library().workspace_bytes(2, 3, 2));
  const auto call = [&](int64_t batch, int64_t n, const float* in, float* values, float* vectors,
                        int32_t* infos, void* memory, size_t bytes, int threads) {
    return library().solve(batch, n, in, values, vectors, infos, memory, bytes, threads);
  };
  const size_t size = work.size();
  EXPECT_NE(0, call(-1, 3, a.data(), l.data(), q.data(), info.data(), work.data(), size, 2));
  EXPECT_NE(0, call(2, -3, a.data(), l.data(), q.data(), info.data(), work.data(), size, 2));
  EXPECT_NE(0, call(2, 3, a.data(), l.data(), q.data(), info.data(), work.data(), size, 0));
  EXPECT_NE(0, call(2, 3, nullptr, l.data(), q.data(), info.data(), work.data(), size, 2));
  EXPECT_NE(0, call(2, 3, a.data(), nullptr, q.data(), info.data(), work.data(), size, 2));
  EXPECT_NE(0, call(2, 3, a.data(), l.data(), nullptr, info.data(), work.data(), size, 2));
  EXPECT_NE(0, call(2, 3, a.data(), l.data(), q.data(), nullptr, work.data(), size, 2));
  EXPECT_NE(0, call(2, 3, a.data(), l.data(), q.data(), info.data(), nullptr, size, 2));
  EXPECT_NE(0, call(2, 3, a.data(), l.data(), q.data(), info.data(), work.data(), size - 1, 2));
  for (float x : l) EXPECT_EQ(-5.0f, x);
  for (float x : q) EXPECT_EQ(-5.0f, x);
  for (int32_t x : info) EXPECT_EQ(-5, x);
}

TEST(EighCpuEdges, ZeroMatricesComeOutExact) {
  for (int n : {1, 2, 33, 100}) {
    const Output out = solve(1, n, std::vector<float>(n * n, 0.0f), 1);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(0.0f, out.values[i]);
      for (int j = 0; j < n; ++j) EXPECT_EQ(i == j ? 1.0f : 0.0f, out.vectors[i * n + j]);
    }
  }
}

TEST(EighCpuEdges, DiagonalMatricesComeOutExactAndSorted) {
  for (float scale : {1.0f, FLT_MAX, FLT_MIN, FLT_MIN / 1024}) {
    const int n = 65;
    std::vector<float> a(n * n, 0.0f), sorted(n);
    for (int i = 0; i < n; ++i) {
      sorted[i] = a[i * n + i] = scale * (((i * 37 % n) - 32) / 64.0f);
    }
    std::sort(sorted.begin(), sorted.end());
    const Output out = solve(1, n, a, 1);
    for (int j = 0; j < n; ++j) {
      ASSERT_EQ(sorted[j], out.values[j]);
      float total = 0.0f;
      for (int i = 0; i < n; ++i) {
        const float q = out.vectors[i * n + j];
        total += q;
        ASSERT_TRUE(q == 0.0f || (q == 1.0f && a[i * n + i] == sorted[j]));
      }
      ASSERT_EQ(1.0f, total);
    }
  }
}

TEST(EighCpuEdges, ScalingByAPowerOfTwoScalesTheValuesAndKeepsTheVectors) {
  std::mt19937 random(5);
  for (int n : {32, 100}) {
    const std::vector<float> a = rounded(random_symmetric(n, random));
    const Output plain = solve(1, n, a, 1);
    for (int exponent : {118, -118}) {
      std::vector<float> scaled(a);
      for (float& x : scaled) x = std::ldexp(x, exponent);
      const Output out = solve(1, n, scaled, 1);
      EXPECT_EQ(plain.vectors, out.vectors);
      for (int i = 0; i < n; ++i) EXPECT_EQ(std::ldexp(plain.values[i], exponent), out.values[i]);
    }
  }
}

TEST(EighCpuEdges, EntriesAtTheEndsOfTheRangeAreSolved) {
  std::mt19937 random(6);
  for (int n : {32, 100}) {
    Matrix m = random_symmetric(n, random);
    double largest = 0.0;
    for (double x : m) largest = std::max(largest, std::fabs(x));
    // The eigenvalues must stay below FLT_MAX; entries then reach FLT_MAX / n.
    for (double top : {static_cast<double>(FLT_MAX) / n, std::sqrt(static_cast<double>(FLT_MAX)),
                       std::sqrt(static_cast<double>(FLT_MIN)), 64.0 * FLT_MIN}) {
      std::vector<float> a(n * n);
      for (int i = 0; i < n * n; ++i) a[i] = static_cast<float>(m[i] / largest * top);
      expect_solved(n, a.data(), solve(1, n, a, 1), 0, "top entry " + std::to_string(top));
    }
    // Two-by-two coupling of subnormal entries: exact values are representable.
    std::vector<float> tiny(n * n, 0.0f);
    for (int i = 0; i + 1 < n; i += 2) {
      tiny[i * n + i + 1] = tiny[(i + 1) * n + i] = 1000 * std::numeric_limits<float>::denorm_min();
    }
    expect_solved(n, tiny.data(), solve(1, n, tiny, 1), 0, "subnormal entries");
    std::vector<float> huge(n * n, 0.0f);
    huge[0] = FLT_MAX;
    huge[n * n - 1] = -FLT_MAX;
    huge[(n - 1) * n] = huge[n - 1] = FLT_MAX / 64;
    huge[n] = huge[1] = 1.0f;
    const Output out = solve(1, n, huge, 1);
    EXPECT_EQ(0, out.info[0]);
  }
}

TEST(EighCpuEdges, OnlyTheLowerTriangleIsRead) {
  std::mt19937 random(7);
  for (int n : {33, 100}) {
    const std::vector<float> a = rounded(random_symmetric(n, random));
    std::vector<float> lower = a;
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) lower[i * n + j] = std::numeric_limits<float>::quiet_NaN();
    }
    // Compared by hand: `solve` checks that the input keeps its bits, NaN included.
    const Output full = solve(1, n, a, 1), half = solve(1, n, lower, 1);
    EXPECT_EQ(full.values, half.values);
    EXPECT_EQ(full.vectors, half.vectors);
  }
}

TEST(EighCpuEdges, NotANumberStaysInItsMatrix) {
  std::mt19937 random(8);
  for (int n : {1, 32, 100}) {
    for (float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> a;
      for (int b = 0; b < 5; ++b) {
        const std::vector<float> one = rounded(random_symmetric(n, random));
        a.insert(a.end(), one.begin(), one.end());
      }
      const Output clean = solve(5, n, a, 2);
      a[2 * n * n + (n - 1) * n + n / 2] = bad;
      const Output out = solve(5, n, a, 2);
      for (int b = 0; b < 5; ++b) {
        EXPECT_EQ(b == 2 ? -1 : 0, out.info[b]);
        for (int i = 0; i < n * n; ++i) {
          const int at = b * n * n + i;
          if (b == 2) {
            ASSERT_TRUE(std::isnan(out.vectors[at]));
            ASSERT_TRUE(std::isnan(out.values[b * n + i % n]));
          } else {
            ASSERT_EQ(clean.vectors[at], out.vectors[at]);
            ASSERT_EQ(clean.values[b * n + i % n], out.values[b * n + i % n]);
          }
        }
      }
    }
  }
}

TEST(EighCpuEdges, AResultDependsOnItsMatrixAlone) {
  std::mt19937 random(9);
  for (int n : {32, 100}) {
    const int64_t batch = 7;
    std::vector<float> a;
    for (int b = 0; b < batch; ++b) {
      const std::vector<float> one = rounded(random_symmetric(n, random));
      a.insert(a.end(), one.begin(), one.end());
    }
    const Output one_thread = solve(batch, n, a, 1);
    for (int threads : {2, 3, 16}) {
      const Output out = solve(batch, n, a, threads);
      EXPECT_EQ(one_thread.values, out.values) << threads;
      EXPECT_EQ(one_thread.vectors, out.vectors) << threads;
      EXPECT_EQ(one_thread.info, out.info) << threads;
    }
    const std::vector<float> last(a.end() - n * n, a.end());
    const Output alone = solve(1, n, last, 1);
    for (int i = 0; i < n * n; ++i) {
      ASSERT_EQ(alone.vectors[i], one_thread.vectors[(batch - 1) * n * n + i]);
    }
  }
}

}  // namespace
}  // namespace eigh_cpu_test
