// back_pack.cuh: reflectors to swizzled 64x64 tiles with the compact-WY factor of every 64.
//
// Layouts: see back_transform.cu. One block a panel and matrix.
#pragma once

#include <cuda_fp16.h>

#include "padded_order.h"
#include "partial_barrier.cuh"
#include "wgmma_ops.cuh"

namespace crucible::eigh::back {

constexpr int kTileBytes = 8192;  // bytes of a 64x64 FP16 tile
__device__ __forceinline__ unsigned pack_half2(float a, float b) {
  __half2 h = __floats2half2_rn(a, b);
  return *(unsigned*)&h;
}
__device__ __forceinline__ float2 unpack_half2(unsigned u) { return __half22float2(*(__half2*)&u); }
// Packed V of one matrix: for panel j: [T tile][tile r=j][tile r=j+1]...; start of panel j in
// tiles:
__host__ __device__ __forceinline__ int panel_start(int j, int NB) {
  return j * (NB + 1) - j * (j - 1) / 2;
}
// A V tile: line p (position of a matrix row), 64 reflectors contiguous, 128-byte swizzle.
// position p <-> row within the block (so that a thread's A fragments are 16 contiguous bytes of a
// Z column)
__device__ __forceinline__ int row_of_pos(int p) {
  int q = p >> 4, h = (p >> 3) & 1, t = (p >> 1) & 3, e = p & 1;
  return 32 * (q >> 1) + 8 * t + 4 * (q & 1) + 2 * h + e;
}

// V [b][column][row] of stages.h, of which only rows column + 1 .. nv - 1 are read, -> packed tiles
// and T; two warpgroups take alternate row blocks.
__global__ __launch_bounds__(256) void pack_kernel(const __half* __restrict__ V,
                                                   uint8_t* __restrict__ Vp, int n, int nv,
                                                   int ld) {
  __shared__ __align__(1024) uint8_t tiles[2 * kTileBytes];
  __shared__ __align__(16) float U[64][68];
  __shared__ float inv[64];
  const int NB = n / 64, j = blockIdx.x, b = blockIdx.y, tid = threadIdx.x, wg = tid >> 7,
            wt = tid & 127;
  uint8_t* tile = tiles + wg * kTileBytes;
  const int w = wt >> 5, lane = wt & 31;
  const __half* Vb = V + (size_t)b * nv * ld;
  uint8_t* out =
      Vp + (size_t)b * (panel_start(NB, NB)) * kTileBytes + (size_t)panel_start(j, NB) * kTileBytes;
  float S[32];
#pragma unroll
  for (int i = 0; i < 32; i++) S[i] = 0.f;
  __half v[4][8];  // item (chunk, line half): warp w: half hf=w&1, chunks (w>>1)*4 .. +3
  const int p = 32 * (w & 1) + lane, row = row_of_pos(p), ch0 = (w >> 1) * 4;
  auto load = [&](int r) {
#pragma unroll
    for (int c = 0; c < 4; c++)
#pragma unroll
      for (int x = 0; x < 8; x++) {
        int col = 64 * j + 8 * (ch0 + c) + x, rr = 64 * r + row;
        v[c][x] = (rr > col && rr < nv) ? Vb[(size_t)col * ld + rr] : __half(0.f);
      }
  };
  if (j + wg < NB) load(j + wg);
  for (int first = j; first < NB; first += 2) {
    const int r = first + wg;
    if (r >= NB) {
      absent_from<2>();
      break;
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
      unsigned u[4];
#pragma unroll
      for (int x = 0; x < 4; x++) {
        __half2 h = __halves2half2(v[c][2 * x], v[c][2 * x + 1]);
        u[x] = *(unsigned*)&h;
      }
      uint4 q = make_uint4(u[0], u[1], u[2], u[3]);
      int sw = p * 128 + (((ch0 + c) ^ (p & 7)) << 4);
      *(uint4*)(tile + sw) = q;
    }
    if (r + 2 < NB) load(r + 2);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    partial_wait_at<128>(1 + wg);
    uint64_t d = matrix_descriptor(shared_address(tile));
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < 4; q++) ss64_tt(S, d + q * 128, d + q * 128);
    wgmma_commit();
    if (wt == 0)
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group "
          "[%0],[%1],%2;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(
              out + (size_t)(1 + r - j) * kTileBytes),
          "r"(shared_address(tile)), "r"(kTileBytes)
          : "memory");
    wgmma_wait<0>();
    partial_wait_at<128>(1 + wg);
  }
  const int g = lane >> 2, t = lane & 3;
  if (wg == 0) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      U[16 * w + g][8 * i + 2 * t] = S[4 * i];
      U[16 * w + g][8 * i + 2 * t + 1] = S[4 * i + 1];
      U[16 * w + g + 8][8 * i + 2 * t] = S[4 * i + 2];
      U[16 * w + g + 8][8 * i + 2 * t + 1] = S[4 * i + 3];
    }
  }
  __syncthreads();
  if (wg == 1) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      U[16 * w + g][8 * i + 2 * t] += S[4 * i];
      U[16 * w + g][8 * i + 2 * t + 1] += S[4 * i + 1];
      U[16 * w + g + 8][8 * i + 2 * t] += S[4 * i + 2];
      U[16 * w + g + 8][8 * i + 2 * t + 1] += S[4 * i + 3];
    }
  }
  __syncthreads();
  if (tid < 64) {
    float s = U[tid][tid];
    inv[tid] = s > 0.f ? 2.f / s : 1.f;
  }
  __syncthreads();
  if (tid < 64) {  // column tid of inv(U), U = striu(S)+diag(S)/2
    int c = tid;
    float x[64];
#pragma unroll
    for (int i = 63; i >= 0; i--) {
      float s0 = (i == c) ? 1.f : 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
#pragma unroll
      for (int l = (i + 1) & ~3; l < 64; l += 4) {
        float4 u = *(const float4*)&U[i][l];
        if (l > i) s0 = fmaf(-u.x, x[l], s0);
        if (l + 1 > i) s1 = fmaf(-u.y, x[l + 1], s1);
        if (l + 2 > i) s2 = fmaf(-u.z, x[l + 2], s2);
        if (l + 3 > i) s3 = fmaf(-u.w, x[l + 3], s3);
      }
      x[i] = (i <= c) ? ((s0 + s1) + (s2 + s3)) * inv[i] : 0.f;
    }
#pragma unroll
    for (int i = 0; i < 64; i++)
      *(__half*)(tiles + i * 128 + ((((c >> 3) ^ (i & 7))) << 4) + (c & 7) * 2) =
          __float2half_rn(x[i]);
  }
  __syncthreads();
  uint4* o = (uint4*)out;
#pragma unroll
  for (int i = 0; i < 2; i++) o[tid + 256 * i] = ((uint4*)tiles)[tid + 256 * i];
}

}  // namespace crucible::eigh::back
