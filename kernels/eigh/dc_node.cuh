// dc_node.cuh: the workspace of the tridiagonal divide and conquer and the nodes of its tree.
//
// The order is cut into NL leaves (a power of two) of multiples of 8 rows. A node of width lw
// covers lw leaves; its eigenvector columns live in slots base .. end-1 of one of two FP16 buffers
// Z[parity], column = slot, rows contiguous. meta[slot] says which buffer and which units of 8
// rows of it are nonzero.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace crucible::eigh {
namespace dc {

typedef unsigned long long u64;
struct WS {
  const float *d, *e;  // inputs [b*n], [b*(n-1)]
  float *lam, *F, *L;  // per slot: eigenvalue, first/last row of the node's eigenvector matrix
  float *cd, *cz, *cF, *cL;
  int* cslot;                // compact non-deflated poles, ascending
  float *rdo, *rtau, *rnrm;  // per root: origin pole, offset, 1/norm
  float4 *tp, *bp, *rp;      // packed poles of the top/bottom half (d,z,slot|..,-), packed roots
                             // (origin,tau,norm,slot|..)
  int *dl, *heads, *gslot, *gnext;
  float *gc, *gs;
  int* meta;  // per slot: buffer parity <<11 | first row unit <<12 | last row unit <<20 (units of 8
              // rows)
  half* Z[2];
  int* cnt;
  float* rho;  // per node: k,kt,kb,ncopy,nruns,.. (8 ints)
  float* Lout;
  int* perm;
};
__host__ __device__ __forceinline__ int bnd(int i, int n, int NL) {
  return 8 * ((i * (n / 8)) / NL);
}
struct Node {
  int b, q, base, mid, end;
  long off;
  int id;
};
__device__ __forceinline__ Node node(int n, int NL, int lw, int bx) {
  Node r;
  int nodes = NL / lw;
  r.b = bx / nodes;
  r.q = bx - r.b * nodes;
  r.base = bnd(r.q * lw, n, NL);
  r.mid = bnd(r.q * lw + lw / 2, n, NL);
  r.end = bnd((r.q + 1) * lw, n, NL);
  r.off = (long)r.b * n + r.base;
  r.id = r.b * nodes + r.q;
  return r;
}
}  // namespace dc
}  // namespace crucible::eigh
