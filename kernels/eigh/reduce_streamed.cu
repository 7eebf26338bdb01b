// reduce_streamed.cu: tridiagonal reduction for 1024 < n <= 2048, sixteen blocks a matrix.
//
// Shapes: a [batch][n][n] -> Tridiagonal of stages.h; padded in front with zeros to a multiple of
// 32. Deterministic: fixed owners, fixed orders of summation. A cooperative launch, because the
// blocks of a group wait for each other: as many groups as fit the GPU's multiprocessors, at most
// eight; group g takes matrices g, g + groups, ...
//
// Layout. The trailing matrix is a full square of FP16 16x16 tiles in mma fragment order, its
// diagonal apart in FP32 registers. The tiles of the last 72 block rows and columns are in shared
// memory: .59 of the tile reads at 2048, all of them up to 1152. The others are in the workspace
// (5.7 MB a matrix at 2048, mostly L2). Block row I belongs to block I mod 16 of the group, which
// so computes its rows of A x alone: nothing of a product crosses blocks. The full square costs
// twice the triangle's bytes and saves an exchange.
//
// Column j takes two rendezvous through flags in L2. Step 1: publish x (own rows), the partial
// norm, and the pivot row of the panel [V W]. Step 2: A x by mma; V^T x, W^T x and x^T A x over own
// rows, published. Step 3: as in reduce_one_block.cu. Every 32 columns one more rendezvous, then
// A -= V W^T + W V^T on own tiles.
// Cost at 2048: 2/3 n^3 bytes of tiles a matrix, .41 of them from L2; about 3 us of latency a
// column.
#include <algorithm>

#include "heuristics.h"
#include "launch.h"
#include "streamed_steps.cuh"

namespace crucible::eigh {
using namespace streamed;  // NOLINT: the host side and the column loop of that namespace
namespace {

// Reduces one matrix.
__device__ void reduce_matrix(const Arguments& args, Block& b, int64_t matrix) {
  const PaddedInput in{args.a + matrix * args.n * args.n,
                       args.n,
                       args.padded - args.n,
                       args.exponent[matrix],
                       args.upper,
                       args.status[matrix] != 0};
  Panel* s = b.s;
  const int padded = args.padded, shift = padded - args.n;
  float* d = args.t.d + matrix * args.ld;
  float* e = args.t.e + matrix * args.ld;
  float* tau = args.t.tau + matrix * args.ld;
  __half* v_out = args.t.v == nullptr ? nullptr : args.t.v + matrix * args.n * args.ld;
  load_input(b, in);
  // The own row of columns that are not made yet is multiplied by zero coefficients: for every
  // matrix anew, because the last one may have left NaN there.
  for (int k = 0; b.own >= 0 && k < kPanel; ++k) s->v[b.own][k] = s->w[b.own][k] = 0.f;
  float dg = b.own >= 0 ? in.at(b.row, b.row) : 0.f;
  float av = b.own >= 0 ? in.at(b.row, 0) : 0.f;  // column 0; its rounding is the tiles'
  if (b.row > 0) av = __half2float(__float2half_rn(av));
  if (b.own >= 0 && b.row == 0 && shift == 0) d[0] = dg;
  rendezvous(b.g.arrived, &b.target);
  for (int j = 0; j < padded - 1; ++j) {
    const int i = j % kPanel;
    publish_column(b, j, i, av, dg);
    rendezvous(b.g.arrived, &b.target);
    const Reflector h = receive_column(b, j, padded);
    float ac = 0;
    if (b.own >= 0 && b.row > j + 1) {
      ac = b.entry(j + 1);
    } else if (b.own >= 0 && b.row == j + 1) {
      ac = dg;
    }
    const float y = multiply_and_publish(b, j, dg);
    rendezvous(b.g.arrived, &b.target);
    sum_published(b, j, i, h.beta);
    const float dj = s->pivot[2 * kPanel], y1 = s->sums[2 * kPanel + 1];
    if (b.own >= 0 && b.row > j) {
      float s1 = 0, s2 = 0, t1 = 0, t2 = 0;
      // Beyond column i the coefficients and the pivot row are zero.
#pragma unroll 8
      for (int k = 0; k < kPanel; ++k) {
        const float cv = s->coefficient[k], cw = s->coefficient[kPanel + k];
        const float v = s->v[b.own][k], w = s->w[b.own][k];
        const float pv = s->pivot[k], pw = s->pivot[kPanel + k];
        s1 = fmaf(v, cw, fmaf(w, cv, s1));
        s2 = fmaf(v, pw, fmaf(w, pv, s2));
        t1 = fmaf(pv, cw, fmaf(pw, cv, t1));
        t2 = fmaf(cv, cw, t2);
      }
      const float p1 = y1 - h.beta * dj - t1;
      const float pu = s->sums[2 * kPanel] - 2.f * h.beta * y1 + h.beta * h.beta * dj - 2.f * t2;
      const float al2 = -0.5f * h.scale * h.scale * pu;
      const float w1 = __half2float(__float2half_rn(fmaf(h.scale, p1, al2)));
      const float p = y - h.beta * ac - s1;
      const float v = b.row == j + 1 ? 1.f : av * h.inverse;
      const __half vh = __float2half_rn(v), wh = __float2half_rn(fmaf(h.scale, p, al2 * v));
      const float vf = __half2float(vh), wf = __half2float(wh);
      s->v[b.own][i] = vf;
      s->w[b.own][i] = wf;
      __half* tile = b.g.panel + static_cast<int64_t>(b.row >> 4) * 4 * 256;
      const int at = fragment_at(b.row & 15, i & 15);
      tile[(i >> 4) * 256 + at] = vh;
      tile[(2 + (i >> 4)) * 256 + at] = wh;
      av = ac - s2 - (vf * w1 + wf);
      if (j >= shift) {
        if (v_out != nullptr) {
          v_out[static_cast<int64_t>(j - shift) * args.ld + b.row - shift] =
              h.scale == 0.f ? __half(0.f) : vh;
        }
        if (b.row == j + 1) {
          e[j - shift] = h.beta;
          tau[j - shift] = h.scale == 0.f ? 0.f : 1.f - h.alpha / h.beta;
        }
      }
      if (b.row == j + 1 && i < kPanel - 1 && j + 1 >= shift) d[j + 1 - shift] = av;
    }
    if (i == kPanel - 1) {
      if (b.own >= 0 && b.row > j) {
        float sum = 0;
        for (int k = 0; k < kPanel; ++k) sum = fmaf(s->v[b.own][k], s->w[b.own][k], sum);
        dg -= 2.f * sum;
      }
      rendezvous(b.g.arrived, &b.target);
      update_trailing(b, (j + 1) >> 4);
      __syncthreads();
      if (b.own >= 0 && b.row > j + 1) {
        av = b.entry(j + 1);
      } else if (b.own >= 0 && b.row == j + 1) {
        av = dg;
        if (j + 1 >= shift) d[j + 1 - shift] = dg;
      }
    }
  }
}

constexpr size_t tile_count(int padded) { return static_cast<size_t>(padded / 16) * (padded / 16); }

__global__ void __launch_bounds__(kThreads, 1)
    reduce_streamed_kernel(const __grid_constant__ Arguments args) {
  extern __shared__ __align__(128) char memory[];
  Block b;
  b.s = reinterpret_cast<Panel*>(memory);
  b.held = reinterpret_cast<uint4*>(memory + sizeof(Panel));
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(Panel) / 4); i += kThreads) {
    reinterpret_cast<uint32_t*>(memory)[i] = 0;
  }
  __syncthreads();
  const int group = blockIdx.x / kGroup;
  b.rank = blockIdx.x % kGroup;
  b.tiles = args.padded / 16;
  b.target = 0;
  b.g = args.first;
  b.g.tiles += group * static_cast<int64_t>(b.tiles) * b.tiles * 32;
  b.g.panel += group * static_cast<int64_t>(b.tiles) * 4 * 256;
  b.g.x += static_cast<int64_t>(group) * args.padded;
  b.g.norm += group * 64;
  b.g.pivot += group * 128;
  b.g.partial += group * 2048;
  b.g.arrived += group * 64;
  const int block_row = b.rank + kGroup * (static_cast<int>(threadIdx.x) >> 4);
  b.own = threadIdx.x < kOwnRows && block_row < b.tiles ? static_cast<int>(threadIdx.x) : -1;
  b.row = b.own >= 0 ? block_row * 16 + (b.own & 15) : -1;
  for (int64_t matrix = group; matrix < args.batch; matrix += args.groups) {
    reduce_matrix(args, b, matrix);
    rendezvous(b.g.arrived, &b.target);
  }
}

