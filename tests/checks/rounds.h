// rounds.h: rounds made up by hand, for the tests of the decision code.
#pragma once

#include <cmath>
#include <vector>

#include "checks/decide/rule.h"

namespace crucible::decide {

// A round whose difference is d and whose arms agree with themselves up to `gap`.
inline Round RoundOf(double d, double gap = 0.001, int pair = 0) {
  return {.a_first_us = 100 * std::exp(-gap / 2),
          .a_second_us = 100 * std::exp(gap / 2),
          .b_first_us = 100 * std::exp(d + gap / 2),
          .b_second_us = 100 * std::exp(d - gap / 2),
          .pair = pair};
}

// Feeds rounds, one per pair of processes, until there is a verdict.
inline Decision Feed(Comparison& comparison, const std::vector<Round>& rounds) {
  int pair = 0;
  for (Round round : rounds) {
    round.pair = pair++;
    if (auto decision = comparison.Add(round)) return *decision;
  }
  return comparison.Finish("no more rounds");
}

// n differences around `center`, spread evenly over ± spread, in an order that is not sorted; the
// control alternates its sign.
inline std::vector<Round> Spread(int n, double center, double spread) {
  std::vector<Round> rounds;
  for (int i = 0; i < n; ++i) {
    const double position = 2.0 * ((i * 7) % n + 0.5) / n - 1;
    rounds.push_back(RoundOf(center + spread * position, i % 2 == 0 ? 0.001 : -0.001));
  }
  return rounds;
}

}  // namespace crucible::decide
