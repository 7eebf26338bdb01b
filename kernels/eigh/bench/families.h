// families.h: the matrices of the checks and benchmarks, made on the device.
//
// A family is a name: the cases of the public problem ("dense", "mixed", "lapack_band_even_high",
// ...) and the wide families beyond them (`wide_families()`). Matrix b of a batch depends on
// (family, n, cond, seed, b) alone. Entries are formed in FP64, symmetrised and rounded to FP32
// once. Spectra are conjugated by a Haar-distributed orthogonal matrix (a product of Householder
// reflections of Gaussian vectors, Stewart 1980).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crucible::eigh::bench {

struct Case {
  int64_t batch = 0;
  int n = 0;
  double cond = 0;
  std::string family;
};

// The 39 correctness cases and the 13 ranked ones, in the problem's order.
const std::vector<Case>& correctness_cases();
const std::vector<Case>& ranked_cases();

// Families that no tuning has seen. "nan" and "inf" are not among them: see eigh_cuda_check.
const std::vector<std::string>& wide_families();

// Fills a[batch][n][n] (device memory). Blocks until done. Exits with a message on an unknown
// family or a CUDA error: a benchmark has nothing better to do.
void generate(const Case& c, uint64_t seed, float* a);

}  // namespace crucible::eigh::bench
