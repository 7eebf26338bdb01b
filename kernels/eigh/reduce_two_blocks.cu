// reduce_two_blocks.cu: tridiagonal reduction for 512 < n <= 1024, a cluster of two blocks a
// matrix.
//
// Shapes: a [batch][n][n] -> Tridiagonal of stages.h; padded in front with zeros to order 1024.
// Deterministic. The steps of a column are those of reduce_one_block.cu; this file's own parts:
//
// Tile (I, J) belongs to block (I - J) mod 2 of the pair, which splits every row block and block
// column evenly. Block columns 32-63 are resident in shared memory (272 / 256 tiles); block
// columns 0-31 live in the workspace in fragment order, small enough to stay in L2 for 60
// matrices, and are read once a column: rows by mma, columns by movmatrix + mma with partial sums
// in shared memory. Each such tile is read and written by one thread only, so no fences.
//
// One exchange a column (two for the first 512): each block sends its part of A x, of x^T A x and
// of the pivot row by st.async; everything row-wise is done in both blocks from the same sums
// (a + b = b + a), so both hold the same bits and nothing is broadcast. The 16 columns of a panel
// and the first of the next pass through a global buffer, published by one cluster barrier a panel.
// Two mbarriers alternate by column parity; a third serves the second exchange.
//
// Cost at 1024: 2 n^3 / 3 mma multiply-adds and about n^3 / 4 * 2 bytes from L2 a matrix.
#include "launch.h"
#include "pair_steps.cuh"
#include "pair_update.cuh"

