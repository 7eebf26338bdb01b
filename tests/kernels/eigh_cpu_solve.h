// eigh_cpu_solve.h: libeigh_cpu.so, or the library named by EIGH_CPU_LIBRARY, called and judged by
// FP64 residuals computed with plain loops. EIGH_CPU_QUICK=1 keeps one large size (used by the knob
// sweep).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/eigh/cpu/eigh_cpu.h"

namespace eigh_cpu_test {

struct Library {
  decltype(&eigh_cpu_abi) abi;
  decltype(&eigh_cpu_configuration) configuration;
  decltype(&eigh_cpu_workspace_bytes) workspace_bytes;
  decltype(&eigh_cpu_solve) solve;
};

inline const Library& library() {
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

inline bool quick() { return std::getenv("EIGH_CPU_QUICK") != nullptr; }

using Matrix = std::vector<double>;  // n x n, row-major, symmetric
using Family = std::function<Matrix(int n, std::mt19937& random)>;

struct Output {
  std::vector<float> values, vectors;
  std::vector<int32_t> info;
};

// The workspace is poisoned: nothing may depend on what it holds.
inline Output solve(int64_t batch, int64_t n, const std::vector<float>& a, int threads) {
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

inline std::vector<float> rounded(const Matrix& m) { return {m.begin(), m.end()}; }

// The five gates of the benchmark, at a tenth of their limits, for matrix `b` of the batch.
inline void expect_solved(int64_t n, const float* a, const Output& out, int64_t b,
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

}  // namespace eigh_cpu_test
