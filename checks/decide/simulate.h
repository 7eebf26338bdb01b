// simulate.h: decision rules, old and ours, on a simulated device.
//
// The rules of others are kept here as they were described, to show on the same device what they
// let through; ours runs the very code that judges real kernels (rule.h). Pure apart from its
// threads; deterministic for a seed whatever the number of threads.
#pragma once

#include <cstdint>
#include <optional>
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
  kClaimInTime,     // the same three, each case ending where its time does (Times)
  kSearchInTime,
  kSearchAndGateInTime,
};
std::string Describe(Method method);

// What a comparison costs on the device, and how long it may take: the limits of a target.
struct Times {
  double slot_s = 0.1, warm_slot_s = 0.025, start_s = 0.6;
  double screen_s = 8, claim_s = 25, confirm_s = 25;
};

bool FastestOfThreeAccepts(const std::vector<double>& holder, const std::vector<double>& candidate);
bool WinEveryRoundAccepts(const std::vector<double>& holder, const std::vector<double>& candidate);

struct Trial {
  bool accepted = false;
  Verdict verdict = Verdict::kInconclusive;
  int slots = 0, pairs = 0;
  double estimate = 0;  // of log(after / before), where the method reports one
};
Trial Try(Method method, SimulatedDevice& device, const Times& times = {});

// A round on the device, and a whole comparison with fresh processes every `rounds_per_pair`. With
// a limit it ends as the driver ends it: no round is begun that would not fit, and the rule has one
// last look at what there is.
Round SimulateRound(SimulatedDevice& device, int pair);
Decision SimulateComparison(SimulatedDevice& device, const Rule& rule, int rounds_per_pair,
                            std::optional<double> limit_s = std::nullopt, const Times& times = {});

struct Tally {
  std::int64_t trials = 0, accepted = 0, refused = 0, inconclusive = 0;
  double slots = 0, pairs = 0, warm_slots = 0;  // summed

  double Share() const { return trials > 0 ? static_cast<double>(accepted) / trials : 0; }
};
Tally Simulate(Method method, const NoiseModel& model, double gain, std::int64_t trials,
               std::uint64_t seed, int threads, const Times& times = {});

}  // namespace crucible::decide
