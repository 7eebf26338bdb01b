// judge.h: the gates of the public problem, in FP64 on the device.
#pragma once

#include <cstdint>

namespace crucible::eigh::bench {

constexpr double kEps = 0x1p-23;
constexpr double kEigenGate = 200, kOrthogonalGate = 100, kReconstructionGate = 400;

// Worst over the batch, scaled: divided by n eps norm1(A), or n eps for orthogonality, after what
// rounding L to subnormals makes alone (sqrt(n) 2^-150) is taken off. Infinite where an entry is not
// finite, L is not ascending, or a zero matrix is not answered exactly.
struct Verdict {
  double eigen = 0, orthogonal = 0, reconstruction = 0;
  int64_t worst = -1;  // the matrix with the largest fraction of a gate
  bool passes() const {
    return eigen <= kEigenGate && orthogonal <= kOrthogonalGate &&
           reconstruction <= kReconstructionGate;
  }
  void merge(const Verdict& other);
};

// a, q [batch][n][n] row-major, lambda [batch][n], on the device.
Verdict judge(int64_t batch, int n, const float* a, const float* lambda, const float* q);

}  // namespace crucible::eigh::bench
