// heuristics.h: which route solves a shape. The only place that compares n or batch to a number.
#pragma once

#include "stages.h"

namespace crucible::eigh {

enum class Route {
  kEmpty,    // nothing to do
  kSmall32,  // eigh32: n = 32 with vectors, one launch
  kGeneral,  // solve_general: one block a matrix, FP32 throughout
  kChain,    // reduce -> tridiagonal_dc -> back_transform -> finish -> flagged re-solve
};

// The chain's reductions keep the matrix on chip up to 512 (one block) and 1024 (two blocks); above
// that the trailing matrix lives in L2 and 16 blocks share it.
constexpr int kChainMin = 96, kOneBlockMax = 512, kTwoBlockMax = 1024, kChainMax = 1024;

inline Route route(const Shape& shape) {
  if (shape.batch == 0 || shape.n == 0) return Route::kEmpty;
  if (shape.n == 32 && shape.vectors) return Route::kSmall32;
#ifdef CRUCIBLE_EIGH_HAVE_CHAIN
  if (shape.n >= kChainMin && shape.n <= kChainMax) return Route::kChain;
#endif
  return Route::kGeneral;
}

enum class Reduction { kOneBlock, kTwoBlocks };

inline Reduction reduction(const Shape& shape) {
  if (shape.n <= kOneBlockMax) return Reduction::kOneBlock;
  return Reduction::kTwoBlocks;
}

// Blocks of the general solver as a route: more than one a multiprocessor while the matrices fit
// L2.
inline int general_blocks_max(const Shape& shape) {
  return shape.n <= 128 ? 132 * 4 : (shape.n <= 512 ? 132 * 2 : 132);
}

// Blocks of the flagged re-solve: few, to keep the workspace small; it is expected to do nothing.
inline int resolve_blocks_max(const Shape& shape) { return shape.n <= 1024 ? 32 : 8; }

}  // namespace crucible::eigh
