// reduce_one_block.cu: tridiagonal reduction for 64 <= n <= 512, one block a matrix, on chip.
//
// Shapes: a [batch][n][n] -> Tridiagonal of stages.h. The matrix is padded in front with zeros to
// order 512 (or 256): a zero column costs one harmless step, at most 15 of them. Deterministic.
//
// Layout. The trailing matrix is an FP16 packed lower triangle of 16x16 tiles in shared memory
// with its diagonal apart in FP32 registers (one row a thread). Tile (I, J) has the index
// J'(J'+1)/2 + I' with J' = T-1-J, I' = T-1-I, so the trailing part is a prefix, and 367 tiles fit:
// block columns 6-31 (and the lower half of 5). For n > 416 block columns 0-5 start in registers
// as mma fragments. Warp w owns row blocks w and w + T/2; each tile is read twice, once as A and
// once transposed, so no sum of the matrix-vector product crosses a warp.
//
// Column j costs two barriers. Step 1: publish x (column j below the diagonal) and its norm.
// Step 2: A x by mma, V^T x and W^T x for the panel's corrections, x^T A x. Step 3: from
// v = (x - beta e1) / (alpha - beta) (stored in FP16) and p = A v by linearity
// (A x - beta a_{j+1}), w = tau p - (tau^2/2)(v^T p) v, and the next column. Every 16 columns the
// trailing tiles take A -= V W^T + W V^T by mma. Below order 256 a second kernel goes on with two
// blocks a multiprocessor, because a column's cost there is latency.
//
// Cost at 512: 2/3 n^3 mma multiply-adds a matrix, n^3/3 * 4 bytes of shared memory reads.
// Error: the tiles round once per panel (FP16), so the scaled eigen-residual is 12-15 at n = 512
// and about 30 at n = 176 (gate 200); see docs/eigh.md.
#include "heuristics.h"
#include "launch.h"
#include "single_steps.cuh"
#include "single_update.cuh"

