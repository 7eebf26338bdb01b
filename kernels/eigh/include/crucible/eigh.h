/* eigh.h: batched FP32 symmetric eigendecomposition on NVIDIA GPUs (sm_90a, sm_100a).
 *
 * a[batch][n][n] -> lambda[batch][n] ascending and q[batch][n][n], eigenvector i in column i, of
 * unit length; lambda has the units of a. The conventions are those of torch.linalg.eigh: signs,
 * and the basis of a space of equal eigenvalues, are not determined.
 *
 * Queueing. Everything is queued on `stream`: no host synchronisation, no allocation, no hidden
 * state, so a call may be captured in a CUDA graph, and any number of host threads may call at
 * once with workspaces of their own. All pointers are device pointers of the current device,
 * 16-byte aligned (workspace: 256-byte), and must stay valid until the work is done. Any n in
 * 0 ... 2^25 - 1 and batch >= 0; element counts are 64-bit. The input is never written and only its
 * chosen triangle is read. lambda, q, info and workspace may hold anything before; none overlaps
 * another.
 *
 * Accuracy, in FP64 on the FP32 input, eps = 2^-23: norm1(A Q - Q L) <= 200 n eps norm1(A),
 * norm1(Q^T Q - I) <= 100 n eps, norm1(Q L Q^T - A) <= 400 n eps norm1(A): the gates of the public
 * eigh benchmark (where norm1(A) is below about 1e-40, plus the rounding of lambda to subnormals).
 * A matrix whose check fails is solved again in FP32, in the same stream. Up to n = 192 eigenvalues
 * are good to FP32 rounding; from 193 on the reduction keeps the matrix in FP16, and they are off by
 * up to about 2^-12 of the largest. What is reached per order, why, the sources: docs/eigh.md.
 *
 * Determinism. For one shape the results repeat bit for bit and do not depend on the rest of the
 * batch; with another batch size the last bits may differ.
 */
#ifndef CRUCIBLE_EIGH_H_
#define CRUCIBLE_EIGH_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CRUCIBLE_EIGH_API __attribute__((visibility("default")))
#else
#define CRUCIBLE_EIGH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st* crucible_eigh_stream; /* a cudaStream_t */

typedef enum {
  CRUCIBLE_EIGH_VECTORS = 0,     /* row-major q; the default */
  CRUCIBLE_EIGH_VALUES_ONLY = 1, /* q is ignored and may be null */
  CRUCIBLE_EIGH_UPPER = 2,       /* read the upper triangle (of the row-major view) */
  CRUCIBLE_EIGH_COLUMN_MAJOR = 4 /* a and q are column-major; "upper" then means that view's */
} crucible_eigh_flags;           /* or-ed together */

typedef enum {
  CRUCIBLE_EIGH_OK = 0,
  CRUCIBLE_EIGH_INVALID_ARGUMENT = 1,
  CRUCIBLE_EIGH_WORKSPACE_TOO_SMALL = 2,
  CRUCIBLE_EIGH_CUDA_ERROR = 3 /* crucible_eigh_last_cuda_error() says which */
} crucible_eigh_status;

/* Bytes of workspace that crucible_eigh needs with the same n, batch and flags on the current
 * device (its architecture decides the route); 0 is a valid answer. From n = 385 on about 2.4 times
 * the input where n is 512, 1024 or 2048, up to 8 times just above; docs/eigh.md has the formula.
 * INVALID_ARGUMENT: a size is negative or too large, a flag is unknown, or bytes is null. */
CRUCIBLE_EIGH_API crucible_eigh_status crucible_eigh_workspace(int64_t n, int64_t batch, int flags,
                                                               size_t* bytes);

/* Solves the batch. Per matrix, a: n*n floats; lambda: n floats; q: n*n floats (may be null with
 * VALUES_ONLY); info: one int32 (info itself may be null). info[b]: 0 solved; 1 the triangle holds
 * NaN or Inf (that matrix's outputs are NaN, the others keep their bits); 2 the iteration did not
 * converge (its outputs are the state it was left in).
 *
 * INVALID_ARGUMENT: as above, or a needed pointer is null or not aligned. WORKSPACE_TOO_SMALL:
 * workspace_bytes is less than crucible_eigh_workspace() says. CUDA_ERROR: a launch was refused;
 * nothing may be read from the outputs. Errors of the queued work itself appear where the stream is
 * next synchronised.
 * n = 0 or batch = 0: OK, and nothing is touched. */
CRUCIBLE_EIGH_API crucible_eigh_status crucible_eigh(int64_t n, int64_t batch, const float* a,
                                                     float* lambda, float* q, int32_t* info,
                                                     void* workspace, size_t workspace_bytes,
                                                     int flags, crucible_eigh_stream stream);

/* The cudaError_t of this thread's last CRUCIBLE_EIGH_CUDA_ERROR (0 before any), and a status in
 * words (a static string). */
CRUCIBLE_EIGH_API int crucible_eigh_last_cuda_error(void);
CRUCIBLE_EIGH_API const char* crucible_eigh_status_string(crucible_eigh_status status);

#ifdef __cplusplus
} /* extern "C" */

namespace crucible {

/* The same call for C++: size() sets workspace_bytes to what `workspace` must hold. */
struct EighCall {
  int64_t n = 0, batch = 0;
  const float* a = nullptr;
  float* lambda = nullptr;
  float* q = nullptr;
  int32_t* info = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  int flags = CRUCIBLE_EIGH_VECTORS;
  crucible_eigh_stream stream = nullptr;
  crucible_eigh_status size() { return crucible_eigh_workspace(n, batch, flags, &workspace_bytes); }
  crucible_eigh_status run() const {
    return crucible_eigh(n, batch, a, lambda, q, info, workspace, workspace_bytes, flags, stream);
  }
};

} /* namespace crucible */
#endif
#endif /* CRUCIBLE_EIGH_H_ */
