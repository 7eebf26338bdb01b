// variant.h: an input with new contents for every call, at the cost of one pass over it.
//
// D A D with random signs D, the batch rotated, sometimes times 2 or 1/2: all exact in FP32, so the
// family, the condition and the work are those of the prepared input, while no bit pattern repeats.
// A library that remembers an answer by pointer, shape or contents gives a wrong one.
#pragma once

#include <cstdint>
#include <vector>

#include "checks/eigh/random.h"

namespace crucible::eigh {

void MakeVariant(std::int64_t batch, std::int64_t n, const std::vector<float>& base, Random random,
                 std::vector<float>* out);

}  // namespace crucible::eigh