namespace crucible::eigh {
namespace single {
namespace {

// Columns first_column .. end_column-1. kFirst: block columns 0-5 are in registers.
template <bool kFirst, int TT>
__device__ __forceinline__ void columns(State& s, Registers<TT>& registers, int first_column,
                                        int end_column, const Output& out) {
  using Memory = MemoryMap<TT>;
  constexpr int kHalf = TT / 2, kHeld = Memory::kHeld, kHeldFrom = Memory::kHeldFrom;
  static_assert(kHeldFrom >= kHalf, "the held block columns belong to the second row blocks");
  auto& held = registers.held;
  int panel_start = first_column;
  const auto start_panel = [&](int j) {
    THREAD_PLACE;
    const float z = element<kFirst, TT>(s, registers, j);
    if (row < j) return;
    s.entry = row == j ? s.diagonal_entry : z;
    if (row == j) out.diagonal(j, s.entry);
  };
  start_panel(first_column);
  if (!kFirst) {
    THREAD_PLACE;
    const Context ctx = PRODUCT_CONTEXT;
    const int rows2 = warp + kHalf;
#pragma unroll
    for (int k = 0; k < kHeld; k++) {
      const int J = kHeldFrom + k;
      if (J <= rows2)
        load_tile(ctx.tiles + tile_index(TT, rows2, J) * 512, held[k]);
      else
        load_tile_transposed(ctx.tiles + tile_index(TT, J, rows2) * 512, held[k]);
    }
  }
#pragma unroll 1
  for (int j = first_column; j < end_column; j++) {
    const Column c{j, j - panel_start, panel_start, (j + 1) >> 4};
    publish_column<TT>(s, c);
    __syncthreads();
    float y = 0, next_entry = 0;
    if (s.tid < 6 * 32)
      dots_and_scalars<TT>(s, c, out);
    else
      absent_from<1>();
    multiply<kFirst, TT>(s, c, registers, y, next_entry);
    __syncthreads();
    next_column<kFirst, TT>(s, c, registers, y, next_entry, out);
    if (c.i == kPanel - 1) {
      __syncthreads();
      panel_start += kPanel;
      update_trailing<kFirst, TT>(s, panel_start, registers, out);
      __syncthreads();
      if (j + 1 < end_column) start_panel(j + 1);
    }
  }
  THREAD_PLACE;
  if (panel_start < end_column && row >= panel_start)
    out.panel(panel_start, end_column, row, PANEL_ROW);  // an unfinished panel
}

__device__ __forceinline__ PaddedInput input_of(const Arguments& g, int64_t matrix, int order) {
  return PaddedInput{g.a + matrix * g.n * g.n, g.n,     order - g.n,
                     g.exponent[matrix],       g.upper, g.status[matrix] != 0};
}
__device__ __forceinline__ void unpack_index(int t, int index, int* block_row, int* block_column) {
  const int j = static_cast<int>((sqrtf(8.f * index + 1.f) - 1.f) * 0.5f);
  *block_row = t - 1 - (index - ((j * (j + 1)) >> 1));
  *block_column = t - 1 - j;
}
__device__ __forceinline__ void to_fragment(float2* v, Diagonal kind, int g, int q, uint32_t* f) {
  clear_diagonal(v, kind, g, q);
#pragma unroll
  for (int k = 0; k < 4; ++k) f[k] = to_half2(v[k]);
}
// For every matrix anew: the panel's columns that are not made yet are multiplied by zero
// coefficients, and what the block's last matrix left there may be NaN.
template <int T>
__device__ __forceinline__ void clear_panel(int tid) {
  for (int i = tid; i < T * 64; i += 16 * T)
    ((uint4*)(sm + MemoryMap<T>::kPanelAt))[i] = make_uint4(0, 0, 0, 0);
  if (tid < 128) ((__half*)(sm + MemoryMap<T>::kCoefficients))[tid] = __ushort_as_half(0);
}
// Fills the resident tiles from the input, four tiles in flight a warp.
template <int T, int kWarps>
__device__ __forceinline__ void load_resident(const PaddedInput& in, int warp, int lane) {
  constexpr int kFlight = 4;
  const int g = lane >> 2, q = lane & 3;
  for (int first = warp; first < MemoryMap<T>::kTiles; first += kWarps * kFlight) {
    float2 v[kFlight][4];
#pragma unroll
    for (int z = 0; z < kFlight; ++z) {
      const int u = first + z * kWarps;
      int I, J;
      unpack_index(T, u, &I, &J);
      if (u < MemoryMap<T>::kTiles) in.tile(I, J, g, q, v[z]);
    }
#pragma unroll
    for (int z = 0; z < kFlight; ++z) {
      const int u = first + z * kWarps;
      int I, J;
      unpack_index(T, u, &I, &J);
      uint32_t f[4];
      if (u >= MemoryMap<T>::kTiles) break;
      to_fragment(v[z], I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q, f);
      store_tile(shared_address(sm) + u * 512, lane, f);
    }
  }
}

// 256 < n <= 512: columns up to order 256, the rest handed over.
__global__ void __launch_bounds__(kThreads, 1)
    reduce_first_kernel(const __grid_constant__ Arguments args) {
  constexpr int TT = 32, kHalf = 16;
  using Memory = MemoryMap<TT>;
  State s;
  const int tid = threadIdx.x;
  s.tid = tid;
  const int start = (kOrder - args.n) / kPanel * kPanel;
  for (int64_t matrix = blockIdx.x; matrix < args.batch; matrix += gridDim.x) {
    const PaddedInput in = input_of(args, matrix, kOrder);
    const Output out{args, matrix, kOrder};
    THREAD_PLACE;
    __syncthreads();
    clear_panel<TT>(tid);
    load_resident<TT, 16>(in, warp, lane);
    Registers<TT> registers;
    auto& first_upper = registers.first_upper;
    auto& first_lower = registers.first_lower;
    if (start < kRegisterColumns * kPanel) {
#pragma unroll
      for (int J = 0; J < kRegisterColumns; ++J) {
        float2 v[4];
        const int I = max(warp, J);
        in.tile(I, J, g, q, v);
        to_fragment(v, I == J ? Diagonal::kBothHalves : Diagonal::kNone, g, q, first_upper[J]);
        if (J < kRegisterColumns - 1) {
          in.tile(warp + kHalf, J, g, q, v);
          to_fragment(v, Diagonal::kNone, g, q, first_lower[J < kRegisterColumns - 1 ? J : 0]);
        }
      }
    }
    s.diagonal_entry = in.at(row, row);
    __syncthreads();
    int at = start;
    if (at < kRegisterColumns * kPanel) {
      columns<true, TT>(s, registers, at, kRegisterColumns * kPanel, out);
      at = kRegisterColumns * kPanel;
    }
    columns<false, TT>(s, registers, at, kHalfOrder, out);
    char* h = args.handoff + matrix * kHandoffBytes;
    for (int k = tid; k < 136 * 32; k += kThreads) ((uint4*)h)[k] = *(uint4*)(sm + k * 16);
    if (row >= kHalfOrder) ((float*)(h + 136 * 512))[row - kHalfOrder] = s.diagonal_entry;
  }
}

// All columns of an order of 16 TT: the last 256 from the hand-over, or a whole matrix
// (kFromInput).
template <bool kFromInput, int TT>
__global__ void __launch_bounds__(16 * TT, TT == 16 ? 2 : 1)
    reduce_whole_kernel(const __grid_constant__ Arguments args) {
  constexpr int kHalf = TT / 2, kThis = 16 * TT, kWarps = TT / 2;
  using Memory = MemoryMap<TT>;
  State s;
  const int tid = threadIdx.x;
  s.tid = tid;
  const int start = kFromInput ? (kThis - args.n) / kPanel * kPanel : 0;
  for (int64_t matrix = blockIdx.x; matrix < args.batch; matrix += gridDim.x) {
    const Output out{args, matrix, kThis};
    THREAD_PLACE;
    __syncthreads();
    clear_panel<TT>(tid);
    if (kFromInput) {
      const PaddedInput in = input_of(args, matrix, kThis);
      load_resident<TT, kWarps>(in, warp, lane);
      s.diagonal_entry = in.at(row, row);
    } else {
      const char* h = args.handoff + matrix * kHandoffBytes;
#pragma unroll 4
      for (int k = tid; k < 136 * 32; k += kThis)
        *(uint4*)(sm + k * 16) = __ldcs((const uint4*)h + k);
      s.diagonal_entry = ((const float*)(h + 136 * 512))[row];
    }
    __syncthreads();
    Registers<TT> registers;
    columns<false, TT>(s, registers, start, kThis - 1, out);
  }
}

template <bool kFromInput, int TT>
cudaError_t launch_whole(const Arguments& args, int blocks_a_multiprocessor, cudaStream_t stream) {
  const cudaError_t error =
      cudaFuncSetAttribute(reduce_whole_kernel<kFromInput, TT>,
                           cudaFuncAttributeMaxDynamicSharedMemorySize, MemoryMap<TT>::kBytes);
  if (error != cudaSuccess) return error;
  const unsigned blocks = grid_for(args.batch, multiprocessors() * blocks_a_multiprocessor);
  reduce_whole_kernel<kFromInput, TT><<<blocks, 16 * TT, MemoryMap<TT>::kBytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace
}  // namespace single

size_t reduce_one_block_bytes(const Shape& shape) {
  return shape.n > single::kMiddleOrder ? shape.batch * single::kHandoffBytes : 0;
}

cudaError_t reduce_one_block(const Shape& shape, const float* a, bool upper,
                             const int* scale_exponent, const int* status, const Tridiagonal& t,
                             void* workspace, cudaStream_t stream) {
  using namespace single;  // NOLINT
  Arguments args{a,           scale_exponent, status,     t,    static_cast<char*>(workspace),
                 shape.batch, shape.n,        shape.ld(), upper};
  if (!shape.vectors) args.t.v = nullptr;
  if (shape.n <= kHalfOrder) return launch_whole<true, 16>(args, 2, stream);
  if (shape.n <= kMiddleOrder) return launch_whole<true, kMiddleOrder / 16>(args, 1, stream);
  const cudaError_t error = cudaFuncSetAttribute(
      reduce_first_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MemoryMap<32>::kBytes);
  if (error != cudaSuccess) return error;
  const unsigned blocks = grid_for(shape.batch, multiprocessors());
  reduce_first_kernel<<<blocks, kThreads, MemoryMap<32>::kBytes, stream>>>(args);
  return launch_whole<false, 16>(args, 2, stream);
}

}  // namespace crucible::eigh
