// judge.cu: column sums of the three residuals, 32x32 tiles of FP64 products.
#include <cmath>
#include <limits>

#include "device.h"
#include "judge.h"

namespace crucible::eigh::bench {
namespace {

constexpr int kTile = 32, kThreads = 256, kRows = kTile * kTile / kThreads;

struct Input {
  const float *a, *lambda, *q;
  double* sums;  // [batch][4][n]: norm1 parts of A, A Q - Q L, Q^T Q - I, Q L Q^T - A
  int n;
};

__global__ void __launch_bounds__(kThreads) residual_kernel(Input in, int64_t first) {
  __shared__ float a_rk[kTile][kTile + 1], q_kc[kTile][kTile + 1], q_kr[kTile][kTile + 1];
  __shared__ float q_ck[kTile][kTile + 1];
  __shared__ double ql_rk[kTile][kTile + 1];
  __shared__ double total[4][kTile];
  const int64_t matrix = first + blockIdx.y;
  const int n = in.n, c0 = blockIdx.x * kTile, x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const float* a = in.a + matrix * n * n;
  const float* q = in.q + matrix * n * n;
  const float* lambda = in.lambda + matrix * n;
  const auto at = [n](const float* m, int r, int c) {
    return r < n && c < n ? m[static_cast<int64_t>(r) * n + c] : 0.f;
  };
  const auto value_of = [&](int k) { return k < n ? static_cast<double>(lambda[k]) : 0.0; };
  if (threadIdx.x < kTile) {
    for (auto& sum : total) sum[threadIdx.x] = 0;
  }
  const int c = c0 + x;
  for (int r0 = 0; r0 < n; r0 += kTile) {
    double eigen[kRows] = {}, orthogonal[kRows] = {}, product[kRows] = {};
    for (int k0 = 0; k0 < n; k0 += kTile) {
      __syncthreads();
      for (int i = y; i < kTile; i += kThreads / kTile) {
        a_rk[i][x] = at(a, r0 + i, k0 + x);
        ql_rk[i][x] = at(q, r0 + i, k0 + x) * value_of(k0 + x);
        q_kc[i][x] = at(q, k0 + i, c0 + x);
        q_kr[i][x] = at(q, k0 + i, r0 + x);
        q_ck[i][x] = at(q, c0 + i, k0 + x);
      }
      __syncthreads();
      for (int k = 0; k < kTile; ++k) {
        const double right = q_kc[k][x], across = q_ck[x][k];
        for (int i = 0; i < kRows; ++i) {
          const int r = y + i * (kThreads / kTile);
          eigen[i] = fma(static_cast<double>(a_rk[r][k]), right, eigen[i]);
          orthogonal[i] = fma(static_cast<double>(q_kr[k][r]), right, orthogonal[i]);
          product[i] = fma(ql_rk[r][k], across, product[i]);
        }
      }
    }
    __syncthreads();
    for (int i = 0; i < kRows; ++i) {
      const int r = r0 + y + i * (kThreads / kTile);
      if (r >= n || c >= n) continue;
      const double entry = at(a, r, c);
      atomicAdd(&total[0][x], fabs(entry));
      atomicAdd(&total[1][x], fabs(eigen[i] - at(q, r, c) * value_of(c)));
      atomicAdd(&total[2][x], fabs(orthogonal[i] - (r == c)));
      atomicAdd(&total[3][x], fabs(product[i] - entry));
    }
  }
  __syncthreads();
  if (threadIdx.x < kTile && c < n) {
    for (int k = 0; k < 4; ++k) in.sums[(matrix * 4 + k) * n + c] = total[k][threadIdx.x];
  }
}

bool ascending(const float* lambda, int n) {
  double largest = 1;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(lambda[i])) return false;
    largest = std::max(largest, std::fabs(static_cast<double>(lambda[i])));
  }
  for (int i = 1; i < n; ++i) {
    if (!(static_cast<double>(lambda[i]) - lambda[i - 1] >= -100 * n * kEps * largest)) {
      return false;
    }
  }
  return true;
}

// What of the residual is over `rounding`, in units.
double scaled(double residual, double unit, double rounding = 0) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!std::isfinite(residual)) return kInfinity;
  residual = residual > rounding ? residual - rounding : 0;
  return unit > 0 ? residual / unit : (residual > 0 ? kInfinity : 0);
}

}  // namespace

void Verdict::merge(const Verdict& other) {
  eigen = std::max(eigen, other.eigen);
  orthogonal = std::max(orthogonal, other.orthogonal);
  reconstruction = std::max(reconstruction, other.reconstruction);
}

Verdict judge(int64_t batch, int n, const float* a, const float* lambda, const float* q) {
  Device<double> sums(batch * 4 * n);
  const Input in{a, lambda, q, sums.get(), n};
  for (int64_t first = 0; first < batch; first += 65535) {
    const dim3 grid((n + kTile - 1) / kTile,
                    static_cast<unsigned>(std::min<int64_t>(65535, batch - first)));
    residual_kernel<<<grid, kThreads>>>(in, first);
  }
  check(cudaDeviceSynchronize(), "judge a result");
  const std::vector<double> host = sums.read();
  std::vector<float> values(batch * n);
  check(cudaMemcpy(values.data(), lambda, values.size() * 4, cudaMemcpyDeviceToHost), "read L");
  Verdict verdict;
  double worst_part = -1;
  for (int64_t b = 0; b < batch; ++b) {
    double norms[4];
    for (int k = 0; k < 4; ++k) {
      norms[k] = 0;
      for (int c = 0; c < n; ++c) {
        const double sum = host[(b * 4 + k) * n + c];
        if (!(sum <= norms[k])) norms[k] = sum;  // keeps a NaN
        if (std::isnan(sum)) break;
      }
    }
    const double unit = n * kEps;
    // L rounded to subnormals alone, half of 2^-149 each, makes this much of a 1-norm. At n = 2 it
    // exceeds the gate once norm1(A) is below about 1e-41: no FP32 answer would pass.
    const double rounding = norms[0] > 0 ? std::sqrt(n) * 0x1p-150 : 0;
    Verdict v;
    v.eigen = scaled(norms[1], unit * norms[0], rounding);
    v.orthogonal = scaled(norms[2], unit);
    v.reconstruction = scaled(norms[3], unit * norms[0], rounding);
    if (!ascending(&values[b * n], n)) v.eigen = std::numeric_limits<double>::infinity();
    const double part = std::max({v.eigen / kEigenGate, v.orthogonal / kOrthogonalGate,
                                  v.reconstruction / kReconstructionGate});
    if (part > worst_part) worst_part = part, verdict.worst = b;
    verdict.merge(v);
  }
  return verdict;
}

}  // namespace crucible::eigh::bench
