// spectra.h: the prescribed spectra of the families, as plain vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "checks/eigh/random.h"

namespace crucible::eigh {

inline constexpr double kEps = 0x1p-23;   // FP32: the unit of every gate
inline constexpr double kUlp = 2 * kEps;  // smallest value of the LAPACK-type spectra

std::vector<double> Linspace(double from, double to, std::int64_t count);
// Powers of ten from 10^from to 10^to.
std::vector<double> Logspace(double from, double to, std::int64_t count);

std::vector<double> AlternatingSpectrum(std::int64_t n, double cond);  // negative at even index
std::vector<double> RankDeficientSpectrum(std::int64_t n, double cond);
std::vector<double> NearRankDeficientSpectrum(std::int64_t n, double cond);
std::vector<double> RepeatedSpectrum(std::int64_t n);
std::vector<double> ClusteredSpectrum(std::int64_t n);

// The three LAPACK-type spectra before their signs.
enum class LapackSpectrum { kEven, kGeometric, kClustered };
std::vector<double> LapackSpectrumValues(LapackSpectrum type, std::int64_t n);
void RandomSigns(std::vector<double>* values, Random random);

}  // namespace crucible::eigh
