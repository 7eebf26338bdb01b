// eigh_cpu_bench.cc: times libraries with the eigh_cpu C interface beside each other.
//
//   eigh_cpu_bench [--threads T] [--rounds R] [--n N,N,...] LIBRARY...
//
// A developer's tool for a quick look: interleaved rounds, the median of each library, and the
// worst scaled residuals of a dense input. The campaign's own timing lives in checks/.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "../eigh_cpu.h"

namespace {

struct Library {
  std::string path;
  decltype(&eigh_cpu_workspace_bytes) workspace_bytes;
  decltype(&eigh_cpu_solve) solve;
};

Library open_library(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "open %s: %s\n", path, dlerror());
    std::exit(1);
  }
  return {path,
          reinterpret_cast<decltype(&eigh_cpu_workspace_bytes)>(
              dlsym(handle, "eigh_cpu_workspace_bytes")),
          reinterpret_cast<decltype(&eigh_cpu_solve)>(dlsym(handle, "eigh_cpu_solve"))};
}

// Dense with cond 1: S sym(G) S, S = diag(logspace(0, -1, n)).
std::vector<float> dense(int64_t batch, int64_t n) {
  std::mt19937 random(42);
  std::normal_distribution<float> normal;
  std::vector<float> a(batch * n * n);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const double scale =
            std::pow(10.0, -static_cast<double>(i + j) / std::max<int64_t>(n - 1, 1));
        const float x = static_cast<float>(normal(random) * scale);
        a[(b * n + i) * n + j] = a[(b * n + j) * n + i] = x;
      }
    }
  }
  return a;
}

// Scaled residuals of the first matrix: eigen equation and orthogonality.
void residuals(int64_t n, const float* a, const float* l, const float* q, double* equation,
               double* orthogonality) {
  double norm = 0, eq = 0, orth = 0;
  for (int64_t j = 0; j < n; ++j) {
    double column = 0, sum = 0, gram = 0;
    std::vector<double> aq(n, 0.0), qq(n, 0.0);
    for (int64_t i = 0; i < n; ++i) {
      column += std::fabs(a[i * n + j]);
      for (int64_t k = 0; k < n; ++k) {
        aq[k] += static_cast<double>(a[i * n + k]) * q[i * n + j];
        qq[k] += static_cast<double>(q[i * n + k]) * q[i * n + j];
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      sum += std::fabs(aq[i] - static_cast<double>(q[i * n + j]) * l[j]);
      gram += std::fabs(qq[i] - (i == j));
    }
    norm = std::max(norm, column);
    eq = std::max(eq, sum);
    orth = std::max(orth, gram);
  }
  const double eps = std::ldexp(1.0, -23) * n;
  *equation = eq / (eps * norm);
  *orthogonality = orth / eps;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2, rounds = 11;
  std::vector<int64_t> sizes = {32, 176, 352, 512};
  std::vector<Library> libraries;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--threads" && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (arg == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (arg == "--n" && i + 1 < argc) {
      sizes.clear();
      for (char* t = std::strtok(argv[++i], ","); t; t = std::strtok(nullptr, ",")) {
        sizes.push_back(std::atoll(t));
      }
    } else {
      libraries.push_back(open_library(argv[i]));
    }
  }
  std::printf("%5s %5s %12s %10s %10s  library\n", "n", "batch", "ms", "equation", "orthogon.");
  for (const int64_t n : sizes) {
    const int64_t batch = n <= 64 ? 20 : n <= 400 ? 8 : 4;
    const std::vector<float> a = dense(batch, n);
    std::vector<float> l(batch * n), q(batch * n * n);
    std::vector<int32_t> info(batch);
    std::vector<std::vector<double>> times(libraries.size());
    std::vector<double> equation(libraries.size()), orthogonality(libraries.size());
    for (int round = -1; round < rounds; ++round) {
      for (size_t i = 0; i < libraries.size(); ++i) {
        std::vector<char> workspace(libraries[i].workspace_bytes(batch, n, threads));
        const int calls = n <= 64 ? 20 : 1;
        const auto start = std::chrono::steady_clock::now();
        for (int call = 0; call < calls; ++call) {
          const int rc = libraries[i].solve(batch, n, a.data(), l.data(), q.data(), info.data(),
                                            workspace.data(), workspace.size(), threads);
          if (rc != 0) {
            std::fprintf(stderr, "%s returned %d\n", libraries[i].path.c_str(), rc);
            return 1;
          }
        }
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - start;
        if (round >= 0) {
          times[i].push_back(took.count() / calls);
        } else {
          residuals(n, a.data(), l.data(), q.data(), &equation[i], &orthogonality[i]);
        }
      }
    }
    for (size_t i = 0; i < libraries.size(); ++i) {
      std::sort(times[i].begin(), times[i].end());
      std::printf("%5lld %5lld %12.4f %10.3f %10.3f  %s\n", static_cast<long long>(n),
                  static_cast<long long>(batch), times[i][times[i].size() / 2], equation[i],
                  orthogonality[i], libraries[i].path.c_str());
    }
  }
}
