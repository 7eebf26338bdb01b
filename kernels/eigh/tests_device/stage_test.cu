// stage_test.cu: checks tridiagonal_dc and back_transform alone against FP64, and times them.
//
// Usage: stage_test [seed [n ...]]. For every n and family of hard tridiagonals: eigenvalues
// against Sturm bisection in FP64, then residual and orthogonality of the vectors after the
// Newton-Schulz step, once with no reflectors (the divide and conquer alone) and once with random
// reflectors (both stages, against Q1 T Q1^T). Also: bitwise equality under a batch permutation,
// poisoned buffers, and what a NaN matrix does to its neighbours. Values are scaled as the gates
// are: residual norm1 / (n eps norm1(T)), limit 200; orthogonality norm1 / (n eps), limit 100;
// eigenvalues max|dL| / (eps max|L|). Exit status 1 if a limit is passed, 77 without a device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../stages.h"
#include "stage_problems.h"

using crucible::eigh::Shape;
using crucible::eigh::Tridiagonal;
using namespace stage_test;  // NOLINT

namespace {

constexpr double kEps = 1.1920928955078125e-07;
// The limits of the gates, and for L what a residual at its gate cannot see.
constexpr double kResidualMax = 200, kOrthogonalityMax = 100, kEigenvalueMax = 64;

#define CHECK_CUDA(call)                                                                    \
  do {                                                                                      \
    const cudaError_t error_ = (call);                                                      \
    if (error_ != cudaSuccess) {                                                            \
      std::printf("%s:%d %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(2);                                                                         \
    }                                                                                       \
  } while (0)

// ------------------------------------------------------------------ one batch through the stages
template <typename T>
T* poisoned(size_t count) {
  T* p = nullptr;
  CHECK_CUDA(cudaMalloc(&p, std::max<size_t>(count, 1) * sizeof(T)));
  CHECK_CUDA(cudaMemset(p, 0xff, std::max<size_t>(count, 1) * sizeof(T)));
  return p;
}

struct Result {
  std::vector<float> lambda, q;  // [batch][n], [batch][n][n]
  double dc_ms = 0, back_ms = 0;
};

// Reflectors of one matrix, shared by the batch: v[j] as FP16 bits, tau.
struct Reflectors {
  std::vector<__half> v;  // [n][ld]
  std::vector<float> tau;
};
Reflectors reflectors(int n, int ld, bool random_ones, Random& random) {
  Reflectors r{std::vector<__half>(size_t(n) * ld, __float2half(0.f)), std::vector<float>(ld, 0.f)};
  for (int j = 0; j < n; ++j) {  // what a reduction does not write
    for (int i = 0; i < ld; ++i) {
      if (i <= j || i >= n) r.v[size_t(j) * ld + i] = __float2half(NAN);
    }
  }
  for (int j = 0; random_ones && j + 2 < n; ++j) {
    if (j % 37 == 5) continue;  // some are the identity
    double square = 1;
    r.v[size_t(j) * ld + j + 1] = __float2half(1.f);
    const double size = 1 / std::sqrt(double(n - j));
    for (int i = j + 2; i < n; ++i) {
      const __half h = __float2half(float(size * normal(random)));
      r.v[size_t(j) * ld + i] = h;
      square += double(__half2float(h)) * double(__half2float(h));
    }
    r.tau[j] = float(2 / square);
  }
  return r;
}

Result run(const std::vector<Problem>& problems, int n, const Reflectors& r, int timed_runs) {
  const int64_t batch = static_cast<int64_t>(problems.size());
  const Shape shape{batch, n, true};
  const int ld = shape.ld();
  std::vector<float> d(batch * ld, NAN), e(batch * ld, NAN), tau(batch * ld);
  for (int64_t b = 0; b < batch; ++b) {
    std::copy(problems[b].d.begin(), problems[b].d.end(), d.begin() + b * ld);
    std::copy_n(problems[b].e.begin(), n - 1, e.begin() + b * ld);
    std::copy(r.tau.begin(), r.tau.end(), tau.begin() + b * ld);
  }
  const size_t per_v = size_t(n) * ld;
  float *dd = poisoned<float>(batch * ld), *de = poisoned<float>(batch * ld);
  float *dtau = poisoned<float>(batch * ld), *lambda = poisoned<float>(batch * ld);
  float* q = poisoned<float>(batch * n * n);
  __half* v = poisoned<__half>(batch * per_v);
  const size_t z_bytes = tridiagonal_z_bytes(shape);
  const size_t w_bytes = std::max(tridiagonal_dc_bytes(shape), back_transform_bytes(shape));
  char *z = poisoned<char>(z_bytes), *w = poisoned<char>(w_bytes);
  CHECK_CUDA(cudaMemcpy(dd, d.data(), d.size() * 4, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(de, e.data(), e.size() * 4, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(dtau, tau.data(), tau.size() * 4, cudaMemcpyHostToDevice));
  for (int64_t b = 0; b < batch; ++b) {
    CHECK_CUDA(cudaMemcpy(v + b * per_v, r.v.data(), per_v * 2, cudaMemcpyHostToDevice));
  }
  cudaStream_t stream;
  cudaEvent_t mark[3];
  CHECK_CUDA(cudaStreamCreate(&stream));
  for (cudaEvent_t& m : mark) CHECK_CUDA(cudaEventCreate(&m));
  Result result;
  std::vector<float> dc, back;
  for (int i = 0; i < std::max(1, timed_runs); ++i) {
    if (i == 0) CHECK_CUDA(cudaMemset(w, 0xff, w_bytes));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaEventRecord(mark[0], stream));
    CHECK_CUDA(tridiagonal_dc(shape, dd, de, lambda, z, w, stream));
    CHECK_CUDA(cudaEventRecord(mark[1], stream));
    CHECK_CUDA(back_transform(shape, z, Tridiagonal{dd, de, dtau, v}, q, w, stream));
    CHECK_CUDA(cudaEventRecord(mark[2], stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    float a = 0, b = 0;
    CHECK_CUDA(cudaEventElapsedTime(&a, mark[0], mark[1]));
    CHECK_CUDA(cudaEventElapsedTime(&b, mark[1], mark[2]));
    dc.push_back(a);
    back.push_back(b);
  }
  std::sort(dc.begin(), dc.end());
  std::sort(back.begin(), back.end());
  result.dc_ms = dc[dc.size() / 2];
  result.back_ms = back[back.size() / 2];
  std::vector<float> padded(batch * ld);
  result.q.resize(batch * n * n);
  CHECK_CUDA(cudaMemcpy(padded.data(), lambda, padded.size() * 4, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(result.q.data(), q, result.q.size() * 4, cudaMemcpyDeviceToHost));
  for (int64_t b = 0; b < batch; ++b) {
    result.lambda.insert(result.lambda.end(), padded.begin() + b * ld, padded.begin() + b * ld + n);
  }
  for (void* p :
       {(void*)dd, (void*)de, (void*)dtau, (void*)lambda, (void*)q, (void*)v, (void*)z, (void*)w}) {
    CHECK_CUDA(cudaFree(p));
  }
  CHECK_CUDA(cudaStreamDestroy(stream));
  return result;
}

// ------------------------------------------------------------------ checks in FP64
struct Scores {
  double eigenvalue = 0, residual = 0, orthogonality = 0;
  bool ascending = true;
};

// Applies H_0 H_1 ... (or, backwards, its transpose ... H_1 H_0) to the n contiguous vectors in x.
void apply(const Reflectors& r, int n, int ld, bool transposed, std::vector<double>& x) {
  std::vector<double> v(n, 0.0);
  for (int step = 0; step + 2 < n; ++step) {
    const int k = transposed ? step : n - 3 - step;
    if (r.tau[k] == 0) continue;
    double square = 0;
    for (int i = k + 1; i < n; ++i) {
      v[i] = __half2float(r.v[size_t(k) * ld + i]);
      square += v[i] * v[i];
    }
    for (int j = 0; j < n; ++j) {
      double* xj = &x[size_t(j) * n];
      double dot = 0;
      for (int i = k + 1; i < n; ++i) dot += v[i] * xj[i];
      dot *= 2 / square;
      for (int i = k + 1; i < n; ++i) xj[i] -= dot * v[i];
    }
  }
}

double column_norm(const std::vector<double>& x, int n) {
  double norm = 0;
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::fabs(x[size_t(j) * n + i]);
    if (!(sum <= norm)) norm = std::isnan(sum) ? INFINITY : sum;
  }
  return norm;
}

// Residual of A = Q1 T Q1^T as the gate measures it: Q1 (T X - X L) with X = Q1^T Q, over norm1(A).
Scores score(const Problem& p, const float* lambda, const float* q, const Reflectors& r, int ld) {
  const int n = static_cast<int>(p.d.size());
  std::vector<double> x(size_t(n) * n);  // x[j * n + i]: entry i of vector j
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) x[size_t(j) * n + i] = q[size_t(i) * n + j];
  Scores s;
  apply(r, n, ld, true, x);
  std::vector<double> rest(size_t(n) * n), a(size_t(n) * n, 0.0);
  for (int j = 0; j < n; ++j) {
    const double* xj = &x[size_t(j) * n];
    for (int i = 0; i < n; ++i) {
      double y = (double(p.d[i]) - double(lambda[j])) * xj[i];
      if (i) y += double(p.e[i - 1]) * xj[i - 1];
      if (i + 1 < n) y += double(p.e[i]) * xj[i + 1];
      rest[size_t(j) * n + i] = y;
    }
    a[size_t(j) * n + j] = p.d[j];
    if (j + 1 < n) a[size_t(j) * n + j + 1] = a[size_t(j + 1) * n + j] = p.e[j];
    if (j && !(lambda[j] >= lambda[j - 1])) s.ascending = false;
  }
  apply(r, n, ld, false, rest);
  apply(r, n, ld, false, a);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) std::swap(a[size_t(j) * n + i], a[size_t(i) * n + j]);
  apply(r, n, ld, false, a);
  const double norm = column_norm(a, n), residual = column_norm(rest, n);
  double largest = 0, error = 0;
  const std::vector<double> reference = eigenvalues(p);
  for (int j = 0; j < n; ++j) {
    const double gap = std::fabs(double(lambda[j]) - reference[j]);
    error = std::isnan(gap) ? INFINITY : std::max(error, gap);
    largest = std::max(largest, std::fabs(reference[j]));
  }
  s.eigenvalue = largest > 0 ? error / (kEps * largest) : (error > 0 ? INFINITY : 0);
  s.residual = norm > 0 ? residual / (n * kEps * norm) : (residual > 0 ? INFINITY : 0);
  std::vector<double> column(n, 0.0);
  for (int j = 0; j < n; ++j)
    for (int k = 0; k <= j; ++k) {
      double dot = 0;
      for (int i = 0; i < n; ++i) dot += x[size_t(j) * n + i] * x[size_t(k) * n + i];
      if (j == k) dot -= 1;
      if (std::isnan(dot)) dot = INFINITY;
      column[j] += std::fabs(dot);
      if (j != k) column[k] += std::fabs(dot);
    }
  for (double c : column) s.orthogonality = std::max(s.orthogonality, c / (n * kEps));
  return s;
}

bool passes(const Scores& s) {
  return s.ascending && s.eigenvalue <= kEigenvalueMax && s.residual <= kResidualMax &&
         s.orthogonality <= kOrthogonalityMax;
}

// All families at one order as one batch. Returns the number of failures.
int check(int n, uint64_t seed, bool with_reflectors) {
  Random random(seed + n);
  std::vector<Problem> problems;
  for (const std::string& name : kFamilies) problems.push_back(make(name, n, random));
  const int ld = Shape{1, n, true}.ld();
  const Reflectors r = reflectors(n, ld, with_reflectors, random);
  const Result result = run(problems, n, r, 1);
  std::vector<Scores> scores(problems.size());
  std::vector<std::thread> threads;
  for (size_t b = 0; b < problems.size(); ++b) {
    threads.emplace_back([&, b] {
      scores[b] = score(problems[b], &result.lambda[b * n], &result.q[b * n * n], r, ld);
    });
  }
  for (std::thread& t : threads) t.join();
  int failures = 0;
  std::string detail;
  Scores worst;
  for (size_t b = 0; b < problems.size(); ++b) {
    const Scores& s = scores[b];
    worst.eigenvalue = std::max(worst.eigenvalue, s.eigenvalue);
    worst.residual = std::max(worst.residual, s.residual);
    worst.orthogonality = std::max(worst.orthogonality, s.orthogonality);
    char line[160];
    std::snprintf(line, sizeof line, "    %-10s L %.3g residual %.3g orthogonality %.3g%s%s\n",
                  problems[b].name.c_str(), s.eigenvalue, s.residual, s.orthogonality,
                  s.ascending ? "" : " NOT ASCENDING", passes(s) ? "" : "  FAIL");
    if (!passes(s) || s.residual > 0.5 * kResidualMax) detail += line;
    failures += !passes(s);
  }
  // The same matrices in reverse order must give the same bits.
  std::vector<Problem> reversed(problems.rbegin(), problems.rend());
  const Result again = run(reversed, n, r, 1);
  int different = 0;
  for (size_t b = 0; b < problems.size(); ++b) {
    const size_t o = problems.size() - 1 - b;
    different +=
        !std::equal(&result.q[b * n * n], &result.q[b * n * n] + size_t(n) * n,
                    &again.q[o * n * n]) ||
        !std::equal(&result.lambda[b * n], &result.lambda[b * n] + n, &again.lambda[o * n]);
  }
  // A NaN matrix in the middle must leave its neighbours alone.
  std::vector<Problem> bad = problems;
  const size_t victim = problems.size() / 2;
  bad[victim].d[n / 2] = NAN;
  const Result poison = run(bad, n, r, 1);
  int disturbed = 0;
  for (size_t b = 0; b < problems.size(); ++b) {
    if (b == victim) continue;
    disturbed += !std::equal(&result.q[b * n * n], &result.q[b * n * n] + size_t(n) * n,
                             &poison.q[b * n * n]);
  }
  failures += different + disturbed;
  std::printf(
      "n %4d %-10s worst L %8.3g residual %8.3g orthogonality %8.3g  permuted %d  "
      "disturbed %d  %s\n%s",
      n, with_reflectors ? "reflectors" : "T alone", worst.eigenvalue, worst.residual,
      worst.orthogonality, different, disturbed, failures ? "FAIL" : "ok", detail.c_str());
  std::fflush(stdout);
  return failures;
}

void time_shape(int n, int batch, const std::string& family, uint64_t seed) {
  Random random(seed);
  std::vector<Problem> problems;
  for (int b = 0; b < batch; ++b) problems.push_back(make(family, n, random));
  const Reflectors r = reflectors(n, Shape{1, n, true}.ld(), true, random);
  const Result result = run(problems, n, r, 9);
  std::printf("time n %4d x %3d %-9s  divide and conquer %.3f ms  back-transform + NS %.3f ms\n", n,
              batch, family.c_str(), result.dc_ms, result.back_ms);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no CUDA device on this machine\n");
    return 77;
  }
  uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (seed == 0) seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::vector<int> orders = {1,   2,   3,   31,  32,  33,  64,   129,  176,
                             177, 352, 511, 512, 513, 777, 1024, 1025, 2048};
  if (argc > 2) {
    orders.clear();
    for (int i = 2; i < argc; ++i) orders.push_back(std::atoi(argv[i]));
  }
  int failures = 0;
  for (int n : orders) {
    failures += check(n, seed, false);
    if (n <= 1024) failures += check(n, seed, true);  // beyond: the FP64 reference is too slow
  }
  const struct {
    int n, batch;
  } shapes[] = {{176, 40}, {352, 40}, {512, 640}, {1024, 60}, {2048, 8}};
  for (const auto& s : shapes) {
    for (const char* family : {"goe", "clustered"}) time_shape(s.n, s.batch, family, seed);
  }
  std::printf("%d failures\n", failures);
  return failures ? 1 : 0;
}
