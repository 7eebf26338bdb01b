// size_class.h: what the C interface sees of one size class: the kernels compiled from that
// class's knobs.
#ifndef CRUCIBLE_KERNELS_EIGH_CPU_SIZE_CLASS_H_
#define CRUCIBLE_KERNELS_EIGH_CPU_SIZE_CLASS_H_

#include <cstddef>
#include <cstdint>

namespace eigh_cpu {

struct SizeClass {
  const char* name;
  int n_max;
  int batch_chunk;
  const char* configuration;  // the knobs as a JSON object
  // Bytes one thread needs for matrices of size n.
  size_t (*workspace_bytes)(int n);
  // Matrices first .. last - 1 of the batch, in `workspace` aligned to 64 bytes.
  void (*solve)(int n, int64_t first, int64_t last, const float* a, float* values, float* vectors,
                int32_t* info, void* workspace);
};

extern const SizeClass kSmall, kMedium, kLarge;

}  // namespace eigh_cpu

#endif  // CRUCIBLE_KERNELS_EIGH_CPU_SIZE_CLASS_H_
