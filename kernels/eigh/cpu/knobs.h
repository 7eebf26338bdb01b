// knobs.h: the list of knobs, once, and the rules between them.
//
// Each size class sets every knob in tuning/<class>.h; class_solver.inc turns that file into a
// struct of these constants, and all kernels are templates over it. knobs.toml tells the same
// list, with what each knob changes and the same constraints, to the campaign that tunes them.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_KNOBS_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_KNOBS_H_

#define EIGH_CPU_KNOBS(X)         \
  X(vector, kVector)              \
  X(panel_width, kPanelWidth)     \
  X(symv_half, kSymvHalf)         \
  X(symv_rows, kSymvRows)         \
  X(symv_unroll, kSymvUnroll)     \
  X(tile_rows, kTileRows)         \
  X(tile_vectors, kTileVectors)   \
  X(gemm_k_block, kGemmKBlock)    \
  X(gemm_pack, kGemmPack)         \
  X(back_block, kBackBlock)       \
  X(back_rows, kBackRows)         \
  X(leaf_size, kLeafSize)         \
  X(leaf_delay, kLeafDelay)       \
  X(leaf_pair, kLeafPair)         \
  X(secular_short, kSecularShort) \
  X(row_pad, kRowPad)             \
  X(batch_chunk, kBatchChunk)

#include <initializer_list>

namespace eigh_cpu {

constexpr bool one_of(int value, std::initializer_list<int> allowed) {
  for (int a : allowed) {
    if (a == value) return true;
  }
  return false;
}

// Refuses, while compiling, what knobs.toml refuses before compiling.
template <class K>
constexpr bool check_knobs() {
  static_assert(one_of(K::kVector, {1, 4, 8}));
  static_assert(one_of(K::kPanelWidth, {1, 2, 4, 8, 16, 32, 64}));
  static_assert(one_of(K::kSymvHalf, {0, 1}));
  static_assert(one_of(K::kSymvRows, {1, 2, 4, 8}));
  static_assert(one_of(K::kSymvUnroll, {1, 2, 4}));
  static_assert(one_of(K::kTileRows, {1, 2, 4, 6, 8}));
  static_assert(one_of(K::kTileVectors, {1, 2, 3, 4}));
  static_assert(one_of(K::kGemmKBlock, {32, 64, 128, 256, 512}));
  static_assert(one_of(K::kGemmPack, {0, 1}));
  static_assert(one_of(K::kBackBlock, {1, 4, 8, 16, 32, 64}));
  static_assert(one_of(K::kBackRows, {8, 16, 32, 64, 128, 4096}));
  static_assert(one_of(K::kLeafSize, {4, 8, 16, 32, 64}));
  static_assert(one_of(K::kLeafDelay, {0, 1}));
  static_assert(one_of(K::kLeafPair, {0, 1}));
  static_assert(one_of(K::kSecularShort, {0, 1}));
  static_assert(one_of(K::kRowPad, {0, 8, 16, 32}));
  static_assert(one_of(K::kBatchChunk, {0, 1, 2, 4, 8}));

  static_assert(2 * K::kPanelWidth <= K::kNMax,
                "a panel over half of the largest matrix leaves no trailing update to block");
  static_assert(K::kTileRows * K::kTileVectors + K::kTileVectors + 1 <= 16,
                "accumulators, the row of B and a broadcast must fit 16 vector registers");
  static_assert(K::kSymvRows * K::kSymvUnroll + K::kSymvHalf * K::kSymvRows + 1 <= 16,
                "dot accumulators and, in the half form, a broadcast per row fit 16 registers");
  static_assert(K::kGemmKBlock * K::kTileVectors * K::kVector * 4 <= 24576,
                "a block of B must leave room for A and C in a 32 KiB first-level cache");
  static_assert(K::kBackRows >= K::kTileRows,
                "a group of eigenvectors must fill at least one register tile");
  static_assert(2 * K::kLeafSize <= K::kNMax || K::kLeafPair == 0,
                "a leaf of the largest matrix has no other leaf to be solved beside");
  return true;
}

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_KNOBS_H_
