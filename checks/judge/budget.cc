#include "checks/judge/budget.h"

#include <algorithm>
#include <cmath>

namespace crucible::judge {
namespace {

constexpr int kFewestCalls = 3;
constexpr double kLongCallUs = 30'000;  // one such call averages over what disturbs shorter ones
constexpr int kUsualCalls = 20;
constexpr int kMostCalls = 500;
constexpr int kManyCalls = 200;  // below 50 us one call is mostly timer and launch
constexpr double kShortCallUs = 50;
constexpr double kMeasuringShare = 0.6;  // the rest: starts, checks of outputs, burn-in
constexpr double kShortestSlotMs = 2;
constexpr int kMostRoundsPerPair = 5;

}  // namespace

SlotRequest PlanSlot(double call_us, double slot_ms, double time_ms, int rounds) {
  const double fits_ms = kMeasuringShare * time_ms / (4.0 * std::max(rounds, 1));
  const double budget_ms = std::max(kShortestSlotMs, std::min(slot_ms, fits_ms));
  const double calls = 1000 * budget_ms / std::max(call_us, 0.01);
  const double least = call_us < kShortCallUs ? kManyCalls : kUsualCalls;
  const double fewest = call_us < kLongCallUs ? kFewestCalls : 1;
  return {.budget_ms = budget_ms,
          .min_calls = static_cast<int>(std::clamp(std::floor(calls), fewest, least)),
          .max_calls = kMostCalls};
}

int RoundsPerPair(double start_ms, double round_ms, double time_ms, int pairs_needed) {
  const double balanced = std::sqrt(start_ms / std::max(round_ms, 1e-3));
  if (pairs_needed == 0)
    return static_cast<int>(std::clamp(std::floor(balanced), 3.0, 1.0 * kMostRoundsPerPair));
  const double per_pair_ms = kMeasuringShare * time_ms / std::max(pairs_needed, 1);
  const double fits = (per_pair_ms - start_ms) / std::max(round_ms, 1e-3);
  return static_cast<int>(
      std::clamp(std::floor(std::min(balanced, fits)), 1.0, 1.0 * kMostRoundsPerPair));
}

BurnInPlan PlanBurnIn(const std::string& device, double time_ms, bool first_pair) {
  if (device == "cpu") {
    const double most_ms = first_pair ? std::min(800.0, 0.1 * time_ms) : 60;
    return {.most_ms = most_ms, .tolerance = 0.01, .slot_ms = first_pair ? 25.0 : 5.0};
  }
  if (!first_pair) return {.most_ms = 300, .tolerance = 0.01, .slot_ms = 25};
  return {.least_ms = std::min(3000.0, 0.3 * time_ms),
          .most_ms = std::min(30'000.0, 0.5 * time_ms),
          .tolerance = 0.005,
          .slot_ms = 100};
}

}  // namespace crucible::judge
