// heuristics.h: which route solves a shape. The only place that compares n or batch to a number.
#pragma once

#include "sturm_stages.h"

namespace crucible::eigh {

enum class Route {
  kEmpty,    // nothing to do
  kSmall,    // solve_small: n <= 32, a few lanes a matrix, one launch
  kSmall32,  // eigh32: n = 32 with vectors, one block a matrix, one launch
  kSturm,    // reduce_registers -> sturm_solve -> apply_reflectors -> finish -> re-solve
  kMiddle,   // the same behind reduce (FP16 tiles)
  kChain,    // reduce -> tridiagonal_dc -> back_transform -> finish -> flagged re-solve
  kGeneral,  // solve_general: one block a matrix, FP32 throughout
};

// Up to 192 the FP32 square fits the registers of a block. Up to kMiddleMax FP32 eigenvectors of T
// cost no more than the FP16 ones of the chain, whose rounding would be felt (docs/eigh.md). The
// FP16 reductions keep the matrix on chip up to 512 (one block) and 1024 (two blocks); above that
// the trailing matrix lives in L2 and 16 blocks share it.
constexpr int kSmallMax = 32, kMiddleMax = 384;
constexpr int kOneBlockMax = 512, kTwoBlockMax = 1024, kChainMax = 2048;
// eigh32 answers in 19 us but holds one matrix a multiprocessor; solve_small needs 35 us and holds
// about 18.
constexpr int kSmall32BatchMax = 264;

// The back-transform and the divide and conquer use wgmma, which only sm_90a has.
inline bool device_has_wgmma() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9;
}

inline Route route(const Shape& shape) {
  if (shape.batch == 0 || shape.n == 0) return Route::kEmpty;
  if (shape.n == 32 && shape.vectors && shape.batch <= kSmall32BatchMax) return Route::kSmall32;
  if (shape.n <= kSmallMax) return Route::kSmall;
  if (shape.n <= kRegistersMax) return Route::kSturm;
  if (shape.n <= kMiddleMax) return Route::kMiddle;
  if (shape.n <= kChainMax && device_has_wgmma()) return Route::kChain;
  return Route::kGeneral;
}

enum class Reduction { kOneBlock, kTwoBlocks, kStreamed };

inline Reduction reduction(const Shape& shape) {
  if (shape.n <= kOneBlockMax) return Reduction::kOneBlock;
  return shape.n <= kTwoBlockMax ? Reduction::kTwoBlocks : Reduction::kStreamed;
}

// Blocks of the general solver as a route: more than one a multiprocessor while the matrices fit
// L2.
inline int general_blocks_max(const Shape& shape) {
  return shape.n <= 128 ? 132 * 4 : (shape.n <= 512 ? 132 * 2 : 132);
}

// Blocks of the flagged re-solve: few, to keep the workspace small; it is expected to do nothing.
inline int resolve_blocks_max(const Shape& shape) { return shape.n <= 1024 ? 32 : 8; }

}  // namespace crucible::eigh
