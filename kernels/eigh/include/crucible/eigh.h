/* eigh.h: batched FP32 symmetric eigendecomposition on NVIDIA GPUs (sm_90a, sm_100a).
 *
 * a[batch][n][n] -> lambda[batch][n] ascending and q[batch][n][n], eigenvector i in column i.
 * Everything is queued on `stream`: no host synchronisation, no allocation, no hidden state, so a
 * call may be captured in a CUDA graph and any number of host threads may call at once with their
 * own workspaces. The input is never written. Only the chosen triangle of a is read. A matrix's
 * result does not depend on the rest of the batch; for one shape it repeats bit for bit. All
 * pointers are device pointers, 16-byte aligned (workspace: 256-byte). Any n >= 0 and batch >= 0;
 * element counts are 64-bit.
 */
#ifndef CRUCIBLE_EIGH_H_
#define CRUCIBLE_EIGH_H_

#include <stddef.h>
#include <stdint.h>

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

/* Bytes of workspace for this shape; 0 is a valid answer. */
crucible_eigh_status crucible_eigh_workspace(int64_t n, int64_t batch, int flags, size_t* bytes);

/* info[b]: 0 solved; 1 the matrix holds NaN or Inf (its outputs are NaN); 2 not converged.
 * info may be null when workspace is given (results are the same). */
crucible_eigh_status crucible_eigh(int64_t n, int64_t batch, const float* a, float* lambda,
                                   float* q, int32_t* info, void* workspace, size_t workspace_bytes,
                                   int flags, crucible_eigh_stream stream);

/* The cudaError_t of this thread's last CRUCIBLE_EIGH_CUDA_ERROR, and a status in words. */
int crucible_eigh_last_cuda_error(void);
const char* crucible_eigh_status_string(crucible_eigh_status status);

#ifdef __cplusplus
} /* extern "C" */

namespace crucible {

/* The same call for C++: `workspace` must hold crucible_eigh_workspace() bytes. */
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
  crucible_eigh_status run() const {
    return crucible_eigh(n, batch, a, lambda, q, info, workspace, workspace_bytes, flags, stream);
  }
};

} /* namespace crucible */
#endif
#endif /* CRUCIBLE_EIGH_H_ */
