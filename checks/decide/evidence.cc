#include "checks/decide/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace crucible::decide {
namespace {

constexpr double kMadToSigma = 1.4826;  // median absolute value of normal noise to its deviation
constexpr std::size_t kFewestForOutliers = 3;

double GapA(const Round& round) {
  return std::fabs(std::log(round.a_second_us / round.a_first_us));
}
double GapB(const Round& round) {
  return std::fabs(std::log(round.b_second_us / round.b_first_us));
}

// Differences far beyond the others', where there are few: only |d| counts, so each may as well
// have had its arms swapped, and the signed-rank test stays exact.
void AddFar(const std::vector<Round>& rounds, const EvidenceOptions& options,
            std::vector<bool>& outlier) {
  std::vector<double> sizes;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    if (!outlier[i]) sizes.push_back(std::fabs(rounds[i].Difference()));
  const double limit = options.outlier_sigmas * kMadToSigma * Median(sizes);
  const auto far = static_cast<double>(
      std::count_if(sizes.begin(), sizes.end(), [&](double size) { return size > limit; }));
  if (far > options.far_share_max * static_cast<double>(sizes.size())) return;
  for (std::size_t i = 0; i < rounds.size(); ++i)
    if (std::fabs(rounds[i].Difference()) > limit) outlier[i] = true;
}

// Looks only at how far each arm is from itself: swapping the arms changes nothing.
std::vector<bool> FindOutliers(const std::vector<Round>& rounds, const EvidenceOptions& options) {
  std::vector<bool> outlier(rounds.size(), false);
  if (rounds.size() < kFewestForOutliers) return outlier;
  std::vector<double> gaps;
  for (const Round& round : rounds) {
    gaps.push_back(GapA(round));
    gaps.push_back(GapB(round));
  }
  const double limit = options.outlier_sigmas * kMadToSigma * Median(gaps);
  std::size_t count = 0;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    outlier[i] = std::max(GapA(rounds[i]), GapB(rounds[i])) > limit;
    count += outlier[i] ? 1 : 0;
  }
  if (static_cast<double>(count) > options.outlier_share_max * static_cast<double>(rounds.size()))
    std::fill(outlier.begin(), outlier.end(), false);
  AddFar(rounds, options, outlier);
  return outlier;
}

std::vector<double> Units(const std::vector<Round>& rounds, Unit unit) {
  std::vector<double> units;
  if (unit == Unit::kRound) {
    for (const Round& round : rounds) units.push_back(round.Difference());
    return units;
  }
  std::map<int, std::vector<double>> pairs;
  for (const Round& round : rounds) pairs[round.pair].push_back(round.Difference());
  for (const auto& [pair, differences] : pairs) units.push_back(Median(differences));
  return units;
}

}  // namespace

double Round::Difference() const {
  return 0.5 * std::log(b_first_us * b_second_us / (a_first_us * a_second_us));
}

double Round::Control() const { return std::log(a_second_us / a_first_us); }

std::vector<bool> Kept(const std::vector<Round>& rounds, const EvidenceOptions& options) {
  std::vector<Round> fit;
  for (const Round& round : rounds)
    if (!round.throttled) fit.push_back(round);
  const std::vector<bool> outlier = FindOutliers(fit, options);
  std::vector<bool> kept;
  kept.reserve(rounds.size());
  std::size_t next = 0;
  for (const Round& round : rounds) kept.push_back(!round.throttled && !outlier[next++]);
  return kept;
}

Evidence Weigh(const std::vector<Round>& rounds, const EvidenceOptions& options) {
  Evidence evidence;
  evidence.rounds = static_cast<int>(rounds.size());
  const std::vector<bool> counts = Kept(rounds, options);
  std::vector<Round> kept;
  std::vector<double> controls, before, after;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const Round& round = rounds[i];
    evidence.throttled += round.throttled ? 1 : 0;
    if (!counts[i]) continue;
    kept.push_back(round);
    controls.push_back(round.Control());
    before.insert(before.end(), {round.a_first_us, round.a_second_us});
    after.insert(after.end(), {round.b_first_us, round.b_second_us});
  }
  evidence.outliers = evidence.rounds - evidence.throttled - static_cast<int>(kept.size());
  evidence.units = Units(kept, options.unit);
  evidence.wins = static_cast<int>(
      std::count_if(evidence.units.begin(), evidence.units.end(), [](double d) { return d < 0; }));
  evidence.estimate = PairedEstimate(evidence.units, options.coverage);
  evidence.p_faster = SignedRankPValue(evidence.units);
  evidence.control = Median(controls);
  evidence.control_p = SignTestPValue(controls);
  evidence.before_us = Median(before);
  evidence.after_us = Median(after);
  return evidence;
}

}  // namespace crucible::decide
