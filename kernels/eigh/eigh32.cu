// eigh32.cu: n = 32, everything in one launch, one block of 9 warps a matrix.
//
// Shapes: a, q [batch][32][32] row-major, lambda [batch][32]. Deterministic. NaN/Inf and diagonal
// input are answered at once. Batch-parallel only: 19 us for 20 matrices on an H200.
//  1. Warp 0 reduces to T in FP32: lane = column, the registers rotate so that the current column
//     is always register 0; broadcasts go through shared memory, no shuffles on the chain.
//  2. Warps 0-7 find all eigenvalues at once in FP64: a Sturm multisection (8 probes a round for
//     each of 32 intervals) with the determinant recurrence, which needs no division; meanwhile
//     warp 8 multiplies the reflectors together. 14 rounds of log2(9) bits after the common 8:
//     all 52. The gaps of a cluster are of the ramp's size (below), so every bit that L lacks is
//     seen in the vectors: with 12 rounds 1 rank-one matrix of 3,000 missed the gate.
//  3. Vectors of T from products of leading and trailing determinants (the cofactors), normalised;
//     a diagonal ramp of 2^-26 B splits exact multiplicities, and L is corrected for it to first
//     order, so no Gram-Schmidt is needed. Then Q = Q1 Z.
// Ranges: couplings below 1e-8 B are raised to it, far below the FP32 rounding of T's 1-norm gate.
#include <algorithm>

#include "eigh32_reduce.cuh"
#include "partial_barrier.cuh"
#include "pipeline.h"

