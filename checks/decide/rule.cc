#include "checks/decide/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace crucible::decide {
namespace {

std::string Interval(const Evidence& evidence) {
  return fmt::format("{} (interval {} to {})", Percent(evidence.estimate.center),
                     Percent(evidence.estimate.low), Percent(evidence.estimate.high));
}

bool FitToAccept(const Evidence& evidence, const Rule& rule) {
  return (evidence.estimate.high < 0 || !rule.needs_interval) &&
         evidence.estimate.center <= std::log1p(-rule.minimum_effect);
}

}  // namespace

std::string Percent(double log_ratio) {
  return fmt::format("{:+.2f} %", 100 * std::expm1(log_ratio));
}

double Rule::Alpha() const {
  double sum = 0;
  for (const Look& look : looks) sum += look.alpha;
  return sum;
}

Rule ClaimRule(double minimum_effect) {
  constexpr double kPerLook = 0.01 / 3;
  return {.name = "claim",
          .looks = {{11, kPerLook}, {21, kPerLook}, {41, kPerLook}},
          .futility = {{8, 0.7}},
          .clear = {ClearGain{.units = 4, .least = 0.25, .worst_share = 0.7, .counts_as_p = 6e-3},
                    ClearGain{}},
          .minimum_effect = minimum_effect,
          .worth = minimum_effect,
          .most_units = 60};
}

Rule ScreenRule(double minimum_effect) {
  return {.name = "screen",
          .looks = {{5, 0.22}},
          .futility = {{3, 0.7}},
          .clear = {ClearGain{.units = 2, .least = 0.1}},
          .evidence = {.unit = Unit::kRound},
          .needs_interval = false,
          .divides_error = false,  // its errors cost a confirmation, nothing else
          .minimum_effect = minimum_effect,
          .worth = 0.01,
          .control_p = 0.0,  // five rounds cannot show a drift: the confirmation looks for it
          .most_units = 8};
}

Rule ConfirmRule(double minimum_effect) {
  return {.name = "confirm",
          .looks = {{15, 1.55e-4}, {25, 1.3e-4}, {41, 1.3e-4}},
          .futility = {{5, 0.35}, {10, 0.15}},
          .clear = {ClearGain{.units = 5, .least = 0.25, .worst_share = 0.8, .counts_as_p = 3.2e-4},
                    ClearGain{.units = 8, .worst_share = 0.6, .counts_as_p = 1e-4}},
          .minimum_effect = minimum_effect,
          .worth = minimum_effect,
          .most_units = 60};
}

Result<Rule> RuleByName(std::string_view name, double minimum_effect) {
  if (name == "claim") return ClaimRule(minimum_effect);
  if (name == "screen") return ScreenRule(minimum_effect);
  if (name == "confirm") return ConfirmRule(minimum_effect);
  return Fail(ErrorKind::kUsage, "choose rule", name, "there is no such rule",
              "use claim, screen or confirm");
}

Rule ForOneOf(Rule rule, std::size_t cases) {
  if (!rule.divides_error) return rule;
  for (Look& look : rule.looks) look.alpha /= static_cast<double>(std::max<std::size_t>(cases, 1));
  return rule;
}

Decision Comparison::End(Verdict verdict, Evidence evidence, std::string reason) const {
  return {verdict, std::move(evidence), p_overall_, std::move(reason)};
}

std::optional<std::string> Comparison::Unfit(const Evidence& evidence) const {
  if (evidence.throttled > rule_.throttled_share_max * evidence.rounds)
    return fmt::format("the device was held back (heat, power or a neighbour) in {} of {} rounds",
                       evidence.throttled, evidence.rounds);
  const double drift_limit =
      std::max(rule_.control_floor, rule_.control_share * std::fabs(evidence.estimate.center));
  if (std::fabs(evidence.control) > drift_limit && evidence.control_p < rule_.control_p)
    return fmt::format("the baseline drifted against itself by {} within a round (p = {:.1g})",
                       Percent(evidence.control), evidence.control_p);
  return std::nullopt;
}

Decision Comparison::WithoutGain(const Evidence& evidence, const std::string& why) const {
  if (evidence.estimate.coverage >= 0.9 && evidence.estimate.low > 0)
    return End(Verdict::kRejected, evidence, fmt::format("slower: {}", Interval(evidence)));
  if (!evidence.units.empty() && evidence.estimate.low > std::log1p(-rule_.worth))
    return End(Verdict::kNoDifference, evidence,
               fmt::format("a gain above {:.1f} % is excluded: {}{}", 100 * rule_.worth,
                           Interval(evidence), why.empty() ? "" : ", " + why));
  int least = rule_.looks.front().units;
  for (const ClearGain& clear : rule_.clear) least = std::min(least, clear.units);
  const bool too_few = std::ssize(evidence.units) < least;
  return End(
      Verdict::kInconclusive, evidence,
      fmt::format("neither shown nor excluded: {} over {} units{}{}; measure again",
                  Interval(evidence), evidence.units.size(),
                  too_few ? fmt::format(" of the {} at least that a gain is shown by", least) : "",
                  why.empty() ? "" : ", " + why));
}

