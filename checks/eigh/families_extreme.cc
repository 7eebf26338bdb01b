// Inputs at the ends of FP32: subnormal entries, entries at FLT_MAX, NaN and infinity.
#include <cfloat>
#include <cmath>
#include <limits>

#include "checks/eigh/families.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

enum : std::uint64_t { kEntries = 1, kChoice = 7 };

double ColumnSumMax(const Square& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.n(); ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < a.n(); ++j) sum += std::abs(a(i, j));
    largest = std::max(largest, sum);
  }
  return largest;
}

// Every entry below FLT_MIN, most of them with many bits left (FLT_MIN has 23).
Square Subnormal(const FamilyInput& in) {
  Square a(in.n);
  Random random = in.random.Stream(kEntries);
  for (std::int64_t i = 0; i < in.n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) a.Set(i, j, .99 * FLT_MIN * random.Uniform(-1, 1));
  return a;
}

// One entry of FLT_MAX and, where there is room, one of -FLT_MAX, alone in their rows; the rest
// dense with norm FLT_MAX / 2: every eigenvalue is an FP32 number, sums of entries are not. An
// eigenvalue that rounds one unit up is infinite: a solver that scales must not let it.
Square FltMax(const FamilyInput& in) {
  Square a = SymmetricNormal(in.n, in.random.Stream(kEntries));
  const double norm = ColumnSumMax(a);
  if (norm > 0) a.Scale(.5 * FLT_MAX / norm);
  Random random = in.random.Stream(kChoice);
  const std::int64_t plus = random.Below(in.n);
  const std::int64_t minus = random.Below(in.n);
  for (const std::int64_t k : {minus, plus}) {
    for (std::int64_t j = 0; j < in.n; ++j) a.Set(k, j, 0.0);
    a(k, k) = k == plus ? FLT_MAX : -FLT_MAX;
  }
  return a;
}

// A tenth away from that: one unit of rounding is no overflow, a sum of two entries still is.
Square NearFltMax(const FamilyInput& in) {
  Square a = FltMax(in);
  a.Scale(.9);
  return a;
}

// The poisoned matrix of a batch whose others are the dense family (GenerateMatrix sees to that).
Square NanInf(const FamilyInput& in) {
  Square a = FindFamily("dense")->make(in);
  Random random = in.random.Stream(kChoice);
  const double values[] = {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()};
  a.Set(random.Below(in.n), random.Below(in.n), values[random.Below(3)]);
  return a;
}

}  // namespace

std::vector<Family> ExtremeFamilies() {
  return {
      {"subnormal", "every entry below FLT_MIN", Subnormal},
      {"flt_max", "entries of +-FLT_MAX, every eigenvalue representable", FltMax},
      {"near_flt_max", "nine tenths of it", NearFltMax},
      {"nan_inf", "one matrix with a NaN or infinity in a dense batch", NanInf, false},
  };
}

}  // namespace crucible::eigh
