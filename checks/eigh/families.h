// families.h: every kind of input matrix the check and the benchmark use, by name, at any n.
//
// Matrix `index` of a batch depends on (seed, index, n, cond, kind) alone. It is built in FP64,
// made symmetric there, and rounded once to FP32, so the FP32 matrix is symmetric to the bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checks/eigh/random.h"
#include "checks/eigh/square.h"

namespace crucible::eigh {

// What a family's generator gets. `random` is the matrix's own.
struct FamilyInput {
  std::int64_t n = 1;
  double cond = 0;
  Random random{0};
  std::uint64_t seed = 0;
  std::int64_t index = 0;
};

struct Family {
  std::string_view name;
  std::string_view what;
  Square (*make)(const FamilyInput&);
  // The residual gates hold for it; false where another rule does (nan_inf).
  bool finite = true;
};

const std::vector<Family>& Families();
// Also accepts "lapack_…_spectrum" and "…_symmetric". nullptr when there is none of that name.
const Family* FindFamily(std::string_view name);

struct EighCase {
  std::string name;
  std::string kind = "dense";
  std::int64_t batch = 1;
  std::int64_t n = 1;
  double cond = 0;
};

// batch x n x n, row-major. The kind must exist (ParseCase has made sure).
std::vector<float> GenerateBatch(const EighCase& parameters, std::uint64_t seed, int threads);
Square GenerateMatrix(const EighCase& parameters, std::uint64_t seed, std::int64_t index);

// The matrix of a nan_inf batch that holds the NaN or infinity.
std::int64_t PoisonedIndex(const EighCase& parameters, std::uint64_t seed);

// The tables of the sources, joined by Families().
std::vector<Family> BenchmarkFamilies();
std::vector<Family> LapackFamilies();
std::vector<Family> StructuredFamilies();
std::vector<Family> TridiagonalFamilies();
std::vector<Family> ExtremeFamilies();

}  // namespace crucible::eigh
