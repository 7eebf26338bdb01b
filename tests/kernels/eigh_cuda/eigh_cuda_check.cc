// eigh_cuda_check: the public API on a GPU, judged in double on the host.
//
// Every route of heuristics.h once, both triangles, poisoned outputs and workspace, one NaN matrix
// inside the batch. Prints its seed. Exit 0 passed, 1 failed, 77 no device.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "crucible/eigh.h"

namespace {

constexpr double kEps = 1.1920928955078125e-7;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <typename T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) {
    check(cudaMalloc(&data_, std::max<size_t>(count, 1) * sizeof(T)), "cudaMalloc");
    check(cudaMemset(data_, 0xff, count * sizeof(T)), "poison a buffer");
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  T* get() const { return static_cast<T*>(data_); }
  std::vector<T> read() const {
    std::vector<T> host(count_);
    check(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "read");
    return host;
  }
  void write(const std::vector<T>& host) {
    check(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "write");
  }

 private:
  void* data_ = nullptr;
  size_t count_;
};

// max column sum of A Q - Q L over n eps norm1(A), and of Q^T Q - I over n eps.
bool passes(int n, const float* a, const float* l, const float* q) {
  double eigen = 0, orthogonal = 0, norm = 0;
  for (int c = 0; c < n; ++c) {
    double sum = 0, residual = 0, defect = 0;
    for (int r = 0; r < n; ++r) {
      sum += std::fabs(static_cast<double>(a[r * n + c]));
      double product = -static_cast<double>(l[c]) * q[r * n + c], dot = r == c ? -1 : 0;
      for (int k = 0; k < n; ++k) {
        product += static_cast<double>(a[r * n + k]) * q[k * n + c];
        dot += static_cast<double>(q[k * n + r]) * q[k * n + c];
      }
      residual += std::fabs(product);
      defect += std::fabs(dot);
    }
    norm = std::max(norm, sum);
    if (!(residual <= eigen)) eigen = residual;
    if (!(defect <= orthogonal)) orthogonal = defect;
    if (c > 0 && !(l[c] >= l[c - 1])) return false;
  }
  std::printf("  n %d: %.2f of 200, %.2f of 100\n", n, eigen / (n * kEps * norm),
              orthogonal / (n * kEps));
  return eigen <= 200 * n * kEps * norm && orthogonal <= 100 * n * kEps;
}

bool solves(int n, bool upper, std::mt19937* random) {
  constexpr int kBatch = 3, kNan = 1;
  const size_t square = static_cast<size_t>(n) * n;
  std::normal_distribution<float> normal;
  std::vector<float> a(kBatch * square), input;
  for (int b = 0; b < kBatch; ++b) {
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c <= r; ++c) {
        a[b * square + r * n + c] = a[b * square + c * n + r] = normal(*random);
      }
    }
  }
  input = a;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int b = 0; b < kBatch; ++b) {  // the triangle that must not be read
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < r; ++c) input[b * square + (upper ? r * n + c : c * n + r)] = nan;
    }
  }
  input[kNan * square] = nan;
  const int flags = upper ? CRUCIBLE_EIGH_UPPER : 0;
  size_t bytes = 0;
  if (crucible_eigh_workspace(n, kBatch, flags, &bytes) != CRUCIBLE_EIGH_OK) return false;
  Device<float> device_a(a.size()), l(kBatch * n), q(a.size());
  Device<int32_t> info(kBatch);
  Device<char> workspace(bytes);
  device_a.write(input);
  const auto status = crucible_eigh(n, kBatch, device_a.get(), l.get(), q.get(), info.get(),
                                    workspace.get(), bytes, flags, nullptr);
  if (status != CRUCIBLE_EIGH_OK) {
    std::printf("  n %d: %s\n", n, crucible_eigh_status_string(status));
    return false;
  }
  check(cudaDeviceSynchronize(), "solve");
  const auto values = l.read(), vectors = q.read();
  const auto codes = info.read();
  bool good =
      codes[kNan] == 1 && std::isnan(values[kNan * n]) && std::isnan(vectors[kNan * square]);
  for (int b = 0; b < kBatch; ++b) {
    if (b == kNan) continue;
    good = good && codes[b] == 0 && passes(n, &a[b * square], &values[b * n], &vectors[b * square]);
  }
  return good;
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
  std::mt19937 random(seed);
  bool good = true;
  for (int n : {1, 2, 32, 33, 100, 200, 300}) {
    for (bool upper : {false, true}) {
      const bool ok = solves(n, upper, &random);
      if (!ok) std::printf("FAILED: n %d, %s triangle\n", n, upper ? "upper" : "lower");
      good = good && ok;
    }
  }
  return good ? 0 : 1;
}
