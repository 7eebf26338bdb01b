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
// Buffers of all matrices, order n each. "Per slot" and "per pole" arrays are [batch][n], a node's
// part from its base on; poles and roots are in ascending order, the deflated ones left out.
struct Workspace {
  const float *d, *e;  // T: [batch][n], [batch][n-1]
  // Per slot: eigenvalue, first and last row of the node's eigenvector matrix.
  float *eigenvalue, *first_row, *last_row;
  // Per pole of the secular equation: d_i, z_i (the rank-one vector), and the rows above.
  float *pole, *weight, *pole_first_row, *pole_last_row;
  int* pole_slot;                    // slot | target buffer << 11 | row units as in meta
  float4 *top_poles, *bottom_poles;  // poles with rows in the half: (d, z, pole_slot, -)
  float4* roots;                     // (origin pole, offset from it, 1 / norm, pole_slot)
  // Deflation by rotation: slots to copy to the current buffer; heads of chains of rotations; a
  // chain's columns (slot | meta), next links, cosines and sines, by position in the sorted order.
  int *copies, *run_heads, *rotation_slot, *rotation_next;
  float *rotation_cos, *rotation_sin;
  int* meta;    // per slot: buffer << 11 | first row unit << 12 | last row unit << 20 (8 rows each)
  half* Z[2];   // [batch][slot][row]
  int* counts;  // per node 8: poles, those in the top half, in the bottom half, copies, chains
  float* rho;   // per node: the modification is rho z z^T
  float* sorted_eigenvalue;
  int* slot_of_rank;
};
// First row of leaf i.
__host__ __device__ __forceinline__ int boundary(int i, int n, int leaf_count) {
  return 8 * ((i * (n / 8)) / leaf_count);
}
struct Node {
  int b, q;            // matrix, place in its level
  int base, mid, end;  // rows: mid is the cut
  long off;            // of its part of per-slot arrays
  int id;              // over all matrices of the level
};
// The node of width lw (in leaves) that block bx works on; a matrix's nodes are adjacent.
__device__ __forceinline__ Node node(int n, int leaf_count, int lw, int bx) {
  Node r;
  int nodes = leaf_count / lw;
  r.b = bx / nodes;
  r.q = bx - r.b * nodes;
  r.base = boundary(r.q * lw, n, leaf_count);
  r.mid = boundary(r.q * lw + lw / 2, n, leaf_count);
  r.end = boundary((r.q + 1) * lw, n, leaf_count);
  r.off = (long)r.b * n + r.base;
  r.id = r.b * nodes + r.q;
  return r;
}
}  // namespace dc
}  // namespace crucible::eigh
