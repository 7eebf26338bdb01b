#include "checks/decide/ratchet.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace crucible::decide {

double RatchetLimit(double case_us, double limit, double limit_short, double short_us) {
  return case_us < short_us ? limit_short : limit;
}

Decision Ratchet::End(Verdict verdict, const Evidence& evidence, const std::string& text) const {
  return {verdict, evidence, 1,
          fmt::format("{}: {} (interval {} to {}), limit {:+.1f} %{}", text,
                      Percent(evidence.estimate.center), Percent(evidence.estimate.low),
                      Percent(evidence.estimate.high), 100 * rule_.limit,
                      rerunning_ ? ", after a rerun" : "")};
}

std::optional<Decision> Ratchet::Add(const Round& round) {
  rounds_.push_back(round);
  const std::vector<int>& looks = rerunning_ ? rule_.rerun : rule_.first;
  const Evidence evidence = Weigh(rounds_, rule_.evidence);
  const bool at_end = static_cast<int>(rounds_.size()) >= 2 * looks.back();  // all but all dropped
  if (static_cast<int>(evidence.units.size()) < looks[next_look_] && !at_end) return std::nullopt;
  if (evidence.throttled > rule_.throttled_share_max * evidence.rounds)
    return End(Verdict::kRefused, evidence,
               "the device was held back (heat, power or a neighbour)");
  const double limit = std::log1p(rule_.limit);
  const bool last = ++next_look_ == looks.size() || at_end;
  if (evidence.estimate.high < limit) return End(Verdict::kAccepted, evidence, "within the limit");
  const bool over = evidence.estimate.low > limit;
  if (!rerunning_ && (last || over)) {
    first_rounds_ = std::exchange(rounds_, {});
    next_look_ = 0;
    rerunning_ = restart_ = true;
    return std::nullopt;
  }
  if (rerunning_ && over) return End(Verdict::kRejected, evidence, "slower than the limit");
  return last ? std::optional(Finish("")) : std::nullopt;
}

Decision Ratchet::Finish(const std::string& why) {
  const std::string because = why.empty() ? "" : " (" + why + ")";
  const double limit = std::log1p(rule_.limit);
  const Evidence rerun = Weigh(rounds_, rule_.evidence);
  if (rerunning_ && static_cast<int>(rerun.units.size()) >= rule_.first.front() &&
      rerun.estimate.low > limit)
    return End(Verdict::kRejected, rerun, "slower than the limit");
  // Everything measured speaks for the candidate; only the rerun may speak against it.
  std::vector<Round> all = first_rounds_;
  all.insert(all.end(), rounds_.begin(), rounds_.end());
  const Evidence evidence = Weigh(all, rule_.evidence);
  const int units = static_cast<int>(evidence.units.size());
  if (units >= rule_.first.front() && evidence.estimate.high < limit)
    return End(Verdict::kAccepted, evidence, "within the limit");
  // The limit lies inside the interval. The better guess counts when it is on the good side: by a
  // margin with the first run's rounds, without one with the rerun's; otherwise nobody knows yet.
  const bool thorough = units >= rule_.rerun.front() && evidence.estimate.center <= limit;
  const bool fair = units >= rule_.first.back() && evidence.estimate.center <= 0.5 * limit;
  if (thorough || fair)
    return End(Verdict::kAccepted, evidence, "not shown to be slower than the limit" + because);
  return End(Verdict::kInconclusive, evidence, "the limit lies within the noise" + because);
}

}  // namespace crucible::decide
