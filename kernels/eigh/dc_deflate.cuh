// dc_deflate.cuh: deflation (LAPACK slaed2 tests), rotation of deflated pairs, compaction.
#pragma once

#include "dc_node.cuh"

namespace crucible::eigh {
namespace dc {

// A float as an unsigned that orders the same way.
__device__ __forceinline__ unsigned ordered_key(float f) {
  unsigned u = __float_as_uint(f);
  return u ^ ((u >> 31) ? 0xffffffffu : 0x80000000u);
}
// Sum of v over the threads before this one; tot: over all. sh holds 33. Contains three barriers.
__device__ __forceinline__ u64 exclusive_scan(u64 v, u64* sh, u64& tot) {  // sh[33]
  int ln = threadIdx.x & 31, wp = threadIdx.x >> 5, nw = blockDim.x >> 5;
  u64 x = v;
  for (int o = 1; o < 32; o <<= 1) {
    u64 y = __shfl_up_sync(~0u, x, o);
    if (ln >= o) x += y;
  }
  __syncthreads();
  if (ln == 31) sh[wp] = x;
  __syncthreads();
  if (wp == 0) {
    u64 t = ln < nw ? sh[ln] : 0, s = t;
    for (int o = 1; o < 32; o <<= 1) {
      u64 y = __shfl_up_sync(~0u, s, o);
      if (ln >= o) s += y;
    }
    if (ln < nw) sh[ln] = s - t;
    if (ln == 31) sh[32] = s;
  }
  __syncthreads();
  tot = sh[32];
  return sh[wp] + x - v;
}
// Sorts P keys (a power of two) in shared memory. Begins and ends with a barrier.
__device__ __forceinline__ void bitonic_sort(u64* key, int P) {
  for (int k = 2; k <= P; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      for (int t = threadIdx.x; t < P / 2; t += blockDim.x) {
        int i = 2 * t - (t & (j - 1)), l = i + j;
        u64 a = key[i], c = key[l];
        if ((a > c) == ((i & k) == 0)) {
          key[i] = c;
          key[l] = a;
        }
      }
    }
  __syncthreads();
}

__device__ __forceinline__ float2 load_pair(const half* Z, long row, int n, int r, bool valid) {
  return valid ? __half22float2(*(const half2*)(Z + row * n + r)) : make_float2(0.f, 0.f);
}
// Applies the node's chains of plane rotations to the columns of Z, and copies parked columns that
// enter again into the current buffer. Warp wp of nw takes 64 rows of a chain, PF links in flight:
// (v, u) -> (c v + s u, c u - s v), v carried along the chain, its last value to the current
// buffer.
template <int PF>
__device__ __forceinline__ void rotate_columns(const Workspace& w, const Node& nd, int n,
                                               int parity, int ncopy, int nruns, int wp, int nw) {
  const int m = nd.end - nd.base, ln = threadIdx.x & 31, nch = (m + 63) / 64;
  for (int it = wp; it < nruns * nch; it += nw) {
    int run = it / nch, r = (it - run * nch) * 64 + 2 * ln;
    bool ok = r < m;
    int un = (nd.base + r) >> 3;
    auto ld = [&](int g) {
      bool v = ok && un >= ((g >> 12) & 255) && un <= ((g >> 20) & 255);
      return load_pair(w.Z[(g >> 11) & 1] + nd.base, nd.off + (g & 2047), n, r, v);
    };
    int p = w.run_heads[nd.off + run];
    int sg = w.rotation_slot[nd.off + p];
    float2 v = ld(sg);
    int nj = w.rotation_next[nd.off + p];
    while (nj >= 0) {  // prefetch window of PF links
      int sl[PF];
      float c[PF], s[PF];
      float2 u[PF];
      int cntl = 0;
#pragma unroll
      for (int i = 0; i < PF; i++) {
        if (nj >= 0) {
          c[i] = w.rotation_cos[nd.off + p];
          s[i] = w.rotation_sin[nd.off + p];
          sl[i] = w.rotation_slot[nd.off + nj];
          u[i] = ld(sl[i]);
          p = nj;
          nj = w.rotation_next[nd.off + p];
          cntl++;
        }
      }
#pragma unroll
      for (int i = 0; i < PF; i++)
        if (i < cntl) {
          float2 o = make_float2(c[i] * v.x + s[i] * u[i].x, c[i] * v.y + s[i] * u[i].y);
          if (ok)
            *(half2*)(w.Z[(sg >> 11) & 1] + (nd.off + (sg & 2047)) * n + nd.base + r) =
                __float22half2_rn(o);
          v = make_float2(c[i] * u[i].x - s[i] * v.x, c[i] * u[i].y - s[i] * v.y);
          sg = sl[i];
        }
    }
    if (ok)
      *(half2*)(w.Z[parity] + (nd.off + (sg & 2047)) * n + nd.base + r) = __float22half2_rn(v);
  }
  for (int it = wp; it < ncopy; it += nw) {
    int g = w.copies[nd.off + it];
    long ro = (nd.off + (g & 2047)) * n;
    for (int un = ((g >> 12) & 255) + ln; un <= ((g >> 20) & 255); un += 32)
      *(uint4*)(w.Z[parity] + ro + 8 * un) = *(const uint4*)(w.Z[parity ^ 1] + ro + 8 * un);
  }
}
// rotate_columns in a kernel of its own: grid nodes x any, four warps a block.
__global__ void __launch_bounds__(128)
    rotate_kernel(Workspace w, int n, int leaf_count, int lw, int parity) {
  Node nd = node(n, leaf_count, lw, blockIdx.x);
  int ncopy = w.counts[nd.id * 8 + 3], nruns = w.counts[nd.id * 8 + 4];
  if (ncopy + nruns == 0) return;
  rotate_columns<8>(w, nd, n, parity, ncopy, nruns, blockIdx.y * 4 + (threadIdx.x >> 5),
                    gridDim.y * 4);
}
// State of a position in the sorted order: slot | type << 16 (1 top, 2 bottom) | halves it touches
// << 18, and: deflated; rotated away (into the next of its chain); first of a chain; what a chain
// ends in.
enum { kDeflated = 1 << 20, kRotated = 1 << 21, kRunHead = 1 << 22, kRotationTarget = 1 << 23 };
// Deflation of one merge, by LAPACK slaed2's tests with tol = 8 eps max(|d|, |z|): a small z
// deflates alone; of two close poles one is rotated away. A block a node, E positions a thread,
// blockDim.x * E a power of two >= the node's rows m. Shared memory, 44 bytes a position: sort key,
// d, z, first and last row, rotation (c, s), state, list of kept positions, next link.
// Poles are sorted; positions kept by the first test fall into runs with gaps of at most 2 tol, and
// one thread walks each run, so runs are independent. Every phase that hands shared memory between
// threads ends in a block barrier. Writes the compact poles, the halves' lists, the chains,
// counts and rho; with `fused` it also applies the chains.
template <int E>
__global__ void __launch_bounds__(1024)
    deflate_kernel(Workspace w, int n, int leaf_count, int lw, int parity, int fused) {
  extern __shared__ __align__(16) char sm[];
  __shared__ u64 sh[33];
  __shared__ float red[33];
  Node nd = node(n, leaf_count, lw, blockIdx.x);
  const int m = nd.end - nd.base, n1 = nd.mid - nd.base, P = blockDim.x * E, tid = threadIdx.x;
  u64* key = (u64*)sm;
  float *sd = (float*)(key + P), *sz = sd + P, *sf = sz + P, *sl = sf + P, *rc = sl + P,
        *rs = rc + P;
  int *ss = (int*)(rs + P), *kl = ss + P, *nx = kl + P;
  float ev = w.e[(long)nd.b * (n - 1) + nd.mid - 1], rho = 2.f * fabsf(ev),
        sg = ev < 0.f ? -0.70710678f : 0.70710678f;
  float mx = 0.f;
  for (int i = tid; i < P; i += blockDim.x) {
    if (i < m) {
      float l = w.eigenvalue[nd.off + i],
            z = i < n1 ? 0.70710678f * w.last_row[nd.off + i] : sg * w.first_row[nd.off + i];
      mx = fmaxf(mx, fmaxf(fabsf(l), fabsf(z)));
      rc[i] = l;
      rs[i] = z;
      key[i] = ((u64)ordered_key(l) << 32) | i;
    } else
      key[i] = ~0ull;
  }
  for (int o = 16; o; o >>= 1) mx = fmaxf(mx, __shfl_xor_sync(~0u, mx, o));
  if ((tid & 31) == 0) red[tid >> 5] = mx;
  bitonic_sort(key, P);
  mx = 0.f;
  for (int i = 0; i < (int)(blockDim.x >> 5); i++) mx = fmaxf(mx, red[i]);
  const float tol = 8.f * 5.9604645e-8f * mx;
  u64 v = 0, tot;
#pragma unroll
  for (int q = 0; q < E; q++) {
    int p = tid * E + q;
    if (p < m) {
      int i = (int)(key[p] & 0xffffffffu);
      float z = rs[i];
      sd[p] = rc[i];
      sz[p] = z;
      sf[p] = i < n1 ? w.first_row[nd.off + i] : 0.f;
      sl[p] = i < n1 ? 0.f : w.last_row[nd.off + i];
      int ty = i < n1 ? 1 : 2;
      bool kp = rho * fabsf(z) > tol;
      ss[p] = i | ty << 16 | ty << 18 | (kp ? 0 : kDeflated);
      nx[p] = -1;
      v += kp;
    }
  }
  u64 ex = exclusive_scan(v, sh, tot);
  int nk = (int)tot;
#pragma unroll
  for (int q = 0; q < E; q++) {
    int p = tid * E + q;
    if (p < m && !(ss[p] & kDeflated)) kl[ex++] = p;
  }
  __syncthreads();
  int hd[E];
#pragma unroll
  for (int q = 0; q < E; q++) {
    int t = tid * E + q;
    hd[q] = 0;
    if (t < nk) hd[q] = t == 0 || sd[kl[t]] - sd[kl[t - 1]] > 2.f * tol;
  }
  __syncthreads();
#pragma unroll
  for (int q = 0; q < E; q++) {
    int t = tid * E + q;
    if (t < nk && hd[q]) kl[t] |= 1 << 16;
  }
  __syncthreads();
#pragma unroll
  for (int q = 0; q < E; q++)
    if (hd[q]) {
      int t = tid * E + q, pj = kl[t] & 0xffff;
      bool chained = false;
      float zj = sz[pj], dj = sd[pj];
      for (t++; t < nk; t++) {
        int nj = kl[t];
        if (nj >> 16) break;
        float c = sz[nj], s = zj, r2 = c * c + s * s, ri = rsqrtf(r2);
        ri = ri * (1.5f - 0.5f * r2 * ri * ri);
        float dn = sd[nj], tt = dn - dj, zn = c;
        c *= ri;
        s = -s * ri;
        if (fabsf(tt * c * s) <= tol) {
          zn = r2 * ri;
          sz[nj] = zn;
          sz[pj] = 0.f;
          rc[pj] = c;
          rs[pj] = s;
          nx[pj] = nj;
          float x = sf[pj], y = sf[nj];
          sf[pj] = c * x + s * y;
          sf[nj] = c * y - s * x;
          x = sl[pj];
          y = sl[nj];
          sl[pj] = c * x + s * y;
          sl[nj] = c * y - s * x;
          sd[pj] = dj * c * c + dn * s * s;
          dn = dj * s * s + dn * c * c;
          sd[nj] = dn;
          int tp = (ss[pj] | ss[nj]) & (3 << 18);
          ss[nj] |= tp | kRotationTarget;
          ss[pj] |= tp | kDeflated | kRotated | (chained ? 0 : kRunHead);
          chained = true;
        } else
          chained = false;
        pj = nj;
        zj = zn;
        dj = dn;
      }
    }
  __syncthreads();

  v = 0;
  int mt[E];
#pragma unroll
  for (int q = 0; q < E; q++) {
    int p = tid * E + q;
    mt[q] = 0;
    if (p < m) {
      int f = ss[p];
      mt[q] = w.meta[nd.off + (f & 0xffff)];
      if (f & kDeflated)
        v += (f & kRotated) && (f & kRunHead) ? 1ull << 48 : 0ull;
      else
        v += 1ull + ((f >> 18) & 1 ? 1ull << 12 : 0ull) + ((f >> 19) & 1 ? 1ull << 24 : 0ull) +
             (!(f & kRotationTarget) && ((mt[q] >> 11) & 1) != parity ? 1ull << 36 : 0ull);
    }
  }
  ex = exclusive_scan(v, sh, tot);
  const int full = (nd.base >> 3) << 12 | ((nd.end >> 3) - 1) << 20;
#pragma unroll
  for (int q = 0; q < E; q++) {
    int p = tid * E + q;
    if (p < m) {
      int f = ss[p], slot = f & 0xffff, k = ex & 4095, kt = (ex >> 12) & 4095,
          kb = (ex >> 24) & 4095, kc = (ex >> 36) & 4095, kh = (ex >> 48) & 4095;
      if (f & (kRotated | kRotationTarget)) {
        w.rotation_slot[nd.off + p] = slot | mt[q];
        w.rotation_next[nd.off + p] = nx[p];
      }
      if (f & kDeflated) {
        w.eigenvalue[nd.off + slot] = sd[p];
        w.first_row[nd.off + slot] = sf[p];
        w.last_row[nd.off + slot] = sl[p];
        if (f & kRotated) {
          w.rotation_cos[nd.off + p] = rc[p];
          w.rotation_sin[nd.off + p] = rs[p];
          w.meta[nd.off + slot] = (mt[q] & 2048) | full;
          if (f & kRunHead) {
            w.run_heads[nd.off + kh] = p;
            ex += 1ull << 48;
          }
        }
      } else {
        int cm = slot | parity << 11 | ((f & kRotationTarget) ? full : (mt[q] & ~4095));
        if (!(f & kRotationTarget) && ((mt[q] >> 11) & 1) != parity) {
          w.copies[nd.off + kc] = slot | mt[q];
          ex += 1ull << 36;
        }
        w.pole[nd.off + k] = sd[p];
        w.weight[nd.off + k] = sz[p];
        w.pole_first_row[nd.off + k] = sf[p];
        w.pole_last_row[nd.off + k] = sl[p];
        w.pole_slot[nd.off + k] = cm;
        ex += 1;
        const float4 pk = make_float4(sd[p], sz[p], __int_as_float(cm), 0.f);
        if ((f >> 18) & 1) {
          w.top_poles[nd.off + kt] = pk;
          ex += 1ull << 12;
        }
        if ((f >> 19) & 1) {
          w.bottom_poles[nd.off + kb] = pk;
          ex += 1ull << 24;
        }
      }
    }
  }
  if (tid < 5) w.counts[nd.id * 8 + tid] = (tot >> (12 * tid)) & 4095;
  if (tid == 5) w.rho[nd.id] = rho;
  int ncopy = (int)((tot >> 36) & 4095), nruns = (int)((tot >> 48) & 4095);
  if (fused && ncopy + nruns > 0) {
    __syncthreads();
    rotate_columns<4>(w, nd, n, parity, ncopy, nruns, tid >> 5, blockDim.x >> 5);
  }
}
}  // namespace dc
}  // namespace crucible::eigh
