// probe.h: a cheap verification of one output, for the calls inside a timed slot.
//
// With z a vector of random signs kept from the library, three residual vectors are formed in FP64
// (12 n^2 flops instead of 6 n^3):
//   Q^T (A z) - L Q^T z       entry j is at most column j's sum of |A Q - Q L|
//   Q^T (Q z) - z             entry i is at most row i's sum of |Q^T Q - I|
//   Q (L Q^T z) - A z         entry i is at most row i's sum of |Q L Q^T - A|
// Each is held to its gate's own limit, so what passes the gates never fails the probe (up to FP64
// rounding): no false alarm. What the gates reject is seen here when the error is not spread so
// thinly that random signs cancel it: a wrong, stale, swapped or unwritten answer always; an
// answer a few times over the limit often. The harness adds the full gates on a random matrix of a
// random call in every slot, and on every input when it is prepared.
#pragma once

#include <string>

#include "checks/eigh/gates.h"
#include "checks/eigh/random.h"

namespace crucible::eigh {

// Empty when it passes; else the reason. Finite and ascending are judged exactly.
std::string ProbeMatrix(const Problem& problem, Random signs);

std::string ProbeBatch(std::int64_t batch, std::int64_t n, const float* a, const float* l,
                       const float* q, const std::int32_t* info, Random signs, int threads);

}  // namespace crucible::eigh
