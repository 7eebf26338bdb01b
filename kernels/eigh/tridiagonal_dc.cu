// tridiagonal_dc.cu: batched divide and conquer for symmetric tridiagonal matrices.
//
// Shapes: d, e [batch][ld] -> lambda [batch][ld], z [batch][P][P] FP16, eigenvector j of the padded
// matrix in row j (contiguous). P = padded_order(n); the padding is diagonal entries above the
// spectrum, which deflate at once and sort last. T is scaled to norm1 in [0.5, 1) first.
// Deterministic. Cuppen's method with LAPACK's deflation (Gu & Eisenstat 1995 for the secular
// form); orthogonality comes from FP64 roots where needed and from Newton-Schulz afterwards, so no
// Gu-Eisenstat pass. Cost: at most 4/3 P^3 multiply-adds, less with deflation.
#include <cmath>

#include "dc_leaf.cuh"
#include "dc_update_wgmma.cuh"
#include "heuristics.h"
#include "launch.h"
#include "padded_order.h"
#include "stages.h"

namespace crucible::eigh {
namespace dc {
namespace {

// Sorts the eigenvalues of a matrix, ties by slot. A block a matrix, P >= n a power of two.
__global__ void __launch_bounds__(1024) sort_kernel(Workspace w, int n, int P) {
  extern __shared__ __align__(16) char sm[];
  u64* key = (u64*)sm;
  long off = (long)blockIdx.x * n;
  for (int i = threadIdx.x; i < P; i += blockDim.x)
    key[i] = i < n ? ((u64)ordered_key(w.eigenvalue[off + i]) << 32) | i : ~0ull;
  bitonic_sort(key, P);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int s = (int)(key[i] & 0xffffffffu);
    w.slot_of_rank[off + i] = s;
    w.sorted_eigenvalue[off + i] = w.eigenvalue[off + s];
  }
}

// Scales T by a power of two to norm1 in [0.5, 1), pads to order p. One block a matrix.
__global__ void __launch_bounds__(256)
    prepare_kernel(const float* d, const float* e, int n, int ld, int p, float* d_out, float* e_out,
                   int* exponent) {
  __shared__ float red[8];
  const int64_t b = blockIdx.x;
  d += b * ld;
  e += b * ld;
  float norm = 0;
  for (int i = threadIdx.x; i < n; i += 256) {
    const float left = i > 0 ? fabsf(e[i - 1]) : 0.f, right = i < n - 1 ? fabsf(e[i]) : 0.f;
    norm = fmaxf(norm, left + fabsf(d[i]) + right);
  }
  norm = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(norm)));
  if ((threadIdx.x & 31) == 0) red[threadIdx.x >> 5] = norm;
  __syncthreads();
  for (int i = 0; i < 8; ++i) norm = fmaxf(norm, red[i]);
  int k = 0;
  if (norm > 0.f) frexpf(norm, &k);
  const float scale = ldexpf(1.f, -k);
  if (threadIdx.x == 0) exponent[b] = k;
  for (int i = threadIdx.x; i < p; i += 256) {
    d_out[b * p + i] = i < n ? d[i] * scale : 1.25f;
    if (i < p - 1) e_out[b * (p - 1) + i] = i < n - 1 ? e[i] * scale : 0.f;
  }
}

// Columns of Z in ascending order of the eigenvalues, zeros where a slot holds nothing, and the
// eigenvalues back at the scale of the input. A warp a column.
__global__ void __launch_bounds__(256)
    gather_kernel(Workspace w, int n, int ld, int p, const int* exponent, float* lambda,
                  __half* z) {
  const int64_t b = blockIdx.y, off = b * p;
  const int j = blockIdx.x * 8 + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  const int slot = w.slot_of_rank[off + j], meta = w.meta[off + slot];
  if (lane == 0 && j < n) lambda[b * ld + j] = ldexpf(w.sorted_eigenvalue[off + j], exponent[b]);
  if (z == nullptr) return;
  const int first = (meta >> 12) & 255, last = (meta >> 20) & 255;
  const uint4* from = (const uint4*)(w.Z[(meta >> 11) & 1] + (off + slot) * p);
  uint4* to = (uint4*)(z + (off + j) * p);
  for (int unit = lane; unit < p / 8; unit += 32) {
    to[unit] = unit >= first && unit <= last ? from[unit] : make_uint4(0, 0, 0, 0);
  }
}

struct Config {
  int leaf_rows, lanes_a_root;
};
Config config_for(int p) { return p == 512 ? Config{16, 2} : Config{8, p == 1024 ? 4 : 8}; }

int leaves_of(int p) {
  const int units = p / 8, rows = config_for(p).leaf_rows;
  int leaves = 1;
  while ((units + leaves - 1) / leaves * 8 > rows && 2 * leaves <= units) leaves *= 2;
  return leaves;
}

