#include "checks/eigh/square.h"

#include <cblas.h>

#include <cmath>

#include "base/result.h"

extern "C" void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda,
                        const double* tau, double* work, const int* lwork, int* info);

namespace crucible::eigh {

void Square::Symmetrise() {
  for (std::int64_t i = 0; i < n_; ++i)
    for (std::int64_t j = 0; j < i; ++j) Set(i, j, 0.5 * ((*this)(i, j) + (*this)(j, i)));
}

void Square::Scale(double factor) {
  for (double& value : values_) value *= factor;
}

void Square::ScaleBothSides(const std::vector<double>& diagonal) {
  for (std::int64_t i = 0; i < n_; ++i)
    for (std::int64_t j = 0; j < n_; ++j) (*this)(i, j) *= diagonal[i] * diagonal[j];
}

Square SymmetricNormal(std::int64_t n, Random random) {
  Square g(n);
  random.FillNormal(g.data(), static_cast<std::size_t>(n * n));
  g.Symmetrise();
  return g;
}

Square RandomOrthogonal(std::int64_t n, Random random) {
  Square q(n);  // column-major here: column j is q.data() + j n, the transpose at the end is free
  std::vector<double> tau(static_cast<std::size_t>(n), 0.0), sign(tau);
  for (std::int64_t j = 0; j < n; ++j) {
    double* x = q.data() + j * n + j;
    const std::int64_t length = n - j;
    random.FillNormal(x, static_cast<std::size_t>(length));
    sign[j] = x[0] < 0 ? -1.0 : 1.0;
    if (length == 1) break;
    // The reflector that maps x to beta e1; beta = R(j,j) has the sign opposite to x[0].
    const double beta = -sign[j] * cblas_dnrm2(static_cast<int>(length), x, 1);
    tau[j] = (beta - x[0]) / beta;
    const double inverse = 1 / (x[0] - beta);
    for (std::int64_t i = 1; i < length; ++i) x[i] *= inverse;
    sign[j] = -sign[j];
  }
  const int order = static_cast<int>(n), work_size = 64 * order;
  std::vector<double> work(static_cast<std::size_t>(work_size));
  int info = 0;
  dorgqr_(&order, &order, &order, q.data(), &order, tau.data(), work.data(), &work_size, &info);
  CRUCIBLE_CHECK(info == 0, "dorgqr takes these arguments");
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) q.data()[j * n + i] *= sign[j];
  return q;
}

namespace {

// upper += factor * X^T X over the rows of X (columns of U, each already scaled).
void AddRankK(Square* upper, const std::vector<double>& rows, double factor) {
  const int n = static_cast<int>(upper->n());
  const int k = static_cast<int>(rows.size()) / n;
  if (k == 0) return;
  cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, n, k, factor, rows.data(), n, 1.0,
              upper->data(), n);
}

void MirrorUpper(Square* a) {
  for (std::int64_t i = 0; i < a->n(); ++i)
    for (std::int64_t j = i + 1; j < a->n(); ++j) (*a)(j, i) = (*a)(i, j);
}

}  // namespace

Square FromSpectrum(const std::vector<double>& spectrum, Random random) {
  const std::int64_t n = static_cast<std::int64_t>(spectrum.size());
  const Square u = RandomOrthogonal(n, random);  // row j is the j-th eigenvector
  std::vector<double> positive, negative;
  for (std::int64_t j = 0; j < n; ++j) {
    if (spectrum[j] == 0) continue;
    std::vector<double>& rows = spectrum[j] > 0 ? positive : negative;
    const double root = std::sqrt(std::abs(spectrum[j]));
    for (std::int64_t i = 0; i < n; ++i) rows.push_back(root * u(j, i));
  }
  Square a(n);
  AddRankK(&a, positive, 1.0);
  AddRankK(&a, negative, -1.0);
  MirrorUpper(&a);
  return a;
}

Square GramMatrix(const std::vector<double>& x, std::int64_t rows, std::int64_t columns,
                  double factor) {
  Square a(rows);
  cblas_dsyrk(CblasRowMajor, CblasUpper, CblasNoTrans, static_cast<int>(rows),
              static_cast<int>(columns), factor, x.data(), static_cast<int>(columns), 0.0, a.data(),
              static_cast<int>(rows));
  MirrorUpper(&a);
  return a;
}

Square Conjugated(const Square& t, Random random) {
  const int n = static_cast<int>(t.n());
  const Square u = RandomOrthogonal(t.n(), random);
  Square ut(t.n()), a(t.n());
  cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, n, n, 1.0, u.data(), n, t.data(), n, 0.0,
              ut.data(), n);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, ut.data(), n, u.data(), n,
              0.0, a.data(), n);
  a.Symmetrise();
  return a;
}

}  // namespace crucible::eigh