namespace crucible::eigh {
using namespace small32;  // NOLINT: this file is the rest of that namespace
namespace {

constexpr int kRounds = 14, kProbes = 1, kWarps = 8;

__global__ __launch_bounds__(32 * kWarps + 32,
                             1) void eigh32_kernel(const float* __restrict__ A,
                                                   float* __restrict__ L, float* __restrict__ Qo,
                                                   int* __restrict__ info, bool upper) {
  __shared__ Householder householder;
  auto& V = householder.v;
  float *tau = householder.tau, *sd = householder.d, *se = householder.e;
  __shared__ __align__(16) double2 de[33];  // (d with ramp, e^2 of the previous coupling)
  __shared__ double Cs[33], Ce[33];         // prefix products of e and their inverses
  __shared__ float Qs[32][33], Zs[32][33];
  __shared__ double F[32][33], G[32][33];
  __shared__ __align__(16) unsigned bits[2][kProbes * kWarps];
  __shared__ int br[33];
  __shared__ unsigned char cn[kWarps * 32 * kProbes + 1];
  __shared__ double slam[32];
  __shared__ float Lf[32];
  __shared__ float sB;
  __shared__ int sflag;
  __shared__ float sc1, sc2;
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int64_t mtx = blockIdx.x;
  A += (size_t)mtx * 1024;
  Qo += (size_t)mtx * 1024;
  L += (size_t)mtx * 32;
  if (warp == 0) {
    float a[32];

#pragma unroll
    for (int i = 0; i < 32; i++) a[i] = A[i * 32 + lane];
      // only the chosen triangle counts: mirror it through shared memory

#pragma unroll
    for (int i = 0; i < 32; i++) Zs[i][lane] = a[i];
    __syncwarp();

#pragma unroll
    for (int i = 0; i < 32; i++)
      if (upper ? i > lane : i < lane) a[i] = Zs[lane][i];
    __syncwarp();
    unsigned am = 0, off = 0;

#pragma unroll
    for (int i = 0; i < 32; i++) {
      unsigned u = __float_as_uint(a[i]) & 0x7fffffffu;
      am = max(am, u);
      if (i != lane) off |= u;
    }
    am = __reduce_max_sync(~0u, am);
    off = __reduce_or_sync(~0u, off);
    int flag = 0;
    if (am >= 0x7f800000u)
      flag = 2;
    else if (off == 0)
      flag = 1;
    if (flag == 1) {  // diagonal: rank by counting, exact answer
      answer_diagonal(a, lane, sd, se, L, Qo);
      if (lane == 0) {
        sflag = 1;
        info[mtx] = 0;
      }
    } else if (flag == 2) {
      answer_nan(lane, L, Qo);
      if (lane == 0) {
        sflag = 1;
        info[mtx] = 1;
      }
    } else {
      int ex = am >= 0x800000u ? (int)(am >> 23) - 127
                               : -118 - __clz(am);  // floor(log2 amax); subnormal: -149+31-clz
      int h = -ex / 2, h2 = -ex - h;
      float f1 = __int_as_float((127 + h) << 23), f2 = __int_as_float((127 + h2) << 23);

#pragma unroll
      for (int i = 0; i < 32; i++) a[i] = a[i] * f1 * f2;
      if (lane == 0) {
        sflag = 0;
        sc1 = __int_as_float((127 - h) << 23);
        sc2 = __int_as_float((127 - h2) << 23);
        info[mtx] = 0;
      }

#pragma unroll 1
      for (int k = 0; k < 8; k++) householder_step<32>(householder, a, lane, k);

#pragma unroll 1
      for (int k = 8; k < 16; k++) householder_step<24>(householder, a, lane, k);

#pragma unroll 1
      for (int k = 16; k < 24; k++) householder_step<16>(householder, a, lane, k);

#pragma unroll 1
      for (int k = 24; k < 30; k++) householder_step<8>(householder, a, lane, k);
      if (lane == 30) {
        sd[30] = a[0];
      }
      if (lane == 31) {
        se[30] = a[0];
        sd[31] = a[1];
      }
      __syncwarp();
      float d = sd[lane], e = lane < 31 ? se[lane] : 0.f, em = lane > 0 ? se[lane - 1] : 0.f;
      float B = fabsf(d) + fabsf(e) + fabsf(em);
      B = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(B))) * 1.0001f;
      double eta = (double)B * 1.4901161193847656e-08;
      float emin = B * 1e-8f;
      if (fabsf(em) < emin) em = copysignf(emin, em);
      de[lane] = make_double2((double)d + eta * lane, lane > 0 ? (double)em * em : 0.0);
      __syncwarp();
      se[lane] = em;  // now se[i] couples i-1,i
      if (lane == 0) sB = B;
    }
  }
  __syncthreads();
  if (sflag) return;
  if (warp == kWarps) {  // Q = H_0 ... H_29, lane = column; then the prefix products
    float q[32];

#pragma unroll
    for (int i = 0; i < 32; i++) q[i] = (i == lane) ? 1.f : 0.f;

#pragma unroll 1
    for (int k = 29; k >= 0; k--) {
      float v[32];
      float s0 = 0, s1 = 0, s2 = 0, s3 = 0;

#pragma unroll
      for (int i = 0; i < 32; i += 4) {
        float4 f = *(const float4*)&V[k][i];
        v[i] = f.x;
        v[i + 1] = f.y;
        v[i + 2] = f.z;
        v[i + 3] = f.w;
        s0 = fmaf(f.x, q[i], s0);
        s1 = fmaf(f.y, q[i + 1], s1);
        s2 = fmaf(f.z, q[i + 2], s2);
        s3 = fmaf(f.w, q[i + 3], s3);
      }
      float s = -tau[k] * ((s0 + s1) + (s2 + s3));

#pragma unroll
      for (int i = 0; i < 32; i++) q[i] = fmaf(s, v[i], q[i]);
    }

#pragma unroll
    for (int i = 0; i < 32; i++) Qs[i][lane] = q[i];
    // C_i = e_1..e_i by scan with shuffles
    double c = lane > 0 ? -(double)se[lane] : 1.0;  // sign (-1)^i folded in

#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      double u = __shfl_up_sync(~0u, c, o);
      if (lane >= o) c *= u;
    }
    Cs[lane] = c;
    Ce[lane] = 1.0 / c;
    absent_from<2 + kRounds>();
  }
  double lo = 0, hi = 0;
  const double B = (double)sB * (1.0 + 1e-6) + (double)sB * 31 * 1.4901161193847656e-08;
  if (warp < kWarps) {
    double dr[32], er[32];

#pragma unroll
    for (int i = 0; i < 32; i++) {
      double2 f = de[i];
      dr[i] = f.x;
      er[i] = -f.y;
    }
    auto count = [&](const double(&x)[kProbes], int(&c)[kProbes]) {
      // leading minors 1..16 and trailing minors 1..15 as two independent chains, joined by the
      // sign of the twisted pivot 16
      double a0[kProbes], a1[kProbes], b0[kProbes], b1[kProbes];
      int sg[kProbes], tg[kProbes];
      unsigned m[kProbes];

#pragma unroll
      for (int u = 0; u < kProbes; u++) {
        a0[u] = b0[u] = 1.0;
        a1[u] = dr[0] - x[u];
        b1[u] = dr[31] - x[u];
        sg[u] = __double2hiint(a1[u]);
        tg[u] = __double2hiint(b1[u]);
        m[u] = ((unsigned)sg[u] >> 31) * 2 + ((unsigned)tg[u] >> 31);
      }

#pragma unroll
      for (int i = 1; i < 16; i++)

#pragma unroll
        for (int u = 0; u < kProbes; u++) {
          double q = fma(dr[i] - x[u], a1[u], er[i] * a0[u]);
          int h = __double2hiint(q);
          m[u] = __funnelshift_l((unsigned)(h ^ sg[u]), m[u], 1);
          sg[u] = h;
          a0[u] = a1[u];
          a1[u] = q;
          if (i < 15) {
            double r = fma(dr[31 - i] - x[u], b1[u], er[32 - i] * b0[u]);
            int g = __double2hiint(r);
            m[u] = __funnelshift_l((unsigned)(g ^ tg[u]), m[u], 1);
            tg[u] = g;
            b0[u] = b1[u];
            b1[u] = r;
          }
        }

#pragma unroll
      for (int u = 0; u < kProbes; u++) {
        double q = fma(dr[16] - x[u], a1[u], er[16] * a0[u]);
        q = fma(q, b1[u], er[17] * a1[u] * b0[u]);
        c[u] = __popc(m[u]) + ((unsigned)(__double2hiint(q) ^ sg[u] ^ tg[u]) >> 31);
      }
    };
    double x[kProbes];
    int c[kProbes];
    {  // common probes
      const double st = 2 * B / (kWarps * 32 * kProbes + 1);

#pragma unroll
      for (int u = 0; u < kProbes; u++) x[u] = -B + st * (kProbes * tid + u + 1);
      count(x, c);

#pragma unroll
      for (int u = 0; u < kProbes; u++) cn[kProbes * tid + u] = c[u];
      if (tid == 0) cn[kWarps * 32 * kProbes] = 32;
      partial_wait_aligned<1, kWarps * 32>();

#pragma unroll
      for (int u = 0; u < kProbes; u++) {
        int c2 = cn[kProbes * tid + u + 1];
        for (int i = c[u]; i < c2; i++) br[i] = kProbes * tid + u + 1;
      }
      if (tid == 0)
        for (int i = 0; i < c[0]; i++) br[i] = 0;
      partial_wait_aligned<1, kWarps * 32>();
      lo = -B + st * br[lane];
      hi = lo + st;
    }

#pragma unroll 1
    for (int r = 0; r < kRounds; r++) {
      double st = (hi - lo) * (1.0 / (kProbes * kWarps + 1));

#pragma unroll
      for (int u = 0; u < kProbes; u++) x[u] = fma(st, (double)(kProbes * warp + u + 1), lo);
      count(x, c);

#pragma unroll
      for (int u = 0; u < kProbes; u++) {
        unsigned w = __ballot_sync(~0u, c[u] <= lane);
        if (lane == 0) bits[r & 1][kProbes * warp + u] = w;
      }
      partial_wait_aligned<1, kWarps * 32>();
      int m = 0;

#pragma unroll
      for (int q = 0; q < kProbes * kWarps; q += 4) {
        uint4 v = *(const uint4*)&bits[r & 1][q];
        m += ((v.x >> lane) & 1) + ((v.y >> lane) & 1) + ((v.z >> lane) & 1) + ((v.w >> lane) & 1);
      }
      lo = fma(st, (double)m, lo);
      hi = lo + st;
    }
    if (warp == 0) slam[lane] = 0.5 * (lo + hi);
  }
  __syncthreads();
  // leading (warp 0) and trailing (warp 1) determinants at the eigenvalue of the lane
  if (warp == 0) {
    double x = slam[lane], p0 = 1.0, p1 = de[0].x - x;
    F[0][lane] = 1.0;
    F[1][lane] = p1;

#pragma unroll
    for (int i = 1; i < 31; i++) {
      double2 f = de[i];
      double p = fma(f.x - x, p1, -f.y * p0);
      p0 = p1;
      p1 = p;
      F[i + 1][lane] = p;
    }
  } else if (warp == 1) {
    double x = slam[lane], p0 = 1.0, p1 = de[31].x - x;
    G[31][lane] = 1.0;
    G[30][lane] = p1;

#pragma unroll
    for (int i = 30; i > 0; i--) {
      double p = fma(de[i].x - x, p1, -de[i + 1].y * p0);
      p0 = p1;
      p1 = p;
      G[i - 1][lane] = p;
    }
  }
  __syncthreads();
  if (warp < kWarps) {
    const double eta = (double)sB * 1.4901161193847656e-08;
    const double C = Cs[lane], Ci = Ce[lane];

#pragma unroll
    for (int u = 0; u < 32 / kWarps; u++) {
      int i = warp * (32 / kWarps) + u;
      double f = F[lane][i], g = G[lane][i], w = fabs(f * g);
      f *= Ci;
      g *= C;
      unsigned hw = (unsigned)__double2hiint(w), mx = __reduce_max_sync(~0u, hw);
      int r = __ffs(__ballot_sync(~0u, hw == mx)) - 1;
      double fr = __shfl_sync(~0u, f, r), gr = __shfl_sync(~0u, g, r);
      // numerator and denominator brought to float range by an exact power of two
      double nu = lane <= r ? f : g, de2 = lane <= r ? fr : gr;
      int ed = (__double2hiint(de2) >> 20) & 0x7ff;
      double sc = __hiloint2double((2046 - ed) << 20, 0);
      float z = __fdividef((float)(nu * sc), (float)(de2 * sc));
      float s = z * z, t = s * lane;

#pragma unroll
      for (int o = 16; o; o >>= 1) {
        s += __shfl_xor_sync(~0u, s, o);
        t += __shfl_xor_sync(~0u, t, o);
      }
      float rs = rsqrtf(s);
      rs = rs * fmaf(-0.5f * s * rs, rs, 1.5f);
      Zs[lane][i] = z * rs;
      if (lane == 0) Lf[i] = (float)(slam[i] - eta * (double)(t * rs * rs));
    }
  }
  __syncthreads();
  if (warp < kWarps) {
    float o[32 / kWarps];

#pragma unroll
    for (int u = 0; u < 32 / kWarps; u++) o[u] = 0.f;

#pragma unroll
    for (int k = 0; k < 32; k++) {
      float z = Zs[k][lane];

#pragma unroll
      for (int u = 0; u < 32 / kWarps; u++) o[u] = fmaf(Qs[warp * (32 / kWarps) + u][k], z, o[u]);
    }

#pragma unroll
    for (int u = 0; u < 32 / kWarps; u++) Qo[(warp * (32 / kWarps) + u) * 32 + lane] = o[u];
  } else {
    float l = Lf[lane];

#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      float u = __shfl_up_sync(~0u, l, o);
      if (lane >= o) l = fmaxf(l, u);
    }
    L[lane] = l * sc1 * sc2;
  }
}

}  // namespace

cudaError_t eigh32(const Shape& shape, const float* a, bool upper, float* lambda, float* q,
                   int* info, cudaStream_t stream) {
  constexpr int64_t kBlocksMax = 1 << 30;
  for (int64_t first = 0; first < shape.batch; first += kBlocksMax) {
    const unsigned blocks = static_cast<unsigned>(std::min(kBlocksMax, shape.batch - first));
    eigh32_kernel<<<blocks, 32 * kWarps + 32, 0, stream>>>(a + first * 1024, lambda + first * 32,
                                                           q + first * 1024, info + first, upper);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
