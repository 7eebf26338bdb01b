// finish_test.cu: what finish() and the re-solve behind it make of eigenvalues that went wrong.
//
// Four matrices, eigenvalues only: right ones, one NaN, a descending pair, and a matrix with NaN in
// it (status 1). The two wrong ones must be flagged and solved again: info 0 and eigenvalues whose
// sum and sum of squares are those of the matrix; the first must keep its bits; the last is NaN
// with info 1. Exit status 1 where that fails, 77 without a device.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "../bench/device.h"
#include "../pipeline.h"

using namespace crucible::eigh;         // NOLINT
using namespace crucible::eigh::bench;  // NOLINT

namespace {

int failures = 0;
void expect(bool good, int n, const char* what) {
  if (good) return;
  std::printf("FAILED: n %d: %s\n", n, what);
  ++failures;
}

void values_only(int n, unsigned seed) {
  constexpr int kBatch = 4, kNaN = 1, kUnsorted = 2, kNotFinite = 3, kBlocks = 2;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const Shape shape{kBatch, n, false};
  std::vector<float> a(static_cast<size_t>(kBatch) * n * n), scaled(kBatch * shape.ld());
  double trace[kBatch] = {}, square[kBatch] = {};
  for (int b = 0; b < kBatch; ++b) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        const float x = uniform(random);
        a[(static_cast<size_t>(b) * n + i) * n + j] = x;
        trace[b] += i == j ? x : 0;
        square[b] += (i == j ? 1.0 : 2.0) * x * x;
      }
    }
    for (int i = 0; i < n; ++i) scaled[b * shape.ld() + i] = static_cast<float>(i);
  }
  scaled[kNaN * shape.ld() + n / 2] = std::nanf("");
  std::swap(scaled[kUnsorted * shape.ld()], scaled[kUnsorted * shape.ld() + n - 1]);
  a[static_cast<size_t>(kNotFinite) * n * n] = std::nanf("");

  Device<float> input(a.size()), lambda_scaled(scaled.size()), lambda(kBatch * n);
  Device<int> exponent(kBatch), status(kBatch), info(kBatch), flags(kBatch);
  Device<char> work(std::max(finish_bytes(shape), solve_general_bytes(shape, kBlocks)));
  input.write(a);
  lambda_scaled.write(scaled);
  exponent.write({0, 0, 0, 0});
  status.write({0, 0, 0, 1});
  check(finish(shape, input.get(), false, lambda_scaled.get(), exponent.get(), status.get(),
               lambda.get(), nullptr, info.get(), flags.get(), work.get(), nullptr),
        "finish");
  check(cudaDeviceSynchronize(), "wait");
  expect(flags.read() == std::vector<int>({0, 1, 1, 0}), n, "the two wrong ones are flagged");
  check(solve_general(shape, input.get(), false, lambda.get(), nullptr, info.get(), flags.get(),
                      kBlocks, work.get(), nullptr),
        "solve again");
  check(cudaDeviceSynchronize(), "wait");
  expect(info.read() == std::vector<int>({0, 0, 0, 1}), n, "info");
  const std::vector<float> values = lambda.read();
  expect(std::memcmp(values.data(), scaled.data(), n * sizeof(float)) == 0, n,
         "a right one keeps its bits");
  expect(std::isnan(values[kNotFinite * n]) && std::isnan(values[kNotFinite * n + n - 1]), n,
         "a matrix with NaN is answered with NaN");
  for (const int b : {kNaN, kUnsorted}) {
    double sum = 0, squares = 0;
    bool ascending = true;
    for (int i = 0; i < n; ++i) {
      const double x = values[b * n + i];
      sum += x;
      squares += x * x;
      ascending = ascending && (i == 0 || x >= values[b * n + i - 1]);
    }
    expect(ascending && std::fabs(sum - trace[b]) < 1e-4 * n &&
               std::fabs(squares - square[b]) < 1e-5 * square[b],
           n, "a flagged one is solved again");
  }
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("skipped: no CUDA device on this machine\n");
    return 77;
  }
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  for (const int n : {33, 200, 513}) values_only(n, seed);
  std::printf("%d failures\n", failures);
  return failures > 0;
}