int groups_for(int64_t batch) {
  static_assert(kGroup == kStreamedBlocks, "route() asks for one group at least");
  return static_cast<int>(std::min<int64_t>(batch, streamed_groups(multiprocessors())));
}
int padded_for(int n) { return (n + kPanel - 1) / kPanel * kPanel; }

Shared carve(const Shape& shape, void* workspace, size_t* bytes) {
  const int groups = groups_for(shape.batch), padded = padded_for(shape.n);
  Carver carver(workspace);
  Shared g;
  g.arrived = carver.take<unsigned>(groups * 64);
  g.tiles = carver.take<uint4>(groups * tile_count(padded) * 32);
  g.panel = carver.take<__half>(static_cast<size_t>(groups) * (padded / 16) * 4 * 256);
  g.x = carver.take<float>(static_cast<size_t>(groups) * padded);
  g.norm = carver.take<float>(groups * 64);
  g.pivot = carver.take<float>(groups * 128);
  g.partial = carver.take<float>(groups * 2048);
  *bytes = carver.used();
  return g;
}

}  // namespace

size_t reduce_streamed_bytes(const Shape& shape) {
  size_t bytes = 0;
  carve(shape, nullptr, &bytes);
  return bytes;
}

cudaError_t reduce_streamed(const Shape& shape, const float* a, bool upper,
                            const int* scale_exponent, const int* status, const Tridiagonal& t,
                            void* workspace, cudaStream_t stream) {
  static_assert(kGroup * kPublished <= 2048 && 2 * kPanel + 1 <= 128, "strides of the exchange");
  size_t bytes = 0;
  Arguments args{a,
                 scale_exponent,
                 status,
                 t,
                 carve(shape, workspace, &bytes),
                 shape.batch,
                 shape.n,
                 shape.ld(),
                 padded_for(shape.n),
                 groups_for(shape.batch),
                 upper};
  if (!shape.vectors) args.t.v = nullptr;
  cudaError_t error = cudaMemsetAsync(args.first.arrived, 0, args.groups * 64 * 4, stream);
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(reduce_streamed_kernel,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  }
  if (error != cudaSuccess) return error;
  void* parameters[] = {&args};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(reduce_streamed_kernel),
                                     dim3(args.groups * kGroup), dim3(kThreads), parameters,
                                     kSharedBytes, stream);
}

}  // namespace crucible::eigh
