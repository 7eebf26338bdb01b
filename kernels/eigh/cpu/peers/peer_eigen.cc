// peer_eigen.cc: Eigen's SelfAdjointEigenSolver, compiled for this machine's CPU.
#include <Eigen/Eigenvalues>

#include "peer_batch.h"

namespace {

const char* peer_configuration() { return "{\"peer\":\"Eigen SelfAdjointEigenSolver\"}"; }

void peer_start() {}

// Eigen allocates for itself; a call that needs no scratch still gets a cache line.
size_t peer_bytes(int) { return 64; }

int peer_solve(int n, const float* a, float* values, float* vectors, void*) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  thread_local Eigen::SelfAdjointEigenSolver<Eigen::MatrixXf> solver;
  solver.compute(Eigen::Map<const RowMajor>(a, n, n));
  if (solver.info() != Eigen::Success) return 1;
  Eigen::Map<Eigen::VectorXf>(values, n) = solver.eigenvalues();
  Eigen::Map<RowMajor>(vectors, n, n) = solver.eigenvectors();
  return 0;
}

}  // namespace
