// simulate.h: decision rules, old and ours, on a simulated device.
//
// The rules of others are kept here as they were described, to show on the same device what they
// let through; ours runs the very code that judges real kernels (rule.h). Pure apart from its
// threads; deterministic for a seed whatever the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checks/decide/device_model.h"
#include "checks/decide/rule.h"

namespace crucible::decide {

enum class Method {
  kFastestOfThree,  // three rounds; the candidate's fastest against the holder's fastest
  kWinEveryRound,   // three alternating rounds; the candidate must win each
  kClaim,           // ours: one claim, looks at 11, 21 and 41
  kSearch,          // ours: screen, then confirmation on fresh data
  kSearchAndGate,   // … and the claim once more, as the merge does
};
std::string Describe(Method method);

bool FastestOfThreeAccepts(const std::vector<double>& holder, const std::vector<double>& candidate);
bool WinEveryRoundAccepts(const std::vector<double>& holder, const std::vector<double>& candidate);

struct Trial {
  bool accepted = false;
  Verdict verdict = Verdict::kInconclusive;
  int slots = 0, pairs = 0;
  double estimate = 0;  // of log(after / before), where the method reports one
};
Trial Try(Method method, SimulatedDevice& device);

// A round on the device, and a whole comparison with fresh processes every `rounds_per_pair`.
Round SimulateRound(SimulatedDevice& device, int pair);
Decision SimulateComparison(SimulatedDevice& device, const Rule& rule, int rounds_per_pair);

struct Tally {
  std::int64_t trials = 0, accepted = 0, refused = 0, inconclusive = 0;
  double slots = 0, pairs = 0, warm_slots = 0;  // summed

  double Share() const { return trials > 0 ? static_cast<double>(accepted) / trials : 0; }
};
Tally Simulate(Method method, const NoiseModel& model, double gain, std::int64_t trials,
               std::uint64_t seed, int threads);

}  // namespace crucible::decide
