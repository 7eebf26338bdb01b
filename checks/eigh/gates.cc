#include "checks/eigh/gates.h"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "checks/eigh/parallel.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

using Doubles = std::vector<double>;

double Norm1(const double* a, std::int64_t n) {
  Doubles sums(static_cast<std::size_t>(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) sums[j] += std::abs(a[i * n + j]);
  return *std::max_element(sums.begin(), sums.end());
}

// The residual in units of n eps scale; a zero scale accepts an exact zero alone.
double Scaled(double residual, std::int64_t n, double scale) {
  if (residual == 0) return 0;
  if (!(scale > 0)) return std::numeric_limits<double>::infinity();
  return residual / (static_cast<double>(n) * kEps * scale);
}

std::string DescribeNotFinite(const char* what, const float* values, std::int64_t count) {
  std::int64_t bad = 0, unwritten = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bad += !std::isfinite(values[i]);
    unwritten += std::bit_cast<std::uint32_t>(values[i]) == kUnwrittenBits;
  }
  if (bad == 0) return "";
  if (unwritten > 0)
    return fmt::format("finite: {} of {} {} were never written", unwritten, count, what);
  return fmt::format("finite: {} of {} {} are NaN or infinite", bad, count, what);
}

void Multiply(CBLAS_TRANSPOSE left, CBLAS_TRANSPOSE right, std::int64_t n, const Doubles& a,
              const Doubles& b, double beta, Doubles* c) {
  const int order = static_cast<int>(n);
  cblas_dgemm(CblasRowMajor, left, right, order, order, order, 1.0, a.data(), order, b.data(),
              order, beta, c->data(), order);
}

// The three residual norms; q is used up.
Margins Residuals(const Problem& p) {
  const std::int64_t n = p.n;
  const Doubles a(p.a, p.a + n * n);
  const Doubles q(p.q, p.q + n * n);
  Doubles ql(q);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) ql[i * n + j] *= static_cast<double>(p.l[j]);
  const double norm = Norm1(a.data(), n);
  Margins margins;

  Doubles residual(ql);  // A Q - Q diag(L), up to its sign
  Multiply(CblasNoTrans, CblasNoTrans, n, a, q, -1.0, &residual);
  margins.eigen = Scaled(Norm1(residual.data(), n), n, norm);

  residual = a;  // Q diag(L) Q^T - A
  Multiply(CblasNoTrans, CblasTrans, n, ql, q, -1.0, &residual);
  margins.reconstruction = Scaled(Norm1(residual.data(), n), n, norm);

  std::fill(residual.begin(), residual.end(), 0.0);
  for (std::int64_t i = 0; i < n; ++i) residual[i * n + i] = 1;
  Multiply(CblasTrans, CblasNoTrans, n, q, q, -1.0, &residual);
  margins.orthogonal = Scaled(Norm1(residual.data(), n), n, 1.0);
  return margins;
}

}  // namespace

void Margins::Raise(const Margins& other) {
  ascending = std::max(ascending, other.ascending);
  eigen = std::max(eigen, other.eigen);
  orthogonal = std::max(orthogonal, other.orthogonal);
  reconstruction = std::max(reconstruction, other.reconstruction);
}

std::string JudgeValues(const Problem& p, Margins* margins) {
  std::string reason = DescribeNotFinite("eigenvalues", p.l, p.n);
  if (reason.empty())
    reason = DescribeNotFinite("entries of the eigenvector matrix", p.q, p.n * p.n);
  if (!reason.empty()) return reason;
  double largest = 1, drop = 0;
  std::int64_t where = 0;
  for (std::int64_t i = 0; i < p.n; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(p.l[i])));
    if (i == 0) continue;
    const double fall = static_cast<double>(p.l[i - 1]) - p.l[i];
    if (fall > drop) drop = fall, where = i;
  }
  const double scaled = Scaled(drop, p.n, largest);
  margins->ascending = std::max(margins->ascending, scaled);
  if (scaled > kAscendingLimit)
    return fmt::format(
        "ascending: eigenvalue {} is {:.9g} after {:.9g}: scaled drop {:.4g}, limit {}", where,
        p.l[where], p.l[where - 1], scaled, kAscendingLimit);
  return "";
}

Verdict JudgeMatrix(const Problem& problem) {
  Verdict verdict;
  verdict.reason = JudgeValues(problem, &verdict.margins);
  if (verdict.reason.empty()) {
    const Margins residuals = Residuals(problem);
    verdict.margins.Raise(residuals);
    const struct {
      const char* gate;
      double value, limit;
    } gates[] = {
        {"eigen equation norm1(A Q - Q L)", residuals.eigen, kEigenLimit},
        {"orthogonality norm1(Q^T Q - I)", residuals.orthogonal, kOrthogonalLimit},
        {"reconstruction norm1(Q L Q^T - A)", residuals.reconstruction, kReconstructionLimit}};
    for (const auto& gate : gates) {
      if (gate.value <= gate.limit) continue;  // NaN fails too
      verdict.reason = fmt::format("{}: scaled residual {:.4g}, limit {}", gate.gate, gate.value,
                                   std::isinf(gate.value) ? 0.0 : gate.limit);
      break;
    }
  }
  verdict.pass = verdict.reason.empty();
  return verdict;
}

Verdict JudgeBatch(std::int64_t batch, std::int64_t n, const float* a, const float* l,
                   const float* q, const std::int32_t* info, int threads,
                   std::optional<std::int64_t> skip) {
  std::vector<Verdict> verdicts(static_cast<std::size_t>(batch));
  const SingleThreadedBlas single;
  ParallelFor(batch, threads, [&](std::int64_t i) {
    if (skip == i) return;
    verdicts[i] = JudgeMatrix({n, a + i * n * n, l + i * n, q + i * n * n});
    if (verdicts[i].pass && info[i] != 0) {
      verdicts[i].pass = false;
      verdicts[i].reason = fmt::format("info is {} for a finite matrix, want 0", info[i]);
    }
  });
  Verdict all;
  for (std::int64_t i = 0; i < batch; ++i) {
    if (skip == i) continue;
    for (const auto& [gate, which] :
         {std::pair(&Margins::ascending, &WorstMatrices::ascending),
          std::pair(&Margins::eigen, &WorstMatrices::eigen),
          std::pair(&Margins::orthogonal, &WorstMatrices::orthogonal),
          std::pair(&Margins::reconstruction, &WorstMatrices::reconstruction)})
      if (all.worst.*which < 0 || verdicts[i].margins.*gate > all.margins.*gate)
        all.worst.*which = i;
    all.margins.Raise(verdicts[i].margins);
    if (!verdicts[i].pass && all.pass) {
      all.pass = false;
      all.reason = fmt::format("matrix {} of {}: {}", i, batch, verdicts[i].reason);
    }
  }
  return all;
}

}  // namespace crucible::eigh
