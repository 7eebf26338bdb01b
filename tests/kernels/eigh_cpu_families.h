// eigh_cpu_families.h: the kinds of matrix that the CPU kernel is tried on, at any order.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/eigh_cpu_solve.h"

namespace eigh_cpu_test {

inline Matrix from_diagonals(const std::vector<double>& d, const std::vector<double>& e) {
  const size_t n = d.size();
  Matrix m(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    m[i * n + i] = d[i];
    if (i + 1 < n) m[i * n + i + 1] = m[(i + 1) * n + i] = e[i];
  }
  return m;
}

// H_n .. H_1 diag(v) H_1 .. H_n with random reflectors: a given spectrum in a random basis.
inline Matrix from_spectrum(const std::vector<double>& v, std::mt19937& random) {
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

inline std::vector<double> filled(int n, const std::function<double(int)>& f) {
  std::vector<double> v(n);
  for (int i = 0; i < n; ++i) v[i] = f(i);
  return v;
}

inline Matrix random_symmetric(int n, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Matrix m(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) m[i * n + j] = m[j * n + i] = normal(random);
  }
  return m;
}

inline Matrix scaled_random(int n, std::mt19937& random, double decades) {
  Matrix m = random_symmetric(n, random);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) m[i * n + j] *= std::pow(10.0, decades * (i + j) / (2.0 * n));
  }
  return m;
}

inline double fraction(int i, int n) { return n > 1 ? static_cast<double>(i) / (n - 1) : 0.0; }

inline const std::vector<std::pair<std::string, Family>>& families() {
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

}  // namespace eigh_cpu_test
