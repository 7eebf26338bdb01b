#include "checks/eigh/spectra.h"

#include <algorithm>
#include <cmath>

namespace crucible::eigh {
namespace {

constexpr double kTinyFactor = 1e-6;  // of the near-rank-deficient directions

std::vector<double> RankSpectrum(std::vector<double> small, std::int64_t n, double cond) {
  const std::int64_t rank = n - static_cast<std::int64_t>(small.size());
  const std::vector<double> large = Logspace(-std::max(cond, 1.0), 0, rank);
  small.insert(small.end(), large.begin(), large.end());
  return small;
}

std::int64_t Nullity(std::int64_t n) { return n - 3 * n / 4; }

}  // namespace

std::vector<double> Linspace(double from, double to, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count), from);
  for (std::int64_t i = 1; i < count; ++i)
    values[i] = i == count - 1 ? to : from + (to - from) * static_cast<double>(i) / (count - 1);
  return values;
}

std::vector<double> Logspace(double from, double to, std::int64_t count) {
  std::vector<double> values = Linspace(from, to, count);
  for (double& value : values) value = std::pow(10.0, value);
  return values;
}

std::vector<double> AlternatingSpectrum(std::int64_t n, double cond) {
  std::vector<double> values = Logspace(-std::max(cond, 1.0), 0, n);
  for (std::int64_t i = 0; i < n; i += 2) values[i] = -values[i];
  return values;
}

std::vector<double> RankDeficientSpectrum(std::int64_t n, double cond) {
  return RankSpectrum(std::vector<double>(static_cast<std::size_t>(Nullity(n)), 0.0), n, cond);
}

std::vector<double> NearRankDeficientSpectrum(std::int64_t n, double cond) {
  std::vector<double> small = Logspace(-2, 0, Nullity(n));
  for (double& value : small) value *= kTinyFactor;
  return RankSpectrum(std::move(small), n, cond);
}

std::vector<double> RepeatedSpectrum(std::int64_t n) {
  const std::int64_t distinct = std::clamp<std::int64_t>(n / 8, 1, 16);
  const std::vector<double> levels = Linspace(-1, 1, distinct);
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) values[i] = levels[i * distinct / n];
  return values;
}

std::vector<double> ClusteredSpectrum(std::int64_t n) {
  std::vector<double> values = Linspace(-1, 1, n);
  for (double& value : values) value = (value > 0) - (value < 0) + 1e-5 * value;
  const std::int64_t first = n / 3, last = 2 * n / 3;
  const std::vector<double> middle = Linspace(-1, 1, last - first);
  for (std::int64_t i = first; i < last; ++i) values[i] = 1 + 1e-6 * middle[i - first];
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<double> LapackSpectrumValues(LapackSpectrum type, std::int64_t n) {
  switch (type) {
    case LapackSpectrum::kEven:
      return Linspace(1, kUlp, n);
    case LapackSpectrum::kGeometric:
      return Logspace(0, std::log10(kUlp), n);
    case LapackSpectrum::kClustered:
      break;
  }
  std::vector<double> values(static_cast<std::size_t>(n), kUlp);
  values[0] = 1;
  return values;
}

void RandomSigns(std::vector<double>* values, Random random) {
  for (double& value : *values) value *= random.Sign();
}

}  // namespace crucible::eigh
