#include "checks/decide/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <numeric>

#include "base/result.h"

namespace crucible::decide {
namespace {

// More than a ratchet's two runs can have; a table is made when it is first asked for.
constexpr int kMostDifferences = 256;

// std::lgamma leaves the sign in a variable that all threads share.
double LogFactorial(int n) {
  int sign = 0;
  return ::lgamma_r(n + 1.0, &sign);
}

// Chances of each sum when every weight enters with probability one half.
std::vector<double> SumDistribution(const std::vector<int>& weights) {
  const int total = std::accumulate(weights.begin(), weights.end(), 0);
  std::vector<double> chance(static_cast<std::size_t>(total) + 1, 0.0);
  chance[0] = 1;
  int reached = 0;
  for (const int weight : weights) {
    reached += weight;
    for (int sum = reached; sum >= 0; --sum) {
      const double with = sum >= weight ? chance[static_cast<std::size_t>(sum - weight)] : 0.0;
      auto& here = chance[static_cast<std::size_t>(sum)];
      here = 0.5 * (here + with);
    }
  }
  return chance;
}

const std::vector<double>& CdfTable(int n) {
  static std::array<std::vector<double>, kMostDifferences + 1> tables;
  static std::array<std::once_flag, kMostDifferences + 1> made;
  const auto index = static_cast<std::size_t>(n);
  std::call_once(made[index], [&] {
    std::vector<int> ranks(index);
    std::iota(ranks.begin(), ranks.end(), 1);
    std::vector<double> table = SumDistribution(ranks);
    std::partial_sum(table.begin(), table.end(), table.begin());
    tables[index] = std::move(table);
  });
  return tables[index];
}

struct Ranked {
  std::vector<int> doubled_ranks;  // twice the (mid-)rank: whole numbers also with ties
  int doubled_positive = 0;        // … summed over the positive differences
  bool tied = false;
};

Ranked Rank(std::vector<double> values) {
  std::erase(values, 0.0);
  std::sort(values.begin(), values.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  Ranked ranked;
  for (std::size_t first = 0; first < values.size();) {
    std::size_t end = first + 1;
    while (end < values.size() && std::fabs(values[end]) == std::fabs(values[first])) ++end;
    const int doubled = static_cast<int>(first + 1 + end);  // 2 * mean of ranks first+1 … end
    ranked.tied = ranked.tied || end - first > 1;
    for (std::size_t i = first; i < end; ++i) {
      ranked.doubled_ranks.push_back(doubled);
      if (values[i] > 0) ranked.doubled_positive += doubled;
    }
    first = end;
  }
  return ranked;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return 0.5 * (upper + *std::max_element(values.begin(),
                                          values.begin() + static_cast<std::ptrdiff_t>(half)));
}

double SignedRankCdf(int n, int w) {
  CRUCIBLE_CHECK(n >= 0 && n <= kMostDifferences, "the signed-rank table ends at 256 differences");
  if (w < 0) return 0;
  const std::vector<double>& table = CdfTable(n);
  return table[std::min(static_cast<std::size_t>(w), table.size() - 1)];
}

double SignedRankPValue(const std::vector<double>& differences) {
  const Ranked ranked = Rank(differences);
  const int n = static_cast<int>(ranked.doubled_ranks.size());
  if (n == 0) return 1;
  if (!ranked.tied) return SignedRankCdf(n, ranked.doubled_positive / 2);
  const std::vector<double> chance = SumDistribution(ranked.doubled_ranks);
  return std::accumulate(chance.begin(), chance.begin() + ranked.doubled_positive + 1, 0.0);
}

double SignTestPValue(const std::vector<double>& differences) {
  int positive = 0, n = 0;
  for (const double d : differences) {
    positive += d > 0 ? 1 : 0;
    n += d != 0 ? 1 : 0;
  }
  if (n == 0) return 1;
  const int rarer = std::min(positive, n - positive);
  double tail = 0;
  for (int k = 0; k <= rarer; ++k)
    tail += std::exp(LogFactorial(n) - LogFactorial(k) - LogFactorial(n - k) - n * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

Estimate PairedEstimate(const std::vector<double>& differences, double coverage) {
  Estimate estimate;
  const int n = static_cast<int>(differences.size());
  if (n == 0) return estimate;
  std::vector<double> walsh;
  walsh.reserve(differences.size() * (differences.size() + 1) / 2);
  for (std::size_t i = 0; i < differences.size(); ++i)
    for (std::size_t j = i; j < differences.size(); ++j)
      walsh.push_back(0.5 * (differences[i] + differences[j]));
  std::sort(walsh.begin(), walsh.end());
  estimate.center = Median(walsh);
  // The k-th smallest pairwise mean bounds the centre with error P(W <= k - 1) on its side.
  int k = 1;
  while (2 * SignedRankCdf(n, k) <= 1 - coverage) ++k;
  estimate.low = walsh[static_cast<std::size_t>(k - 1)];
  estimate.high = walsh[walsh.size() - static_cast<std::size_t>(k)];
  estimate.coverage = std::max(0.0, 1 - 2 * SignedRankCdf(n, k - 1));
  return estimate;
}

std::vector<bool> Holm(const std::vector<double>& p_values, double alpha) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (p_values[order[i]] * static_cast<double>(order.size() - i) > alpha) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

}  // namespace crucible::decide