std::optional<Decision> Comparison::AtLook(const Look& look, const Evidence& evidence, bool last) {
  if (const auto unfit = Unfit(evidence)) return End(Verdict::kRefused, evidence, *unfit);
  p_overall_ = std::min(p_overall_, std::min(1.0, evidence.p_faster * rule_.Alpha() / look.alpha));
  if (evidence.p_faster <= look.alpha && FitToAccept(evidence, rule_))
    return End(Verdict::kAccepted, evidence,
               fmt::format("faster: {} over {} units, p = {:.1g}", Interval(evidence),
                           evidence.units.size(), evidence.p_faster));
  const bool excluded = evidence.estimate.low > std::log1p(-rule_.worth);
  if (last || excluded) return WithoutGain(evidence, last ? "at the last look" : "");
  return std::nullopt;
}

// The units at which something may be decided next.
int Comparison::NextStop() const {
  int stop = std::numeric_limits<int>::max();
  if (next_look_ < rule_.looks.size()) stop = rule_.looks[next_look_].units;
  if (next_futility_ < rule_.futility.size())
    stop = std::min(stop, rule_.futility[next_futility_].units);
  if (next_clear_ < rule_.clear.size()) stop = std::min(stop, rule_.clear[next_clear_].units);
  return stop;
}

std::optional<Decision> Comparison::AtClearGain(const ClearGain& clear, const Evidence& evidence) {
  const double center = evidence.estimate.center;
  const bool shown = std::all_of(evidence.units.begin(), evidence.units.end(), [&](double d) {
    return d < 0 && d <= clear.worst_share * center;
  });
  const bool steady = std::fabs(evidence.control) <= clear.control_share_max * std::fabs(center);
  if (!shown || !steady || center > std::log1p(-clear.least) || Unfit(evidence))
    return std::nullopt;
  p_overall_ = std::min(p_overall_, clear.counts_as_p);
  return End(Verdict::kAccepted, evidence,
             fmt::format("faster: {}, each of {} units by at least {:.0f} % of it",
                         Interval(evidence), evidence.units.size(), 100 * clear.worst_share));
}

std::optional<Decision> Comparison::Add(const Round& round) {
  rounds_.push_back(round);
  // A pair of processes counts once its rounds are all in.
  if (rule_.evidence.unit == Unit::kPair && !round.closes_pair) return std::nullopt;
  ++units_tried_;
  if (units_tried_ >= NextStop()) {
    const Evidence evidence = Weigh(rounds_, rule_.evidence);
    const int units = static_cast<int>(evidence.units.size());
    while (next_clear_ < rule_.clear.size() && units >= rule_.clear[next_clear_].units)
      if (auto ended = AtClearGain(rule_.clear[next_clear_++], evidence)) return ended;
    if (next_look_ < rule_.looks.size() && units >= rule_.looks[next_look_].units) {
      const Look look = rule_.looks[next_look_++];
      if (auto ended = AtLook(look, evidence, next_look_ == rule_.looks.size())) return ended;
    }
    while (next_futility_ < rule_.futility.size() &&
           units >= rule_.futility[next_futility_].units) {
      if (evidence.p_faster > rule_.futility[next_futility_++].p_above)
        return WithoutGain(evidence, "stopped early as hopeless");
    }
  }
  if (rule_.most_units > 0 && units_tried_ >= rule_.most_units)
    return Finish(fmt::format("{} units are the most this rule takes", rule_.most_units));
  return std::nullopt;
}

bool Comparison::NeedsAnother(const Round& round) const {
  if (rule_.evidence.unit != Unit::kPair) return false;
  std::vector<Round> all = rounds_;
  all.push_back(round);
  const std::vector<bool> kept = Kept(all, rule_.evidence);
  int dropped = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].pair != round.pair) continue;
    if (kept[i]) return false;
    ++dropped;
  }
  return dropped <= rule_.most_replaced;
}

Decision Comparison::Finish(const std::string& why) {
  const Evidence evidence = Weigh(rounds_, rule_.evidence);
  if (const auto unfit = Unfit(evidence)) return End(Verdict::kRefused, evidence, *unfit);
  for (const ClearGain& clear : rule_.clear)
    if (static_cast<int>(evidence.units.size()) >= clear.units)
      if (auto ended = AtClearGain(clear, evidence)) return *ended;
  if (next_look_ < rule_.looks.size() && !evidence.units.empty()) {
    // Time does not know which arm is which, so a last look now is as fair as at its own count,
    // and has the error of all the looks that will not be.
    Look now;
    for (std::size_t i = next_look_; i < rule_.looks.size(); ++i) now.alpha += rule_.looks[i].alpha;
    if (auto ended = AtLook(now, evidence, false);
        ended && ended->verdict != Verdict::kNoDifference)
      return *ended;
  }
  return WithoutGain(evidence, why);
}

std::vector<Decision> DecideTogether(std::vector<Decision> decisions, const Rule& rule,
                                     double alpha) {
  if (!rule.divides_error) return decisions;
  std::vector<double> p_values;
  for (const Decision& decision : decisions) p_values.push_back(decision.p_overall);
  const std::vector<bool> shown = Holm(p_values, alpha);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    Decision& decision = decisions[i];
    const bool open =
        decision.verdict == Verdict::kInconclusive || decision.verdict == Verdict::kNoDifference;
    if (!shown[i] || !open || !FitToAccept(decision.evidence, rule)) continue;
    decision.verdict = Verdict::kAccepted;
    decision.reason = fmt::format("faster: {}, p = {:.1g} with the claim's other cases (Holm)",
                                  Interval(decision.evidence), decision.p_overall);
  }
  return decisions;
}

}  // namespace crucible::decide