namespace crucible::eigh {
namespace pair {
namespace {

// The cold tiles of a column's first product, read ahead.
template <bool kFirst>
__device__ __forceinline__ void prefetch(const State& s, int next_block, uint32_t (&cold0)[4][4],
                                         uint32_t (&cold1)[4][4]) {
  if (kFirst) {
    THREAD_PLACE;
    const int Jm = next_block + ((next_block ^ warp ^ s.c) & 1);
    load_cold(cold0, s.cold_tiles + lane, warp, s.c, Jm);
    load_cold(cold1, s.cold_tiles + lane, warp, s.c, Jm + 2);
  }
}

// The thread's entries of column c, the first of a panel.
template <bool kFirst>
__device__ __forceinline__ void start_panel(State& s, int c, const Output& out) {
  THREAD_PLACE;
#pragma unroll
  for (int k = kFirst ? 0 : 1; k < 2; k++) {
    const int r = row + 512 * k;
    const float z = r > c ? __half2float(__ldcg(panel_buffer(s, c) + r)) : 0.f;
    s.entry[k] = r == c ? s.diagonal_entry[k] : z;
    if (r == c && s.c == 0) out.diagonal(c, s.entry[k]);
  }
}

// Columns jbeg .. jend-1. kFirst: the cold block columns 0-31 still count.
template <bool kFirst>
__device__ __forceinline__ void columns(State& s, int first_column, int end_column,
                                        const Output& out) {
  constexpr int kFirstRow = kFirst ? 0 : 1;
  int panel_start = first_column;
  uint32_t cold0[4][4], cold1[4][4];
  prefetch<kFirst>(s, (first_column + 1) >> 4, cold0, cold1);
  start_panel<kFirst>(s, first_column, out);
  const uint32_t memory = shared_address(sm);
#pragma unroll 1
  for (int j = first_column; j < end_column; j++) {
    const int i = j - panel_start, next_block = (j + 1) >> 4;
    const Column c{j, i, panel_start, next_block, memory, kFirst && next_block < kCold};
    publish_column<kFirst>(s, c);
    __syncthreads();
    float y[2] = {0, 0};
    unsigned short next_entries[2] = {0, 0};  // the thread's entries of column j + 1
    {
      THREAD_PLACE;
      if (kFirst || warp + 48 >= next_block) {
#pragma unroll
        for (int k = kFirstRow; k < 2; k++) {
          asm volatile("ld.global.cg.u16 %0, [%1];"
                       : "=h"(next_entries[k])
                       : "l"(panel_buffer(s, panel_start) + (i + 1) * kOrder + row + 512 * k)
                       : "memory");
        }
      }
    }
    dots_and_scalars(s, c, out);
    product<kFirst>(s, c, cold0, cold1, y);
    __syncthreads();
    next_column<kFirst>(s, c, y, next_entries, out);
    if (i == kPanel - 1) {
      __syncthreads();
      panel_start += kPanel;
      update_trailing<kFirst>(s, panel_start, memory, cold0, cold1, out);
      cluster_barrier();
      if (j + 1 < end_column) {
        prefetch<kFirst>(s, (j + 2) >> 4, cold0, cold1);
        start_panel<kFirst>(s, j + 1, out);
      }
    }
  }
  THREAD_PLACE;
#pragma unroll
  for (int k = kFirstRow; k < 2; k++) {  // an unfinished panel
    const int r = row + 512 * k;
    if (s.c == k && panel_start < end_column && r >= panel_start)
      out.panel(panel_start, end_column, r, PANEL_ROW + 32768 * k);
  }
}

// Loads this block's tiles: resident ones to shared memory, cold ones to the workspace, block
// column 0 and the first column of block column 1 to the panel buffer.
__device__ __forceinline__ void load_input(const State& s, const PaddedInput& in) {
  THREAD_PLACE;
#pragma unroll 1
  for (int h = 0; h < 4; ++h) {
    const int I = warp + 16 * h, first = (kOrder - in.n) / kPanel;
#pragma unroll 1
    for (int J = (warp ^ s.c) & 1; J <= I; J += 2 * 4) {
      float2 v[4][4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (J + 2 * u <= I) in.tile(I, J + 2 * u, g, q, v[u]);
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int Ju = J + 2 * u, m = kTiles - Ju - s.c;
        if (Ju > I) break;
        const int index = ((m * m) >> 2) + ((kTiles - 1 - I) >> 1);
        clear_diagonal(v[u],
                       Ju != I ? Diagonal::kNone
                               : (Ju < kCold ? Diagonal::kStrictLower : Diagonal::kBothHalves),
                       g, q);
        uint32_t f[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) f[k] = to_half2(v[u][k]);
        if (Ju < kCold) {
          __stcg((uint4*)s.cold_tiles + index * 32 + lane, make_uint4(f[0], f[1], f[2], f[3]));
        } else {
          store_tile(shared_address(sm) + index * 512, lane, f);
        }
        publish(s.panel_columns + (first & 1) * kPanelBuffer, I, Ju, first, g, q, f);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 2; ++k)
    const_cast<State&>(s).diagonal_entry[k] = in.at(row + 512 * k, row + 512 * k);
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads, 1)
    reduce_pair_kernel(const __grid_constant__ Arguments args) {
  State s;
  const int tid = threadIdx.x;
  s.tid = tid;
  s.c = blockIdx.x & 1;
  const int64_t matrix = blockIdx.x >> 1;
  s.peer = map_to_peer(shared_address(sm), s.c ^ 1);
  const int resident = ((33 - s.c) * (33 - s.c)) >> 2;  // cold tiles are numbered behind these
  s.cold_tiles = args.cold + (static_cast<int64_t>(blockIdx.x) * kColdTiles - resident) * 32;
  s.panel_columns = args.panels + matrix * 2 * kPanelBuffer;
  for (int i = tid; i < kTiles * 64; i += kThreads)
    ((uint4*)(sm + kPanelAt))[i] = make_uint4(0, 0, 0, 0);
  if (tid < 128) ((__half*)(sm + kCoefficients))[tid] = __ushort_as_half(0);
  if (tid == 0) {
    for (int k = 0; k < 3; ++k) mbarrier_init(shared_address(sm) + kBarriers + 8 * k, 1);
    mbarrier_init_fence();
  }
  const PaddedInput in{
      args.a + matrix * args.n * args.n, args.n, kOrder - args.n, args.exponent[matrix], args.upper,
      args.status[matrix] != 0};
  load_input(s, in);
  cluster_barrier();
  const Output out{args, matrix, kOrder};
  const int start = (kOrder - args.n) / kPanel * kPanel;
  columns<true>(s, start, 512, out);
  columns<false>(s, 512, kOrder - 1, out);
  cluster_barrier();  // the peer may still write here
}

}  // namespace
}  // namespace pair

size_t reduce_two_blocks_bytes(const Shape& shape) {
  using namespace pair;  // NOLINT
  Carver carver(nullptr);
  carver.take<uint4>(static_cast<size_t>(shape.batch) * 2 * kColdTiles * 32);
  carver.take<__half>(static_cast<size_t>(shape.batch) * 2 * kPanelBuffer);
  return carver.used();
}

cudaError_t reduce_two_blocks(const Shape& shape, const float* a, bool upper,
                              const int* scale_exponent, const int* status, const Tridiagonal& t,
                              void* workspace, cudaStream_t stream) {
  using namespace pair;  // NOLINT
  const cudaError_t error = cudaFuncSetAttribute(
      reduce_pair_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;
  constexpr int64_t kMatricesMax = 1 << 20;  // a launch
  Carver carver(workspace);
  uint4* cold = carver.take<uint4>(static_cast<size_t>(shape.batch) * 2 * kColdTiles * 32);
  __half* panels = carver.take<__half>(static_cast<size_t>(shape.batch) * 2 * kPanelBuffer);
  for (int64_t first = 0; first < shape.batch; first += kMatricesMax) {
    const int64_t count = std::min(kMatricesMax, shape.batch - first);
    Tridiagonal part = t;
    part.d += first * shape.ld();
    part.e += first * shape.ld();
    part.tau += first * shape.ld();
    part.v = shape.vectors ? t.v + first * shape.n * shape.ld() : nullptr;
    const Arguments args{a + first * shape.n * shape.n,
                         scale_exponent + first,
                         status + first,
                         part,
                         cold + first * 2 * kColdTiles * 32,
                         panels + first * 2 * kPanelBuffer,
                         shape.n,
                         shape.ld(),
                         upper};
    reduce_pair_kernel<<<static_cast<unsigned>(2 * count), kThreads, kSharedBytes, stream>>>(args);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
