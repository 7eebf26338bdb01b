// back_transform.cu: Q = NewtonSchulz(H_0 H_1 ... Z), FP16 operands, FP32 sums (wgmma, sm_90a).
//
// Works at the padded order P (512, 1024 or 2048): V is read with zeros beyond its columns, Q is
// written back at its own order. pack_kernel turns V into swizzled 64x64 tiles with the compact-WY
// factor T of every 64 reflectors, from tau = 2 / (v^T v) of the stored v, so that each block
// reflector is orthogonal to FP16 accuracy of T. back_kernel applies all panels, last first, to 64
// columns of Z held in registers as A fragments. gram_kernel makes E = half(0.5 (I - Z^T Z)), upper
// tiles; ns_kernel writes Q = Z + Z E in FP32: the residual form, so that FP16 errors of E cost
// E * 2^-11 only. Deterministic. Flops: 2 P^3 back, 1 P^3 Gram, 2 P^3 apply.
//
// Layouts. Z in: [matrix][column][row]. Packed Z: 64x64 tiles (column block, row block), one
// 128-byte line a column, 16-byte chunk index xor (column & 7). Packed V, panel by panel: T, then
// the row blocks from the panel down; one line per matrix row in the order of row_of_pos, 64
// reflectors a line, same swizzle: with that order the accumulator fragments of one product are
// the A fragments of the next. One V tile serves Z^T V (MN-major B) and W V^T (K-major B).
#include "back_apply.cuh"
#include "heuristics.h"
#include "launch.h"
#include "newton_schulz.cuh"
#include "stages.h"

namespace crucible::eigh {
using namespace back;  // NOLINT: this file is the host side of that namespace
namespace {

struct Buffers {
  uint8_t *v, *z, *e;
  size_t bytes;
  Buffers(const Shape& shape, void* workspace) {
    const size_t p = padded_order(shape.n), blocks = p / 64, batch = shape.batch;
    Carver carver(workspace);
    v = carver.take<uint8_t>(batch * panel_start(blocks, blocks) * kTileBytes + 1024);
    z = carver.take<uint8_t>(batch * blocks * blocks * kTileBytes + 1024);
    e = carver.take<uint8_t>(batch * blocks * blocks * kTileBytes + 1024);
    bytes = carver.used();
  }
};

template <typename Kernel>
cudaError_t set_shared(Kernel kernel, int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

cudaError_t launch_back(const uint8_t* v, const __half* z, uint8_t* out, int p, unsigned batch,
                        cudaStream_t stream) {
  if (p == 512) {
    if (cudaError_t error = set_shared(back_kernel<1>, Cfg<1>::SMEM); error != cudaSuccess) {
      return error;
    }
    const unsigned grid = grid_for(batch * 4ll, multiprocessors());
    back_kernel<1><<<grid, 384, Cfg<1>::SMEM, stream>>>(v, z, out, p, batch);
    return cudaGetLastError();
  }
  if (p == 1024) {
    if (cudaError_t error = set_shared(back_kernel<2>, Cfg<2>::SMEM); error != cudaSuccess) {
      return error;
    }
    back_kernel<2><<<dim3(p / 64, batch), 384, Cfg<2>::SMEM, stream>>>(v, z, out, p, batch);
    return cudaGetLastError();
  }
  if (cudaError_t error = set_shared(back_kernel<4>, Cfg<4>::SMEM); error != cudaSuccess) {
    return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(p / 64 * 2, batch);
  config.blockDim = dim3(384);
  config.dynamicSmemBytes = Cfg<4>::SMEM;
  config.stream = stream;
  cudaLaunchAttribute pair[1];
  pair[0].id = cudaLaunchAttributeClusterDimension;
  pair[0].val.clusterDim = {2, 1, 1};
  config.attrs = pair;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, back_kernel<4>, v, z, out, p, static_cast<int>(batch));
}

}  // namespace

size_t back_transform_bytes(const Shape& shape) { return Buffers(shape, nullptr).bytes; }

cudaError_t back_transform(const Shape& shape, void* z, const Tridiagonal& t, float* q,
                           void* workspace, cudaStream_t stream) {
  const int p = padded_order(shape.n), blocks = p / 64, tiles = p / 128;
  const Buffers w(shape, workspace);
  constexpr int kGramShared = kGramStages * 4 * kTileBytes + 2048;
  cudaError_t error = set_shared(gram_kernel, kGramShared);
  if (error == cudaSuccess) error = set_shared(ns_kernel<2>, NC<2>::SMEM);
  if (error != cudaSuccess) return error;
  constexpr int64_t kMatricesMax = 32768;  // a launch: gridDim.y
  const size_t square = static_cast<size_t>(p) * p;
  for (int64_t first = 0; first < shape.batch; first += kMatricesMax) {
    const unsigned count = static_cast<unsigned>(std::min(kMatricesMax, shape.batch - first));
    uint8_t* v = w.v + first * panel_start(blocks, blocks) * kTileBytes;
    uint8_t* zp = w.z + first * square * 2;
    uint8_t* e = w.e + first * square * 2;
    pack_kernel<<<dim3(blocks, count), 256, 0, stream>>>(t.v + first * shape.n * shape.ld(), v, p,
                                                         shape.n, shape.ld());
    error = launch_back(v, static_cast<const __half*>(z) + first * square, zp, p, count, stream);
    if (error != cudaSuccess) return error;
    gram_kernel<<<dim3(tiles * (tiles + 1) / 2, count), 288, kGramShared, stream>>>(zp, e, p);
    ns_kernel<2><<<dim3(tiles * (p / 256), count), 384, NC<2>::SMEM, stream>>>(
        zp, e, q + first * shape.n * shape.n, p, shape.n);
  }
  return cudaGetLastError();
}

}  // namespace crucible::eigh
