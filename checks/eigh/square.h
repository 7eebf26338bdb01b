// square.h: an n x n FP64 matrix under construction, and the orthogonal matrices built into it.
#pragma once

#include <cstdint>
#include <vector>

#include "checks/eigh/random.h"

namespace crucible::eigh {

// Row-major; the families are symmetric, so which way it is stored seldom matters.
class Square {
 public:
  explicit Square(std::int64_t n) : n_(n), values_(static_cast<std::size_t>(n * n), 0.0) {}

  std::int64_t n() const { return n_; }
  double& operator()(std::int64_t i, std::int64_t j) { return values_[i * n_ + j]; }
  double operator()(std::int64_t i, std::int64_t j) const { return values_[i * n_ + j]; }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }

  // Sets a pair, so that the matrix is symmetric by construction.
  void Set(std::int64_t i, std::int64_t j, double value) {
    (*this)(i, j) = value;
    (*this)(j, i) = value;
  }
  // (A + A^T) / 2 in place.
  void Symmetrise();
  void Scale(double factor);
  // D A D for a diagonal D.
  void ScaleBothSides(const std::vector<double>& diagonal);

 private:
  std::int64_t n_;
  std::vector<double> values_;
};

// sym(G), entries of G drawn from N(0,1).
Square SymmetricNormal(std::int64_t n, Random random);

// A Haar-distributed orthogonal matrix: the sign-fixed Q of the QR of a normal G. G itself is never
// factorised: step j of a Householder QR sees n-j fresh independent normals (what earlier
// reflections did to them does not change their distribution), so the reflectors are drawn directly
// (Stewart 1980) and multiplied out by LAPACK. Half the flops, the same distribution.
Square RandomOrthogonal(std::int64_t n, Random random);

// sym(U diag(v) U^T), U from `random`. Two rank-k products of U sqrt|v|, one for each sign, so that
// the result is symmetric by construction; zeros of v cost nothing.
Square FromSpectrum(const std::vector<double>& spectrum, Random random);

// X X^T for a row-major rows x columns X, times `factor`.
Square GramMatrix(const std::vector<double>& x, std::int64_t rows, std::int64_t columns,
                  double factor);

// U T U^T for a symmetric T.
Square Conjugated(const Square& t, Random random);

}  // namespace crucible::eigh
