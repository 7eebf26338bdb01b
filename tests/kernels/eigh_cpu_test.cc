// Judges libeigh_cpu.so, or the library named by EIGH_CPU_LIBRARY, by FP64 residuals computed
// with plain loops. EIGH_CPU_QUICK=1 keeps one large size (used by the knob sweep).
#include "kernels/eigh/cpu/eigh_cpu.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

struct Library {
  decltype(&eigh_cpu_abi) abi;
  decltype(&eigh_cpu_configuration) configuration;
  decltype(&eigh_cpu_workspace_bytes) workspace_bytes;
  decltype(&eigh_cpu_solve) solve;
};

const Library& library() {
  static const Library found = [] {
    const char* path = std::getenv("EIGH_CPU_LIBRARY");
    void* handle =
        dlopen(path != nullptr ? path : CRUCIBLE_LIB_DIR "/libeigh_cpu.so", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
    return Library{reinterpret_cast<decltype(&eigh_cpu_abi)>(dlsym(handle, "eigh_cpu_abi")),
                   reinterpret_cast<decltype(&eigh_cpu_configuration)>(
                       dlsym(handle, "eigh_cpu_configuration")),
                   reinterpret_cast<decltype(&eigh_cpu_workspace_bytes)>(
                       dlsym(handle, "eigh_cpu_workspace_bytes")),
                   reinterpret_cast<decltype(&eigh_cpu_solve)>(dlsym(handle, "eigh_cpu_solve"))};
  }();
  return found;
}

bool quick() { return std::getenv("EIGH_CPU_QUICK") != nullptr; }

using Matrix = std::vector<double>;  // n x n, row-major, symmetric
using Family = std::function<Matrix(int n, std::mt19937& random)>;

struct Output {
  std::vector<float> values, vectors;
  std::vector<int32_t> info;
};

// The workspace is poisoned: nothing may depend on what it holds.
Output solve(int64_t batch, int64_t n, const std::vector<float>& a, int threads) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Output out{std::vector<float>(batch * n, nan), std::vector<float>(batch * n * n, nan),
             std::vector<int32_t>(batch, 77)};
  std::vector<float> workspace(library().workspace_bytes(batch, n, threads) / sizeof(float) + 1,
                               nan);
  const std::vector<float> before = a;
  EXPECT_EQ(
      0, library().solve(batch, n, a.data(), out.values.data(), out.vectors.data(), out.info.data(),
                         workspace.data(), workspace.size() * sizeof(float), threads));
  EXPECT_EQ(0, std::memcmp(before.data(), a.data(), a.size() * sizeof(float))) << "input changed";
  return out;
}

std::vector<float> rounded(const Matrix& m) { return {m.begin(), m.end()}; }

// The five gates of the benchmark, at a tenth of their limits, for matrix `b` of the batch.
void expect_solved(int64_t n, const float* a, const Output& out, int64_t b,
                   const std::string& what) {
  const float* l = out.values.data() + b * n;
  const float* q = out.vectors.data() + b * n * n;
  ASSERT_EQ(0, out.info[b]) << what;
  std::vector<double> transposed(n * n), symmetric(n * n);
  double norm = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      ASSERT_TRUE(std::isfinite(q[i * n + j])) << what;
      transposed[j * n + i] = q[i * n + j];
      symmetric[i * n + j] = i >= j ? a[i * n + j] : a[j * n + i];
    }
    ASSERT_TRUE(std::isfinite(l[i])) << what;
    if (i > 0) {
      ASSERT_GE(l[i], l[i - 1]) << what << ": not ascending at " << i;
    }
  }
  double equation = 0.0, orthogonality = 0.0, reconstruction = 0.0;
  std::vector<double> image(n), rebuilt(n);
  for (int64_t j = 0; j < n; ++j) {
    const double* v = &transposed[j * n];
    double column = 0.0, eq = 0.0, orth = 0.0, rec = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      column += std::fabs(symmetric[j * n + i]);
      double av = 0.0, gram = 0.0;
      for (int64_t k = 0; k < n; ++k) {
        av += symmetric[i * n + k] * v[k];
        gram += transposed[i * n + k] * v[k];
      }
      eq += std::fabs(av - v[i] * l[j]);
      orth += std::fabs(gram - (i == j ? 1.0 : 0.0));
    }
    std::fill(rebuilt.begin(), rebuilt.end(), 0.0);
    for (int64_t k = 0; k < n; ++k) {
      const double scale = transposed[k * n + j] * l[k];
      for (int64_t i = 0; i < n; ++i) rebuilt[i] += transposed[k * n + i] * scale;
    }
    for (int64_t i = 0; i < n; ++i) rec += std::fabs(rebuilt[i] - symmetric[j * n + i]);
    norm = std::max(norm, column);
    equation = std::max(equation, eq);
    orthogonality = std::max(orthogonality, orth);
    reconstruction = std::max(reconstruction, rec);
  }
  const double eps = std::ldexp(1.0, -23) * n;
  EXPECT_LE(equation, 20.0 * eps * norm) << what;
  EXPECT_LE(orthogonality, 10.0 * eps) << what;
  EXPECT_LE(reconstruction, 40.0 * eps * norm) << what;
}

