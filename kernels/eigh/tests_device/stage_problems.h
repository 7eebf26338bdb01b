// stage_problems.h: hard symmetric tridiagonal matrices and their eigenvalues by bisection in FP64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace stage_test {

using Random = std::mt19937_64;
struct Problem {
  std::string name;
  std::vector<float> d, e;  // e has n - 1 entries (at least one is allocated)
};

// ------------------------------------------------------------------ families
inline double normal(Random& random) { return std::normal_distribution<double>()(random); }

inline Problem make(const std::string& name, int n, Random& random) {
  Problem p{name, std::vector<float>(n, 0.f), std::vector<float>(std::max(1, n - 1), 0.f)};
  const auto off = [&](const std::function<double(int)>& f) {
    for (int i = 0; i + 1 < n; ++i) p.e[i] = static_cast<float>(f(i));
  };
  const auto diagonal = [&](const std::function<double(int)>& f) {
    for (int i = 0; i < n; ++i) p.d[i] = static_cast<float>(f(i));
  };
  if (name == "1-2-1") {
    diagonal([](int) { return 2.0; });
    off([](int) { return -1.0; });
  } else if (name == "wilkinson") {
    diagonal([&](int i) { return std::fabs(i - (n - 1) / 2.0); });
    off([](int) { return 1.0; });
  } else if (name == "glued1e-4" || name == "glued1e-7") {
    const double glue = name == "glued1e-4" ? 1e-4 : 1e-7;
    diagonal([](int i) { return std::fabs(i % 21 - 10.0); });
    off([&](int i) { return i % 21 == 20 ? glue : 1.0; });
  } else if (name == "clement") {
    off([&](int i) { return std::sqrt((i + 1.0) * (n - 1.0 - i)); });
  } else if (name == "graded") {  // Kahan-like: geometric decay over eight decades
    diagonal([&](int i) { return std::pow(10.0, -8.0 * i / n) * (1 + 0.1 * normal(random)); });
    off([&](int i) { return 0.5 * std::pow(10.0, -8.0 * (i + 0.5) / n); });
  } else if (name == "goe") {  // the tridiagonal of a dense Gaussian matrix
    diagonal([&](int) { return normal(random); });
    off([&](int i) {
      return std::sqrt(std::chi_squared_distribution<double>(n - 1 - i)(random) / 2);
    });
  } else if (name == "clustered") {  // +-1 with off-diagonals of the size of the cluster
    diagonal([&](int i) { return (i % 2 ? 1.0 : -1.0) + 1e-5 * normal(random); });
    off([&](int) { return 1e-5 * normal(random); });
  } else if (name == "rankdef") {  // a dense block, then nothing at the size of rounding
    diagonal([&](int i) { return i < 3 * n / 4 ? normal(random) : 1e-7 * normal(random); });
    off([&](int i) { return i < 3 * n / 4 ? 1 + std::fabs(normal(random)) : 1e-7; });
  } else if (name == "underflow") {  // couplings from ordinary down to subnormal
    diagonal([&](int) { return normal(random); });
    off([&](int i) { return std::pow(10.0, -(i % 44)); });
  } else if (name == "zero-e") {  // exact zero couplings between small blocks
    diagonal([&](int) { return normal(random); });
    off([&](int i) { return i % 5 == 4 ? 0.0 : normal(random); });
  } else if (name == "multiples") {  // exact multiple eigenvalues
    diagonal([](int i) { return i % 3; });
    off([](int i) { return i % 2 ? 0.0 : 1.0; });
  } else if (name == "diagonal") {
    diagonal([&](int) { return normal(random); });
  } else if (name == "identity") {
    diagonal([](int) { return 1.0; });
  } else if (name != "zero") {
    std::printf("unknown family %s\n", name.c_str());
    std::exit(2);
  }
  return p;
}

inline const std::vector<std::string> kFamilies = {
    "goe",     "1-2-1",     "wilkinson", "glued1e-4", "glued1e-7",
    "clement", "graded",    "clustered", "rankdef",   "underflow",
    "zero-e",  "multiples", "diagonal",  "identity",  "zero"};

// ------------------------------------------------------------------ the FP64 oracle
inline double norm1(const Problem& p) {
  const int n = static_cast<int>(p.d.size());
  double norm = 0;
  for (int i = 0; i < n; ++i) {
    norm = std::max(norm, std::fabs(double(p.d[i])) + (i ? std::fabs(double(p.e[i - 1])) : 0) +
                              (i + 1 < n ? std::fabs(double(p.e[i])) : 0));
  }
  return norm;
}

inline int count_below(const Problem& p, double x) {
  const double tiny = 1e-290;
  int count = 0;
  double q = 1;
  for (size_t i = 0; i < p.d.size(); ++i) {
    const double e = i ? double(p.e[i - 1]) : 0;
    q = double(p.d[i]) - x - (i ? e * e / q : 0);
    if (std::fabs(q) < tiny) q = -tiny;
    count += q < 0;
  }
  return count;
}

// Every eigenvalue by bisection to 1e-11 of the norm.
inline std::vector<double> eigenvalues(const Problem& p) {
  const int n = static_cast<int>(p.d.size());
  const double norm = norm1(p);
  std::vector<double> values(n);
  const std::function<void(int, int, double, double)> split = [&](int lo, int hi, double a,
                                                                  double b) {
    if (lo >= hi) return;
    const double m = 0.5 * (a + b);
    if (b - a <= 1e-11 * norm) {
      std::fill(values.begin() + lo, values.begin() + hi, m);
      return;
    }
    const int c = std::clamp(count_below(p, m), lo, hi);
    split(lo, c, a, m);
    split(c, hi, m, b);
  };
  if (norm > 0) split(0, n, -norm * (1 + 1e-9), norm * (1 + 1e-9));
  return values;
}

}  // namespace stage_test
