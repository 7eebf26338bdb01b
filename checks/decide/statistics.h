// statistics.h: exact small-sample statistics on paired differences.
//
// Pure functions; thread-safe. Everything rests on one symmetry: when two arms do not differ and
// their order inside a round is a coin toss, a difference d is as likely as -d. The signed-rank
// test and its interval need nothing else: no normal noise, no equal variances, no independence of
// the device's drift from one round to the next.
#pragma once

#include <optional>
#include <vector>

namespace crucible::decide {

double Median(std::vector<double> values);  // 0 for an empty list

// P(W <= w) for the signed-rank statistic of n untied differences under the null. n <= 64.
double SignedRankCdf(int n, int w);

// One-sided exact p-value for "the differences lie below zero" (the candidate is faster): the
// chance, over all sign flips, of a positive rank sum no larger than the one seen. Zeros are
// dropped, ties share their mid-rank and the exact distribution is that of the ranks at hand.
double SignedRankPValue(const std::vector<double>& differences);

// Two-sided exact sign test: zeros dropped; 1 for an empty list.
double SignTestPValue(const std::vector<double>& differences);

// Hodges-Lehmann estimate (median of all pairwise means) with the order-statistic interval that
// inverts the signed-rank test. `coverage` is what the interval really has: with few differences
// the widest one, minimum to maximum, covers less than was asked.
struct Estimate {
  double center = 0;
  double low = 0;
  double high = 0;
  double coverage = 0;
};
Estimate PairedEstimate(const std::vector<double>& differences, double coverage);

// Holm's step-down rule: which of these hypotheses are rejected so that the chance of any false
// rejection stays at or below alpha.
std::vector<bool> Holm(const std::vector<double>& p_values, double alpha);

}  // namespace crucible::decide
