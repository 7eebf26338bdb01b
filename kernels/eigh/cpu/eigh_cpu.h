/* eigh_cpu.h: batched FP32 symmetric eigendecomposition on the CPU, as a C interface.
 *
 * Every library that exports these four functions can be measured and checked by the same
 * harness: the project's own kernel (libeigh_cpu.so) and its peers (libeigh_peer_*.so).
 *
 * Shapes, row-major: a [batch][n][n] (only the lower triangle is read, nothing is written),
 * eigenvalues [batch][n] ascending, eigenvectors [batch][n][n] with vectors in the columns,
 * info [batch]: 0 solved, > 0 not converged, -1 NaN or Inf in that matrix (its outputs are NaN).
 *
 * A result depends on the matrix alone: not on its place in the batch, on its neighbours or on
 * the number of threads. All functions may be called from several threads at once, each call
 * with its own workspace.
 */
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_EIGH_CPU_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_EIGH_CPU_H_

#include <stddef.h>
#include <stdint.h>

#define EIGH_CPU_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: 1. */
EIGH_CPU_API int eigh_cpu_abi(void);

/* The knobs compiled in, as the text of one JSON object. Static storage. */
EIGH_CPU_API const char* eigh_cpu_configuration(void);

/* Bytes eigh_cpu_solve needs; 0 for arguments it would refuse. The content need not be cleared. */
EIGH_CPU_API size_t eigh_cpu_workspace_bytes(int64_t batch, int64_t n, int threads);

/* Solves the batch with up to `threads` threads, the caller's among them. Returns 0, or nonzero
 * with nothing written when an argument is bad: 1 negative size or threads < 1, 2 a null pointer
 * to something that is needed, 3 workspace too small. Batch 0 and n 0 are fine and need nothing. */
EIGH_CPU_API int eigh_cpu_solve(int64_t batch, int64_t n, const float* a, float* eigenvalues,
                                float* eigenvectors, int32_t* info, void* workspace,
                                size_t workspace_bytes, int threads);

#ifdef __cplusplus
}
#endif

#endif /* CRUCIBLE_KERNELS_EIGH_CPU_EIGH_CPU_H_ */