struct Buffers {
  Workspace w;
  float *d, *e;
  int* exponent;
  size_t bytes;
  Buffers(int64_t batch, int p, void* workspace) {
    Carver carver(workspace);
    const size_t entries = static_cast<size_t>(batch) * p;
    w = Workspace{};
    d = carver.take<float>(entries);
    e = carver.take<float>(entries);
    exponent = carver.take<int>(batch);
    w.d = d;
    w.e = e;
    for (float** f :
         {&w.eigenvalue, &w.first_row, &w.last_row, &w.pole, &w.weight, &w.pole_first_row,
          &w.pole_last_row, &w.rotation_cos, &w.rotation_sin, &w.sorted_eigenvalue}) {
      *f = carver.take<float>(entries);
    }
    for (int** i : {&w.pole_slot, &w.copies, &w.run_heads, &w.rotation_slot, &w.rotation_next,
                    &w.slot_of_rank, &w.meta}) {
      *i = carver.take<int>(entries);
    }
    for (float4** f : {&w.top_poles, &w.bottom_poles, &w.roots}) *f = carver.take<float4>(entries);
    w.counts = carver.take<int>(static_cast<size_t>(leaves_of(p)) * batch * 8);
    w.rho = carver.take<float>(static_cast<size_t>(leaves_of(p)) * batch);
    for (int i = 0; i < 2; ++i) w.Z[i] = carver.take<__half>(entries * p);
    bytes = carver.used();
  }
};

int power_of_two(int m) {
  int p = 32;
  while (p < m) p *= 2;
  return p;
}

// One level's launch parameters: node width lw leaves, at most m rows a node, h a half.
struct Level {
  int n, leaf_count, lw, m, h, nodes, cur;
};

