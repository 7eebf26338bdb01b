// heuristics.h: which route and which reduction a shape takes, and how many multiprocessors there
// are to share the work. The size of a kernel's template is chosen by n where it is launched.
#pragma once

#include <algorithm>

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
static_assert(kMiddleMax <= kReflectorsMax && kMiddleMax <= kSturmMax);
constexpr int kOneBlockMax = 512, kTwoBlockMax = 1024, kChainMax = 2048;
// eigh32 answers in 19 us but holds one matrix a multiprocessor; solve_small needs 35 us and holds
// about 18.
constexpr int kSmall32BatchesMax = 2;

// Of the current device (of its slice, where the GPU is partitioned); 1 where there is none.
inline int multiprocessors() {
  int device = 0, count = 1;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess;
  return known ? std::max(count, 1) : 1;
}

// The streamed reduction's blocks wait for each other, one a multiprocessor: as many groups of 16
// as are resident at once, at most eight, because more trailing matrices would not stay in L2.
constexpr int kStreamedBlocks = 16, kStreamedGroupsMax = 8;
constexpr int streamed_groups(int multiprocessors) {
  return std::min(multiprocessors / kStreamedBlocks, kStreamedGroupsMax);
}
static_assert(streamed_groups(132) == 8 && streamed_groups(114) == 7 && streamed_groups(78) == 4 &&
                  streamed_groups(16) == 1 && streamed_groups(15) == 0,
              "H100 and H200 SXM, H100 PCIe, H20, a slice, too small a slice");

// The back-transform and the divide and conquer use wgmma, which only sm_90a has.
inline bool device_has_wgmma() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9;
}

inline Route route(const Shape& shape) {
  if (shape.batch == 0 || shape.n == 0) return Route::kEmpty;
  if (shape.n == 32 && shape.vectors && shape.batch <= kSmall32BatchesMax * multiprocessors()) {
    return Route::kSmall32;
  }
  if (shape.n <= kSmallMax) return Route::kSmall;
  if (shape.n <= kRegistersMax) return Route::kSturm;
  if (shape.n <= kMiddleMax) return Route::kMiddle;
  const bool streams = streamed_groups(multiprocessors()) > 0;
  if (shape.n <= (streams ? kChainMax : kTwoBlockMax) && device_has_wgmma()) return Route::kChain;
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
  return multiprocessors() * (shape.n <= 128 ? 4 : (shape.n <= 512 ? 2 : 1));
}

// Blocks of the flagged re-solve: few, to keep the workspace small; it is expected to do nothing.
inline int resolve_blocks_max(const Shape& shape) { return shape.n <= 1024 ? 32 : 8; }

}  // namespace crucible::eigh