Matrix from_diagonals(const std::vector<double>& d, const std::vector<double>& e) {
  const size_t n = d.size();
  Matrix m(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    m[i * n + i] = d[i];
    if (i + 1 < n) m[i * n + i + 1] = m[(i + 1) * n + i] = e[i];
  }
  return m;
}

// H_n .. H_1 diag(v) H_1 .. H_n with random reflectors: a given spectrum in a random basis.
Matrix from_spectrum(const std::vector<double>& v, std::mt19937& random) {
  const int n = static_cast<int>(v.size());
  std::normal_distribution<double> normal;
  Matrix m = from_diagonals(v, std::vector<double>(n, 0.0));
  std::vector<double> u(n), p(n);
  for (int k = 1; k <= std::min(n, 12); ++k) {
    double square = 0.0;
    for (double& x : u) {
      x = normal(random);
      square += x * x;
    }
    double inner = 0.0;
    for (int i = 0; i < n; ++i) {
      p[i] = 0.0;
      for (int j = 0; j < n; ++j) p[i] += m[i * n + j] * u[j];
      inner += p[i] * u[i];
    }
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        m[i * n + j] -= 2.0 / square * (u[i] * p[j] + p[i] * u[j]) -
                        4.0 / (square * square) * inner * u[i] * u[j];
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) m[i * n + j] = m[j * n + i];
  }
  return m;
}

std::vector<double> filled(int n, const std::function<double(int)>& f) {
  std::vector<double> v(n);
  for (int i = 0; i < n; ++i) v[i] = f(i);
  return v;
}

Matrix random_symmetric(int n, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Matrix m(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) m[i * n + j] = m[j * n + i] = normal(random);
  }
  return m;
}

Matrix scaled_random(int n, std::mt19937& random, double decades) {
  Matrix m = random_symmetric(n, random);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) m[i * n + j] *= std::pow(10.0, decades * (i + j) / (2.0 * n));
  }
  return m;
}

double fraction(int i, int n) { return n > 1 ? static_cast<double>(i) / (n - 1) : 0.0; }

