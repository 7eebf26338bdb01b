// single_update.cuh: the trailing update after a panel of the one-block reduction.
#pragma once

#include "single_product.cuh"

namespace crucible::eigh::single {

// A -= V W^T + W V^T on the tiles from column p0 (the end of the panel) on, in shared memory and in
// registers, and on the diagonal; writes out the reflectors of the panel.
template <bool kFirst, int TT>
__device__ __forceinline__ void update_trailing(State& s, int p0, Registers<TT>& registers,
                                                const Output& out) {
  using MM = Map<TT>;
  constexpr int HT = TT / 2, NF = MM::kHeld, JF = MM::kHeldFrom;
  auto& R0 = registers.R0;
  auto& R1 = registers.R1;
  auto& RF = registers.RF;
  const int J0 = p0 >> 4;
  SEC;
  const int lane4 = lane;
  const Context ctx = CTX;
  {
    if (kFirst) {
      uint32_t v1[4], w1[4], v2[4], w2[4];
      load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w, lane4), v1);
      load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w, lane4), w1);
      load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w + HT, lane4), v2);
      load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w + HT, lane4), w2);
#pragma unroll
      for (int J = 0; J < kRegisterColumns; J++)
        if (J >= J0) {
          uint32_t bw[4], bv[4];
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(J, lane4), bw);
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(J, lane4), bv);
          if (w >= J)
            update_tile(R0[J], v1, w1, bw, bv, w == J ? Diagonal::kBothHalves : Diagonal::kNone, g,
                        q);
          if (J < kRegisterColumns - 1)
            update_tile(R1[J < kRegisterColumns - 1 ? J : 0], v2, w2, bw, bv, Diagonal::kNone, g,
                        q);
        }
    }
    if (!kFirst && w + HT >= J0) {
      uint32_t v2[4], w2[4];
      load_tile(shared_address(sm) + MM::U + panel_offset<HT>(w + HT, lane4), v2);
      load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(w + HT, lane4), w2);
#pragma unroll
      for (int k = 0; k < NF; k++)
        if (JF + k >= J0) {
          uint32_t bw[4], bv[4];
          load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(JF + k, lane4), bw);
          load_tile(shared_address(sm) + MM::U + panel_offset<HT>(JF + k, lane4), bv);
          update_tile(RF[k], v2, w2, bw, bv,
                      w + HT == JF + k ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
          if (JF + k <= w + HT) {
            store_tile(shared_address(sm) + tile_index(TT, w + HT, JF + k) * 512, lane4, RF[k]);
          }
        }
    }
#pragma unroll 1
    for (int h = 0; h < 2; h++) {
      const int I = h ? w : TT - 1 - w;
      if (I < J0) continue;
      uint32_t fv[4], fw[4];
      load_tile(shared_address(sm) + MM::U + panel_offset<HT>(I, lane4), fv);
      load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(I, lane4), fw);
      const int Ip = TT - 1 - I;
      const int Jb = kFirst ? max(J0, I >= 16 ? kRegisterColumns - 1 : kRegisterColumns) : J0;
      const int Je =
          kFirst ? I
                 : min(I, JF - 1);  // tiles from column JF on: written by the register forms above
#pragma unroll 2
      for (int J = Jb; J <= Je; J++) {
        const int Jp = TT - 1 - J, u = ((Jp * (Jp + 1)) >> 1) + Ip;
        uint32_t f[4], b1[4], b2[4];
        load_tile(shared_address(sm) + MM::U + 512 + panel_offset<HT>(J, lane4), b1);
        load_tile(shared_address(sm) + MM::U + panel_offset<HT>(J, lane4), b2);
        load_tile(ctx.tiles + u * 512, f);
        update_tile(f, fv, fw, b1, b2, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
        store_tile(shared_address(sm) + u * 512, lane4, f);
      }
    }
  }
  if (r >= p0 - kPanel) out.panel(p0 - kPanel, p0, r, UB);
  if (r >= p0) {
    float sacc = 0;
#pragma unroll
    for (int c = 0; c < 2; c++) {
      uint4 v4 = *(const uint4*)(UB + c * 256), w4 = *(const uint4*)(UB + 512 + c * 256);
      uint32_t vu[4] = {v4.x, v4.y, v4.z, v4.w}, wu[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
      for (int k = 0; k < 4; k++) {
        float2 fv = to_float2(vu[k]), fw = to_float2(wu[k]);
        sacc = fmaf(fv.x, fw.x, sacc);
        sacc = fmaf(fv.y, fw.y, sacc);
      }
    }
    s.dg -= 2.f * sacc;
  }
}

}  // namespace crucible::eigh::single
