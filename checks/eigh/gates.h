// gates.h: is (L, Q) an eigendecomposition of A? Five gates in FP64 on the original FP32 input.
//
// An eigendecomposition is not unique (signs flip, clustered subspaces rotate), so only identities
// are judged. eps = 2^-23, norms are L1 (largest absolute column sum):
//   finite          every entry of Q and L is finite
//   ascending       L[i+1] - L[i] >= -100 n eps max(1, max|L|)
//   eigen           norm1(A Q - Q diag(L))     <= 200 n eps norm1(A)
//   orthogonal      norm1(Q^T Q - I)           <= 100 n eps
//   reconstruction  norm1(Q diag(L) Q^T - A)   <= 400 n eps norm1(A)
// A margin is the residual over (n eps scale): its limit is the factor. Where the scale is zero the
// residual must be exactly zero. Pure; threads only inside the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crucible::eigh {

inline constexpr double kAscendingLimit = 100;
inline constexpr double kEigenLimit = 200;
inline constexpr double kOrthogonalLimit = 100;
inline constexpr double kReconstructionLimit = 400;

// What an output float holds before a call: a quiet NaN with a payload of its own, so that an entry
// that was never written is told from one that was computed as NaN.
inline constexpr std::uint32_t kUnwrittenBits = 0x7fc5a5a5u;

struct Margins {
  double ascending = 0, eigen = 0, orthogonal = 0, reconstruction = 0;
  void Raise(const Margins& other);  // the larger of each
};

// For each gate the matrix of a batch that its margin is of; -1: none was judged.
struct WorstMatrices {
  std::int64_t ascending = -1, eigen = -1, orthogonal = -1, reconstruction = -1;
};

struct Verdict {
  bool pass = true;
  Margins margins;      // of the worst matrix, gate by gate …
  WorstMatrices worst;  // … and which that is
  std::string reason;   // of the first matrix that fails, in words and numbers
};

// One problem and its answer, not owned: a and q are n x n row-major, l has n entries.
struct Problem {
  std::int64_t n;
  const float* a;
  const float* l;
  const float* q;
};

// All five gates: 6 n^3 flops.
Verdict JudgeMatrix(const Problem& problem);

// Every matrix of a batch (l: batch x n, q: batch x n x n), except `skip`; `info` must be 0.
Verdict JudgeBatch(std::int64_t batch, std::int64_t n, const float* a, const float* l,
                   const float* q, const std::int32_t* info, int threads,
                   std::optional<std::int64_t> skip = std::nullopt);

// Finite and ascending alone; empty when both hold. Raises margins->ascending.
std::string JudgeValues(const Problem& problem, Margins* margins);

}  // namespace crucible::eigh
