// The matrix types of LAPACK's symmetric eigenvalue test driver (DDRVST), each also near the ends
// of the exponent range: "high" is times sqrt(FLT_MAX), "low" times sqrt(FLT_MIN).
#include <cfloat>
#include <cmath>

#include "checks/eigh/families.h"
#include "checks/eigh/spectra.h"

namespace crucible::eigh {
namespace {

enum : std::uint64_t { kEntries = 1, kRotation = 2, kSigns = 4, kBandwidth = 5 };
enum class Size { kNormal, kHigh, kLow };
enum class Form { kDiagonal, kDense, kBand };

double Factor(Size size) {
  if (size == Size::kHigh) return std::sqrt(static_cast<double>(FLT_MAX));
  if (size == Size::kLow) return std::sqrt(static_cast<double>(FLT_MIN));
  return 1;
}

template <Form form, LapackSpectrum spectrum, Size size>
Square Make(const FamilyInput& in) {
  std::vector<double> values = LapackSpectrumValues(spectrum, in.n);
  RandomSigns(&values, in.random.Stream(kSigns));
  Square a(in.n);
  if (form == Form::kDiagonal) {
    for (std::int64_t i = 0; i < in.n; ++i) a(i, i) = values[i];
  } else {
    a = FromSpectrum(values, in.random.Stream(kRotation));
  }
  if (form == Form::kBand) {
    const std::int64_t width = in.random.Stream(kBandwidth).Below(in.n);
    for (std::int64_t i = 0; i < in.n; ++i)
      for (std::int64_t j = 0; j < in.n; ++j)
        if (std::abs(i - j) > width) a(i, j) = 0;
  }
  a.Scale(Factor(size));
  return a;
}

template <Size size>
Square UniformSymmetric(const FamilyInput& in) {
  Square a(in.n);
  Random random = in.random.Stream(kEntries);
  for (std::int64_t i = 0; i < in.n; ++i)
    for (std::int64_t j = 0; j <= i; ++j) a.Set(i, j, random.Uniform(-1, 1));
  a.Scale(Factor(size));
  return a;
}

Square Zero(const FamilyInput& in) { return Square(in.n); }

Square Identity(const FamilyInput& in) {
  Square a(in.n);
  for (std::int64_t i = 0; i < in.n; ++i) a(i, i) = 1;
  return a;
}

}  // namespace

std::vector<Family> LapackFamilies() {
  using enum Form;
  using enum LapackSpectrum;
  using enum Size;
  return {
      {"lapack_zero", "the zero matrix: the answer must be exact", Zero},
      {"lapack_identity", "the identity", Identity},
      {"lapack_diag_even", "diagonal, evenly spaced", Make<kDiagonal, kEven, kNormal>},
      {"lapack_diag_geometric", "diagonal, geometric", Make<kDiagonal, kGeometric, kNormal>},
      {"lapack_diag_clustered", "diagonal, clustered", Make<kDiagonal, kClustered, kNormal>},
      {"lapack_diag_even_high", "… near overflow", Make<kDiagonal, kEven, kHigh>},
      {"lapack_diag_even_low", "… near underflow", Make<kDiagonal, kEven, kLow>},
      {"lapack_diag_geometric_high", "… near overflow", Make<kDiagonal, kGeometric, kHigh>},
      {"lapack_diag_geometric_low", "… near underflow", Make<kDiagonal, kGeometric, kLow>},
      {"lapack_dense_even", "dense, evenly spaced", Make<kDense, kEven, kNormal>},
      {"lapack_dense_geometric", "dense, geometric", Make<kDense, kGeometric, kNormal>},
      {"lapack_dense_clustered", "dense, clustered", Make<kDense, kClustered, kNormal>},
      {"lapack_dense_even_high", "… near overflow", Make<kDense, kEven, kHigh>},
      {"lapack_dense_even_low", "… near underflow", Make<kDense, kEven, kLow>},
      {"lapack_random", "uniform(-1, 1) entries", UniformSymmetric<kNormal>},
      {"lapack_random_high", "… near overflow", UniformSymmetric<kHigh>},
      {"lapack_random_low", "… near underflow", UniformSymmetric<kLow>},
      {"lapack_band_even", "dense even, cut to a random bandwidth", Make<kBand, kEven, kNormal>},
      {"lapack_band_even_high", "… near overflow", Make<kBand, kEven, kHigh>},
      {"lapack_band_even_low", "… near underflow", Make<kBand, kEven, kLow>},
  };
}

}  // namespace crucible::eigh
