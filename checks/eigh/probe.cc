#include "checks/eigh/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "checks/eigh/parallel.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

using Doubles = std::vector<double>;

double Dot(const float* row, const double* x, std::int64_t n) {
  double sum[8] = {};
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (int k = 0; k < 8; ++k) sum[k] += static_cast<double>(row[j + k]) * x[j + k];
  for (; j < n; ++j) sum[0] += static_cast<double>(row[j]) * x[j];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void AddRow(double factor, const float* row, std::int64_t n, double* y) {
  for (std::int64_t j = 0; j < n; ++j) y[j] += factor * static_cast<double>(row[j]);
}

// The vectors of the three residuals.
struct Products {
  explicit Products(std::int64_t n)
      : size(static_cast<std::size_t>(n)),
        az(size),
        qz(size),
        qt_az(size),
        qt_z(size),
        qt_qz(size),
        q_lqtz(size) {}
  std::size_t size;
  Doubles az, qz, qt_az, qt_z, qt_qz, q_lqtz;
  double norm = 0;  // norm1(A)
};

Products Form(const Problem& p, const Doubles& z) {
  const std::int64_t n = p.n;
  Products v(n);
  Doubles column_sums(v.size);
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = p.a + i * n;
    v.az[i] = Dot(row, z.data(), n);
    for (std::int64_t j = 0; j < n; ++j) column_sums[j] += std::abs(static_cast<double>(row[j]));
  }
  v.norm = *std::max_element(column_sums.begin(), column_sums.end());
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = p.q + i * n;
    v.qz[i] = Dot(row, z.data(), n);
    AddRow(z[i], row, n, v.qt_z.data());
    AddRow(v.az[i], row, n, v.qt_az.data());
  }
  Doubles scaled(v.size);
  for (std::int64_t j = 0; j < n; ++j) scaled[j] = static_cast<double>(p.l[j]) * v.qt_z[j];
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = p.q + i * n;
    v.q_lqtz[i] = Dot(row, scaled.data(), n);
    AddRow(v.qz[i], row, n, v.qt_qz.data());
  }
  return v;
}

}  // namespace

std::string ProbeMatrix(const Problem& p, Random signs) {
  Margins margins;
  if (std::string reason = JudgeValues(p, &margins); !reason.empty()) return reason;
  Doubles z(static_cast<std::size_t>(p.n));
  for (double& value : z) value = signs.Sign();
  const Products v = Form(p, z);
  double eigen = 0, orthogonal = 0, reconstruction = 0;
  for (std::int64_t i = 0; i < p.n; ++i) {
    eigen = std::max(eigen, std::abs(v.qt_az[i] - p.l[i] * v.qt_z[i]));
    orthogonal = std::max(orthogonal, std::abs(v.qt_qz[i] - z[i]));
    reconstruction = std::max(reconstruction, std::abs(v.q_lqtz[i] - v.az[i]));
  }
  const double unit = static_cast<double>(p.n) * kEps;
  // Where the norm is zero the limit is zero too; FP64 sums of zeros are exact.
  const struct {
    const char* gate;
    double residual, limit, scale;
  } probes[] = {{"eigen equation", eigen, kEigenLimit, v.norm},
                {"orthogonality", orthogonal, kOrthogonalLimit, 1.0},
                {"reconstruction", reconstruction, kReconstructionLimit, v.norm}};
  constexpr double kRounding = 1 + 1e-6;  // of the FP64 sums: an answer at its limit still passes
  for (const auto& probe : probes) {
    if (probe.residual <= kRounding * probe.limit * unit * probe.scale) continue;
    return fmt::format("{} probe: scaled residual at least {:.4g}, limit {}", probe.gate,
                       probe.scale > 0 ? probe.residual / (unit * probe.scale) : INFINITY,
                       probe.scale > 0 ? probe.limit : 0.0);
  }
  return "";
}

std::string ProbeBatch(std::int64_t batch, std::int64_t n, const float* a, const float* l,
                       const float* q, const std::int32_t* info, Random signs, int threads) {
  std::vector<std::string> reasons(static_cast<std::size_t>(batch));
  // Below this size starting a thread costs more than it saves.
  constexpr std::int64_t kElementsPerThread = 1 << 17;
  const std::int64_t worth = std::max<std::int64_t>(1, batch * n * n / kElementsPerThread);
  ParallelFor(batch, static_cast<int>(std::min<std::int64_t>(threads, worth)), [&](std::int64_t i) {
    reasons[i] = info[i] != 0 ? fmt::format("info is {} for a finite matrix, want 0", info[i])
                              : ProbeMatrix({n, a + i * n * n, l + i * n, q + i * n * n},
                                            signs.Stream(static_cast<std::uint64_t>(i)));
  });
  for (std::int64_t i = 0; i < batch; ++i)
    if (!reasons[i].empty()) return fmt::format("matrix {} of {}: {}", i, batch, reasons[i]);
  return "";
}

}  // namespace crucible::eigh
