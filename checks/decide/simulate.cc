#include "checks/decide/simulate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "checks/decide/burn_in.h"

namespace crucible::decide {
namespace {

constexpr double kMinimumEffect = 0.003;
constexpr int kThreeRounds = 3;
constexpr int kScreenRoundsPerPair = 3;
constexpr int kFirstWindows = 20, kLaterWindows = 6;
constexpr double kBurnInTolerance = 0.01;

Trial TryThreeRounds(SimulatedDevice& device,
                     bool (*accepts)(const std::vector<double>&, const std::vector<double>&)) {
  std::vector<double> holder, candidate;
  for (int round = 0; round < kThreeRounds; ++round) {
    // The candidate goes first in the first round and the order alternates.
    const bool candidate_first = round % 2 == 0;
    for (const bool is_candidate : {candidate_first, !candidate_first})
      (is_candidate ? candidate : holder).push_back(device.Slot(is_candidate));
  }
  const bool accepted = accepts(holder, candidate);
  return {.accepted = accepted,
          .verdict = accepted ? Verdict::kAccepted : Verdict::kRejected,
          .slots = device.slots(),
          .pairs = device.pairs()};
}

Trial TrialOf(const Decision& decision, const SimulatedDevice& device) {
  return {.accepted = decision.verdict == Verdict::kAccepted,
          .verdict = decision.verdict,
          .slots = device.slots(),
          .pairs = device.pairs(),
          .estimate = decision.evidence.estimate.center};
}

// Unrecorded slots over both arms, as the driver runs them.
void Settle(SimulatedDevice& device, int windows_max) {
  BurnIn burn_in(kBurnInTolerance);
  for (int i = 0; i < windows_max; ++i) {
    const double both = std::log(device.WarmSlot(false)) + std::log(device.WarmSlot(true));
    if (burn_in.Add(0.5 * both)) return;
  }
}

double SpentSeconds(const SimulatedDevice& device, const Times& times) {
  return device.slots() * times.slot_s + device.warm_slots() * times.warm_slot_s +
         device.pairs() * times.start_s;
}

// Every trial has its own seed, so threads do not change the result.
std::uint64_t TrialSeed(std::uint64_t seed, std::int64_t trial) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(trial);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::string Describe(Method method) {
  switch (method) {
    case Method::kFastestOfThree:
      return "fastest of three";
    case Method::kWinEveryRound:
      return "win every round of three";
    case Method::kClaim:
      return "ours: claim";
    case Method::kSearch:
      return "ours: screen + confirm";
    case Method::kSearchAndGate:
      return "ours: screen + confirm + gate";
    case Method::kClaimInTime:
      return "ours: claim, in time";
    case Method::kSearchInTime:
      return "ours: screen + confirm, in time";
    case Method::kSearchAndGateInTime:
      return "ours: screen + confirm + gate, in time";
  }
  return "";
}

bool FastestOfThreeAccepts(const std::vector<double>& holder,
                           const std::vector<double>& candidate) {
  return *std::min_element(candidate.begin(), candidate.end()) <
         *std::min_element(holder.begin(), holder.end());
}

bool WinEveryRoundAccepts(const std::vector<double>& holder, const std::vector<double>& candidate) {
  return std::equal(candidate.begin(), candidate.end(), holder.begin(), holder.end(),
                    std::less<>());
}

Round SimulateRound(SimulatedDevice& device, int pair) {
  Round round{.pair = pair};
  const bool baseline_first = device.Toss();
  for (int position = 0; position < 4; ++position) {
    const bool outer = position == 0 || position == 3;
    const bool baseline = outer == baseline_first;
    const bool first = position < 2;
    (baseline ? (first ? round.a_first_us : round.a_second_us)
              : (first ? round.b_first_us : round.b_second_us)) = device.Slot(!baseline);
  }
  return round;
}

Decision SimulateComparison(SimulatedDevice& device, const Rule& rule, int rounds_per_pair,
                            std::optional<double> limit_s, const Times& times) {
  Comparison comparison(rule);
  const double start_s = SpentSeconds(device, times);
  const auto fits = [&](double next_s) {
    return !limit_s || SpentSeconds(device, times) - start_s + next_s <= *limit_s;
  };
  const double round_s = 4 * times.slot_s;
  const double pair_s = times.start_s + 2 * kLaterWindows * times.warm_slot_s + round_s;
  for (int pair = 0;; ++pair) {
    if (!fits(pair_s)) return comparison.Finish("the time for this case ran out");
    device.FreshProcesses();
    Settle(device, pair == 0 ? kFirstWindows : kLaterWindows);
    bool closed = false;
    for (int i = 1; !closed; ++i) {
      if (!fits(round_s)) return comparison.Finish("the time for this case ran out");
      Round round = SimulateRound(device, pair);
      closed = i >= rounds_per_pair && !comparison.NeedsAnother(round);
      round.closes_pair = closed;
      if (auto decision = comparison.Add(round)) return *decision;
    }
  }
}

Trial Try(Method method, SimulatedDevice& device, const Times& times) {
  if (method == Method::kFastestOfThree) return TryThreeRounds(device, FastestOfThreeAccepts);
  if (method == Method::kWinEveryRound) return TryThreeRounds(device, WinEveryRoundAccepts);
  const bool limited = method == Method::kClaimInTime || method == Method::kSearchInTime ||
                       method == Method::kSearchAndGateInTime;
  const auto compare = [&](const Rule& rule, int rounds_per_pair, double limit_s) {
    return TrialOf(SimulateComparison(device, rule, rounds_per_pair,
                                      limited ? std::optional(limit_s) : std::nullopt, times),
                   device);
  };
  const auto claim = [&] { return compare(ClaimRule(kMinimumEffect), 1, times.claim_s); };
  if (method == Method::kClaim || method == Method::kClaimInTime) return claim();
  Trial trial = compare(ScreenRule(kMinimumEffect), kScreenRoundsPerPair, times.screen_s);
  if (trial.accepted) trial = compare(ConfirmRule(kMinimumEffect), 1, times.confirm_s);
  const bool gate = method == Method::kSearchAndGate || method == Method::kSearchAndGateInTime;
  if (trial.accepted && gate) trial = claim();
  return trial;
}

Tally Simulate(Method method, const NoiseModel& model, double gain, std::int64_t trials,
               std::uint64_t seed, int threads, const Times& times) {
  std::vector<Tally> parts(static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::thread> workers;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    workers.emplace_back([&, part] {
      Tally& tally = parts[part];
      for (auto i = static_cast<std::int64_t>(part); i < trials;
           i += static_cast<std::int64_t>(parts.size())) {
        SimulatedDevice device(model, gain, TrialSeed(seed, i));
        const Trial trial = Try(method, device, times);
        ++tally.trials;
        tally.accepted += trial.accepted ? 1 : 0;
        tally.refused += trial.verdict == Verdict::kRefused ? 1 : 0;
        tally.inconclusive += trial.verdict == Verdict::kInconclusive ? 1 : 0;
        tally.slots += trial.slots;
        tally.pairs += trial.pairs;
        tally.warm_slots += device.warm_slots();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  Tally sum;
  for (const Tally& part : parts) {
    sum.trials += part.trials;
    sum.accepted += part.accepted;
    sum.refused += part.refused;
    sum.inconclusive += part.inconclusive;
    sum.slots += part.slots;
    sum.pairs += part.pairs;
    sum.warm_slots += part.warm_slots;
  }
  return sum;
}

}  // namespace crucible::decide
