// large.h: the knobs of matrices with n > 256. One a line; knobs.toml says what each
// changes and which values go together. The committed values are the plain configuration.
#pragma once

namespace eigh_cpu::large {

inline constexpr int kVector = 1;        // floats a vector, 1 = scalar
inline constexpr int kPanelWidth = 1;    // columns reduced per trailing update
inline constexpr int kSymvHalf = 0;      // 1: A v reads the lower triangle only
inline constexpr int kSymvRows = 1;      // rows of A per pass of A v
inline constexpr int kSymvUnroll = 1;    // vectors per step of a pass
inline constexpr int kTileRows = 2;      // rows of the register tile
inline constexpr int kTileVectors = 1;   // vectors across the register tile
inline constexpr int kGemmKBlock = 64;   // depth of a block of B
inline constexpr int kGemmPack = 0;      // 1: copy a block of B before use
inline constexpr int kBackBlock = 1;     // reflectors per back-transform block
inline constexpr int kBackRows = 4096;   // eigenvectors per back-transform pass
inline constexpr int kLeafSize = 8;      // largest matrix for QL
inline constexpr int kLeafDelay = 0;     // 1: apply a whole QL sweep at once
inline constexpr int kLeafPair = 0;      // 1: two leaves at once, rotation by rotation
inline constexpr int kSecularShort = 0;  // 1: FP32 division and a Newton step for 1 / x
inline constexpr int kRowPad = 0;        // floats added to each row
inline constexpr int kBatchChunk = 0;    // 0: static split, else matrices per grab

}  // namespace eigh_cpu::large
