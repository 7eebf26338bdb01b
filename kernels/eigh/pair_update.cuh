// pair_update.cuh: the trailing update after a panel of the two-block reduction.
#pragma once

#include "pair_product.cuh"

namespace crucible::eigh::pair {

// A -= V W^T + W V^T on this block's tiles from column p0 (the end of the panel) on, and the
// diagonal; publishes the columns of the next panel and writes out the reflectors of this one.
template <bool kFirst>
__device__ __forceinline__ void update_trailing(State& s, int p0, uint32_t smb,
                                                uint32_t (&F0)[4][4], uint32_t (&F1)[4][4],
                                                const Output& out) {
  constexpr int S0 = kFirst ? 0 : 1;
  const int J0 = p0 >> 4;
  SEC;
  const int lane4 = lane;
  {
    auto pbw = [&](int I, int J, const uint32_t* f) {
      publish(panel_buffer(s, p0), I, J, J0, g, q, f);
    };
    uint32_t fv[4][4], fw[4][4];
#pragma unroll
    for (int h = 2 * S0; h < 4; h++) {
      load_tile(smb + oU + panel_offset(w + 16 * h, lane4), fv[h]);
      load_tile(smb + oU + 512 + panel_offset(w + 16 * h, lane4), fw[h]);
    }
    if (kFirst) {
      const uint4* gt = s.gt + lane4;
      auto proc = [&](uint32_t(&f)[4][4], int J) {
        if (J < kCold) {
          const int m = kTiles - J - s.c;
          uint4* p = (uint4*)gt + (((m * m) >> 2) + ((15 - w) >> 1)) * 32;
          uint32_t b1[4], b2[4];
          load_tile(smb + oU + 512 + panel_offset(J, lane4), b1);
          load_tile(smb + oU + panel_offset(J, lane4), b2);
#pragma unroll
          for (int h = 0; h < 4; h++)
            if (h >= 2 || J <= w + 16 * h) {
              update_tile(f[h], fv[h], fw[h], b1, b2,
                          w + 16 * h == J ? Diagonal::kStrictLower : Diagonal::kNone, g, q);
              __stcg(p + 8 * (3 - h) * 32, make_uint4(f[h][0], f[h][1], f[h][2], f[h][3]));
              if (J <= J0 + 1) pbw(w + 16 * h, J, f[h]);
            }
        }
      };
      int J = J0 + ((J0 ^ w ^ s.c) & 1);
      load_cold(F0, gt, w, s.c, J);
      load_cold(F1, gt, w, s.c, J + 2);
#pragma unroll 1
      for (; J < kCold; J += 4) {
        proc(F0, J);
        load_cold(F0, gt, w, s.c, J + 4);
        proc(F1, J + 2);
        load_cold(F1, gt, w, s.c, J + 6);
      }
    }
    {
      const int Js = max(J0, kCold);
#pragma unroll 1
      for (int J = Js + ((Js ^ w ^ s.c) & 1); J <= w + 48; J += 2) {
        const int m = kTiles - J - s.c, idx = ((m * m) >> 2) + ((15 - w) >> 1);
        uint32_t b1[4], b2[4], f[4], f2[4];
        load_tile(smb + oU + 512 + panel_offset(J, lane4), b1);
        load_tile(smb + oU + panel_offset(J, lane4), b2);
        load_tile(smb + idx * 512 + lane4 * 16, f);
        if (J <= w + 32) load_tile(smb + (idx + 8) * 512 + lane4 * 16, f2);
        update_tile(f, fv[3], fw[3], b1, b2, w + 48 == J ? Diagonal::kBothHalves : Diagonal::kNone,
                    g, q);
        store_tile(smb + idx * 512, lane4, f);
        if (J <= J0 + 1) pbw(w + 48, J, f);
        if (J <= w + 32) {
          update_tile(f2, fv[2], fw[2], b1, b2,
                      w + 32 == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q);
          store_tile(smb + (idx + 8) * 512, lane4, f2);
          if (J <= J0 + 1) pbw(w + 32, J, f2);
        }
      }
    }
  }
#pragma unroll
  for (int k = S0; k < 2; k++) {
    const int r = ra + 512 * k;
    if (s.c == k && r >= p0 - kPanel) out.panel(p0 - kPanel, p0, r, UBA + 32768 * k);
  }
#pragma unroll
  for (int k = S0; k < 2; k++)
    if (ra + 512 * k >= p0) {
      float sacc = 0;
#pragma unroll
      for (int c = 0; c < 2; c++) {
        uint4 v4 = *(const uint4*)(UBA + 32768 * k + c * 256),
              w4 = *(const uint4*)(UBA + 32768 * k + 512 + c * 256);
        uint32_t vu[4] = {v4.x, v4.y, v4.z, v4.w}, wu[4] = {w4.x, w4.y, w4.z, w4.w};
#pragma unroll
        for (int z = 0; z < 4; z++) {
          float2 fv = to_float2(vu[z]), fw = to_float2(wu[z]);
          sacc = fmaf(fv.x, fw.x, sacc);
          sacc = fmaf(fv.y, fw.y, sacc);
        }
      }
      s.dg[k] -= 2.f * sacc;
    }
}

}  // namespace crucible::eigh::pair