const std::vector<std::pair<std::string, Family>>& families() {
  static const std::vector<std::pair<std::string, Family>> all = {
      {"random", random_symmetric},
      {"graded down", [](int n, auto& r) { return scaled_random(n, r, -8.0); }},
      {"graded up", [](int n, auto& r) { return scaled_random(n, r, 8.0); }},
      {"wilkinson",
       [](int n, auto&) {
         return from_diagonals(filled(n, [n](int i) { return std::fabs((n - 1) / 2.0 - i); }),
                               std::vector<double>(n, 1.0));
       }},
      {"glued wilkinson",
       [](int n, auto&) {
         return from_diagonals(filled(n, [](int i) { return std::fabs(10.0 - i % 21); }),
                               filled(n, [](int i) { return i % 21 == 20 ? 1e-6 : 1.0; }));
       }},
      {"glued wilkinson, weak glue",
       [](int n, auto&) {
         return from_diagonals(filled(n, [](int i) { return std::fabs(10.0 - i % 21); }),
                               filled(n, [](int i) { return i % 21 == 20 ? 1e-14 : 1.0; }));
       }},
      {"1-2-1",
       [](int n, auto&) {
         return from_diagonals(std::vector<double>(n, 2.0), std::vector<double>(n, -1.0));
       }},
      {"clement",
       [](int n, auto&) {
         return from_diagonals(std::vector<double>(n, 0.0), filled(n, [n](int i) {
                                 return std::sqrt((i + 1.0) * (n - 1.0 - i));
                               }));
       }},
      {"1-2-1 in a random basis",
       [](int n, auto& r) {
         return from_spectrum(
             filled(n, [n](int i) { return 2.0 - 2.0 * std::cos(M_PI * (i + 1) / (n + 1)); }), r);
       }},
      {"clustered",
       [](int n, auto& r) {
         return from_spectrum(filled(n,
                                     [n](int i) {
                                       const double x = 2.0 * fraction(i, n) - 1.0;
                                       if (i >= n / 3 && i < 2 * n / 3) return 1.0 + 1e-6 * x;
                                       return std::copysign(1.0, x) + 1e-5 * x;
                                     }),
                              r);
       }},
      {"one and a cluster at ulp",
       [](int n, auto& r) {
         return from_spectrum(filled(n, [](int i) { return i == 0 ? 1.0 : std::ldexp(1.0, -22); }),
                              r);
       }},
      {"repeated",
       [](int n, auto& r) {
         return from_spectrum(filled(n, [](int i) { return (i % 4) / 2.0 - 1.0; }), r);
       }},
      {"rank deficient",
       [](int n, auto& r) {
         return from_spectrum(
             filled(n, [n](int i) { return 4 * i < n ? 0.0 : std::pow(10.0, -fraction(i, n)); }),
             r);
       }},
      {"rank one",
       [](int n, auto& r) {
         return from_spectrum(filled(n, [](int i) { return i == 0 ? 3.0 : 0.0; }), r);
       }},
      {"geometric",
       [](int n, auto& r) {
         return from_spectrum(
             filled(
                 n,
                 [n](int i) { return (i % 2 ? 1 : -1) * std::pow(10.0, -6.6 * fraction(i, n)); }),
             r);
       }},
      {"even",
       [](int n, auto& r) {
         return from_spectrum(filled(n, [n](int i) { return 1.0 - fraction(i, n); }), r);
       }},
      {"pairs",
       [](int n, auto& r) {
         Matrix m = random_symmetric(n, r);
         for (int i = 0; i < n; ++i) {
           for (int j = 0; j < n; ++j) {
             if ((i < n / 2) == (j < n / 2)) m[i * n + j] = 0.0;
           }
         }
         return m;
       }},
      {"arrowhead",
       [](int n, auto&) {
         Matrix m =
             from_diagonals(filled(n, [](int i) { return i + 1.0; }), std::vector<double>(n, 0.0));
         for (int i = 0; i + 1 < n; ++i) {
           m[(n - 1) * n + i] = m[i * n + n - 1] = std::sqrt(i + 1.0);
         }
         return m;
       }},
      {"min(i,j)",
       [](int n, auto&) {
         Matrix m(n * n);
         for (int i = 0; i < n; ++i) {
           for (int j = 0; j < n; ++j) m[i * n + j] = std::min(i, j) + 1.0;
         }
         return m;
       }},
      {"hilbert",
       [](int n, auto&) {
         Matrix m(n * n);
         for (int i = 0; i < n; ++i) {
           for (int j = 0; j < n; ++j) m[i * n + j] = 1.0 / (i + j + 1.0);
         }
         return m;
       }},
      {"near identity",
       [](int n, auto& r) {
         Matrix m = random_symmetric(n, r);
         for (int i = 0; i < n * n; ++i) m[i] = 1e-4 * m[i] + (i % (n + 1) == 0 ? 0.97 : 0.0);
         return m;
       }},
      {"blocks without coupling",
       [](int n, auto& r) {
         Matrix m = random_symmetric(n, r);
         for (int i = 0; i < n; ++i) {
           for (int j = 0; j < n; ++j) {
             if (i / 5 != j / 5) m[i * n + j] = 0.0;
           }
         }
         return m;
       }},
      {"ones and a tiny diagonal",
       [](int n, auto&) {
         Matrix m(n * n, 1.0);
         for (int i = 0; i < n; ++i) m[i * n + i] += 1e-5 * (i + 1);
         return m;
       }},
      {"column tails of 1e-20",
       [](int n, auto& r) {
         Matrix m = random_symmetric(n, r);
         for (int i = 0; i < n; ++i) {
           for (int j = 0; j < n; ++j) {
             if (std::abs(i - j) > 3) m[i * n + j] = (i + j) % 3 == 0 ? 0.0 : 1e-20;
           }
         }
         return m;
       }},
  };
  return all;
}

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