template <typename Kernel>
cudaError_t allow_shared(Kernel kernel, size_t bytes) {
  if (bytes <= 48 * 1024) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

template <int G, int NT>
cudaError_t secular(const Workspace& w, const Level& l, cudaStream_t s) {
  const int sep = l.m <= 1024;
  const size_t bytes = 24ull * (l.m + G + 2) + (sep ? 16ull * (l.m + G) : 0);
  if (cudaError_t e = allow_shared(secular_kernel<G, NT>, bytes); e != cudaSuccess) return e;
  const dim3 grid(l.nodes, (l.m + NT / G - 1) / (NT / G));
  secular_kernel<G, NT><<<grid, NT, bytes, s>>>(w, l.n, l.leaf_count, l.lw, l.cur ^ 1, sep);
  return cudaGetLastError();
}
template <int NR, int WJ>
cudaError_t update(const Workspace& w, const Level& l, cudaStream_t s) {
  const int njt = (l.m + 32 * WJ - 1) / (32 * WJ), nrt = (l.h + 8 * NR - 1) / (8 * NR);
  const size_t bytes = 3 * 32 * (8 * NR + 8) * 2 + 12ull * ((l.m + 31) / 32 * 32) + 128;
  if (cudaError_t e = allow_shared(update_mma_kernel<NR, WJ>, bytes); e != cudaSuccess) return e;
  const int ny = njt * nrt * 2;
  update_mma_kernel<NR, WJ><<<l.nodes * ny, 32 * WJ, bytes, s>>>(w, l.n, l.leaf_count, l.lw, njt,
                                                                 ny, w.Z[l.cur], w.Z[l.cur ^ 1]);
  return cudaGetLastError();
}
template <int N>
cudaError_t update_wgmma(const Workspace& w, const Level& l, cudaStream_t s) {
  const int njt = (l.m + 63) / 64, nrt = (l.h + N - 1) / N, ny = njt * nrt;
  const size_t bytes = 1024 + kPipelineStages * 32 * N * 2 + 12ull * (l.m + 64) + 8 * 64 + 256;
  if (cudaError_t e = allow_shared(update_wgmma_kernel<N>, bytes); e != cudaSuccess) return e;
  update_wgmma_kernel<N><<<l.nodes * ny, 128, bytes, s>>>(w, l.n, l.leaf_count, l.lw, njt, ny,
                                                          w.Z[l.cur], w.Z[l.cur ^ 1]);
  return cudaGetLastError();
}
template <int LF, int S>
cudaError_t leaves(const Workspace& w, int n, int leaf_count, int count, cudaStream_t s) {
  const size_t bytes = 128ull * (2 * LF + LF * LF / S);
  if (cudaError_t e = allow_shared(leaf_kernel<LF, S>, bytes); e != cudaSuccess) return e;
  leaf_kernel<LF, S>
      <<<(count + 32 / S - 1) / (32 / S), 32, bytes, s>>>(w, n, leaf_count, count, w.Z[0]);
  return cudaGetLastError();
}

cudaError_t deflate(const Workspace& w, const Level& l, cudaStream_t s) {
  const int order = power_of_two(l.m), fused = l.nodes >= 2 * multiprocessors();
  const size_t bytes = 44ull * order;
  if (order <= 1024) {
    if (cudaError_t e = allow_shared(deflate_kernel<1>, bytes); e != cudaSuccess) return e;
    deflate_kernel<1><<<l.nodes, order, bytes, s>>>(w, l.n, l.leaf_count, l.lw, l.cur, fused);
  } else {
    if (cudaError_t e = allow_shared(deflate_kernel<2>, bytes); e != cudaSuccess) return e;
    deflate_kernel<2><<<l.nodes, 1024, bytes, s>>>(w, l.n, l.leaf_count, l.lw, l.cur, fused);
  }
  if (!fused) {
    const int split = std::max(1, std::min(l.m / 16, 32 * multiprocessors() / l.nodes));
    rotate_kernel<<<dim3(l.nodes, split), 128, 0, s>>>(w, l.n, l.leaf_count, l.lw, l.cur);
  }
  return cudaGetLastError();
}

cudaError_t level(const Workspace& w, const Level& l, int lanes, cudaStream_t s) {
  if (cudaError_t e = deflate(w, l, s); e != cudaSuccess) return e;
  cudaError_t error = cudaSuccess;
  if (lanes == 2) {
    error = l.m > 32 ? secular<2, 128>(w, l, s) : secular<2, 64>(w, l, s);
  } else if (lanes == 4) {
    error = secular<4, 128>(w, l, s);
  } else {
    error = secular<8, 128>(w, l, s);
  }
  if (error != cudaSuccess) return error;
  if (l.h > 128) return update_wgmma<256>(w, l, s);
  if (l.h > 64) return update_wgmma<128>(w, l, s);
  if (l.h <= 16) return update<2, 1>(w, l, s);
  if (l.h <= 32) return update<4, 2>(w, l, s);
  return update<8, 4>(w, l, s);
}

cudaError_t run(const Buffers& b, int p, int batch, cudaStream_t s) {
  const Config config = config_for(p);
  const int leaf_count = leaves_of(p);
  cudaError_t error =
      config.leaf_rows == 16
          ? (leaf_count * batch > 4000 ? leaves<16, 2>(b.w, p, leaf_count, leaf_count * batch, s)
                                       : leaves<16, 4>(b.w, p, leaf_count, leaf_count * batch, s))
          : leaves<8, 2>(b.w, p, leaf_count, leaf_count * batch, s);
  int cur = 0;
  for (int lw = 2; lw <= leaf_count && error == cudaSuccess; lw *= 2, cur ^= 1) {
    const int rows = p / leaf_count * lw;
    error = level(b.w, Level{p, leaf_count, lw, rows, rows / 2, leaf_count / lw * batch, cur},
                  config.lanes_a_root, s);
  }
  if (error != cudaSuccess) return error;
  const int order = power_of_two(p);
  sort_kernel<<<batch, std::min(order / 2, 1024), 8ull * order, s>>>(b.w, p, order);
  return cudaGetLastError();
}

// A launch's share of the batch: the grids stay below 2^31 blocks and the workspace is reused.
constexpr int64_t kMatricesMax = 4096;

}  // namespace
}  // namespace dc

size_t tridiagonal_dc_bytes(const Shape& shape) {
  return dc::Buffers(std::min(shape.batch, dc::kMatricesMax), padded_order(shape.n), nullptr).bytes;
}
size_t tridiagonal_z_bytes(const Shape& shape) {
  const size_t p = padded_order(shape.n);
  return shape.batch * p * p * sizeof(__half);
}

cudaError_t tridiagonal_dc(const Shape& shape, const float* d, const float* e, float* lambda,
                           void* z, void* workspace, cudaStream_t stream) {
  const int p = padded_order(shape.n), ld = shape.ld();
  const dc::Buffers b(std::min(shape.batch, dc::kMatricesMax), p, workspace);
  for (int64_t first = 0; first < shape.batch; first += dc::kMatricesMax) {
    const int count = static_cast<int>(std::min(dc::kMatricesMax, shape.batch - first));
    dc::prepare_kernel<<<count, 256, 0, stream>>>(d + first * ld, e + first * ld, shape.n, ld, p,
                                                  b.d, b.e, b.exponent);
    if (cudaError_t error = dc::run(b, p, count, stream); error != cudaSuccess) return error;
    __half* out = shape.vectors ? static_cast<__half*>(z) + first * p * p : nullptr;
    dc::gather_kernel<<<dim3(p / 8, count), 256, 0, stream>>>(b.w, shape.n, ld, p, b.exponent,
                                                              lambda + first * ld, out);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
