// pair_update.cuh: the trailing update after a panel of the two-block reduction.
#pragma once

#include "pair_product.cuh"

namespace crucible::eigh::pair {

// A -= V W^T + W V^T on this block's tiles from column p0 (the end of the panel) on, and the
// diagonal; publishes the columns of the next panel and writes out the reflectors of this one.
template <bool kFirst>
__device__ __forceinline__ void update_trailing(State& s, int panel_start, uint32_t memory,
                                                uint32_t (&cold0)[4][4], uint32_t (&cold1)[4][4],
                                                const Output& out) {
  constexpr int kFirstRow = kFirst ? 0 : 1;
  const int first_block = panel_start >> 4;
  THREAD_PLACE;
  {
    auto publish_tile = [&](int I, int J, const uint32_t* f) {
      publish(panel_buffer(s, panel_start), I, J, first_block, g, q, f);
    };
    uint32_t fv[4][4], fw[4][4];
#pragma unroll
    for (int h = 2 * kFirstRow; h < 4; h++) {
      load_tile(memory + kPanelAt + panel_offset(warp + 16 * h, lane), fv[h]);
      load_tile(memory + kPanelAt + 512 + panel_offset(warp + 16 * h, lane), fw[h]);
    }
    if (kFirst) {
      const uint4* cold_tiles = s.cold_tiles + lane;
      auto update_cold = [&](uint32_t(&f)[4][4], int J) {
        if (J < kCold) {
          const int m = kTiles - J - s.c;
          uint4* p = (uint4*)cold_tiles + (((m * m) >> 2) + ((15 - warp) >> 1)) * 32;
          uint32_t b1[4], b2[4];
          load_tile(memory + kPanelAt + 512 + panel_offset(J, lane), b1);
          load_tile(memory + kPanelAt + panel_offset(J, lane), b2);
#pragma unroll
          for (int h = 0; h < 4; h++)
            if (h >= 2 || J <= warp + 16 * h) {
              update_tile(f[h], fv[h], fw[h], b1, b2,
                          warp + 16 * h == J ? Diagonal::kStrictLower : Diagonal::kNone, g, q);
              __stcg(p + 8 * (3 - h) * 32, make_uint4(f[h][0], f[h][1], f[h][2], f[h][3]));
              if (J <= first_block + 1) publish_tile(warp + 16 * h, J, f[h]);
            }
        }
      };
      int J = first_block + ((first_block ^ warp ^ s.c) & 1);
      load_cold(cold0, cold_tiles, warp, s.c, J);
      load_cold(cold1, cold_tiles, warp, s.c, J + 2);
#pragma unroll 1
      for (; J < kCold; J += 4) {
        update_cold(cold0, J);
        load_cold(cold0, cold_tiles, warp, s.c, J + 4);
        update_cold(cold1, J + 2);
        load_cold(cold1, cold_tiles, warp, s.c, J + 6);
      }
    }
    {
      const int Js = max(first_block, kCold);
#pragma unroll 1
      for (int J = Js + ((Js ^ warp ^ s.c) & 1); J <= warp + 48; J += 2) {
        const int m = kTiles - J - s.c, idx = ((m * m) >> 2) + ((15 - warp) >> 1);
        uint32_t b1[4], b2[4], f[4], f2[4];
        load_tile(memory + kPanelAt + 512 + panel_offset(J, lane), b1);
        load_tile(memory + kPanelAt + panel_offset(J, lane), b2);
        load_tile(memory + idx * 512 + lane * 16, f);
        if (J <= warp + 32) load_tile(memory + (idx + 8) * 512 + lane * 16, f2);
        update_tile(f, fv[3], fw[3], b1, b2,
                    warp + 48 == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
        store_tile(memory + idx * 512, lane, f);
        if (J <= first_block + 1) publish_tile(warp + 48, J, f);
        if (J <= warp + 32) {
          update_tile(f2, fv[2], fw[2], b1, b2,
                      warp + 32 == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
          store_tile(memory + (idx + 8) * 512, lane, f2);
          if (J <= first_block + 1) publish_tile(warp + 32, J, f2);
        }
      }
    }
  }
#pragma unroll
  for (int k = kFirstRow; k < 2; k++) {
    const int r = row + 512 * k;
    if (s.c == k && r >= panel_start - kPanel)
      out.panel(panel_start - kPanel, panel_start, r, PANEL_ROW + 32768 * k);
  }
#pragma unroll
  for (int k = kFirstRow; k < 2; k++)
    if (row + 512 * k >= panel_start)
      s.diagonal_entry[k] -= 2.f * panel_row_product(PANEL_ROW + 32768 * k);
}

}  // namespace crucible::eigh::pair
