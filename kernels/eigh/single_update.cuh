// single_update.cuh: the trailing update after a panel of the one-block reduction.
#pragma once

#include "single_product.cuh"

namespace crucible::eigh::single {

// A -= V W^T + W V^T on the tiles from column p0 (the end of the panel) on, in shared memory and in
// registers, and on the diagonal; writes out the reflectors of the panel.
template <bool kFirst, int TT>
__device__ __forceinline__ void update_trailing(State& s, int panel_start, Registers<TT>& registers,
                                                const Output& out) {
  using Memory = MemoryMap<TT>;
  constexpr int kHalf = TT / 2, kHeld = Memory::kHeld, kHeldFrom = Memory::kHeldFrom;
  auto& first_upper = registers.first_upper;
  auto& first_lower = registers.first_lower;
  auto& held = registers.held;
  const int first_block = panel_start >> 4;
  THREAD_PLACE;
  const Context ctx = PRODUCT_CONTEXT;
  {
    if (kFirst) {
      uint32_t v1[4], pivot_w[4], v2[4], w2[4];
      load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(warp, lane), v1);
      load_tile(shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(warp, lane),
                pivot_w);
      load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(warp + kHalf, lane),
                v2);
      load_tile(
          shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(warp + kHalf, lane),
          w2);
#pragma unroll
      for (int J = 0; J < kRegisterColumns; J++)
        if (J >= first_block) {
          uint32_t w_coefficients[4], v_coefficients[4];
          load_tile(shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(J, lane),
                    w_coefficients);
          load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(J, lane),
                    v_coefficients);
          if (warp >= J)
            update_tile(first_upper[J], v1, pivot_w, w_coefficients, v_coefficients,
                        warp == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
          if (J < kRegisterColumns - 1)
            update_tile(first_lower[J < kRegisterColumns - 1 ? J : 0], v2, w2, w_coefficients,
                        v_coefficients, Diagonal::kNone, g, q);
        }
    }
    if (!kFirst && warp + kHalf >= first_block) {
      uint32_t v2[4], w2[4];
      load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(warp + kHalf, lane),
                v2);
      load_tile(
          shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(warp + kHalf, lane),
          w2);
#pragma unroll
      for (int k = 0; k < kHeld; k++)
        if (kHeldFrom + k >= first_block) {
          uint32_t w_coefficients[4], v_coefficients[4];
          load_tile(shared_address(sm) + Memory::kPanelAt + 512 +
                        panel_offset<kHalf>(kHeldFrom + k, lane),
                    w_coefficients);
          load_tile(
              shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(kHeldFrom + k, lane),
              v_coefficients);
          update_tile(held[k], v2, w2, w_coefficients, v_coefficients,
                      warp + kHalf == kHeldFrom + k ? Diagonal::kBothHalves : Diagonal::kNone, g,
                      q);
          if (kHeldFrom + k <= warp + kHalf) {
            store_tile(shared_address(sm) + tile_index(TT, warp + kHalf, kHeldFrom + k) * 512, lane,
                       held[k]);
          }
        }
    }
#pragma unroll 1
    for (int h = 0; h < 2; h++) {
      const int I = h ? warp : TT - 1 - warp;
      if (I < first_block) continue;
      uint32_t fv[4], fw[4];
      load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(I, lane), fv);
      load_tile(shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(I, lane), fw);
      const int Ip = TT - 1 - I;
      const int Jb = kFirst ? max(first_block, I >= 16 ? kRegisterColumns - 1 : kRegisterColumns)
                            : first_block;
      const int Je =
          kFirst ? I
                 : min(I, kHeldFrom -
                              1);  // tiles from column JF on: written by the register forms above
#pragma unroll 2
      for (int J = Jb; J <= Je; J++) {
        const int Jp = TT - 1 - J, u = ((Jp * (Jp + 1)) >> 1) + Ip;
        uint32_t f[4], b1[4], b2[4];
        load_tile(shared_address(sm) + Memory::kPanelAt + 512 + panel_offset<kHalf>(J, lane), b1);
        load_tile(shared_address(sm) + Memory::kPanelAt + panel_offset<kHalf>(J, lane), b2);
        load_tile(ctx.tiles + u * 512, f);
        update_tile(f, fv, fw, b1, b2, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
        store_tile(shared_address(sm) + u * 512, lane, f);
      }
    }
  }
  if (row >= panel_start - kPanel) out.panel(panel_start - kPanel, panel_start, row, PANEL_ROW);
  if (row >= panel_start) s.diagonal_entry -= 2.f * panel_row_product(PANEL_ROW);
}

}  // namespace crucible::eigh::single
