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
    return End(Verdict::kRefused, evidence, "the device was held back (heat or power)");
  const double limit = std::log1p(rule_.limit);
  const bool last = ++next_look_ == looks.size() || at_end;
  if (evidence.estimate.high < limit) return End(Verdict::kAccepted, evidence, "within the limit");
  const bool over = evidence.estimate.low > limit;
  if (!rerunning_ && (last || over)) {
    rounds_.clear();
    next_look_ = 0;
    rerunning_ = restart_ = true;
    return std::nullopt;
  }
  if (rerunning_ && over) return End(Verdict::kRejected, evidence, "slower than the limit");
  return last ? std::optional(Finish("")) : std::nullopt;
}

Decision Ratchet::Finish(const std::string& why) {
  const Evidence evidence = Weigh(rounds_, rule_.evidence);
  const std::string because = why.empty() ? "" : " (" + why + ")";
  const double limit = std::log1p(rule_.limit);
  const bool enough = static_cast<int>(evidence.units.size()) >= rule_.first.front();
  if (enough && evidence.estimate.high < limit)
    return End(Verdict::kAccepted, evidence, "within the limit");
  if (enough && rerunning_ && evidence.estimate.low > limit)
    return End(Verdict::kRejected, evidence, "slower than the limit");
  // The limit lies inside the interval. With the rerun's rounds behind it, the better guess counts
  // when it is on the good side; otherwise nobody knows yet.
  const bool thorough = static_cast<int>(evidence.units.size()) >= rule_.rerun.front();
  if (thorough && evidence.estimate.center <= limit)
    return End(Verdict::kAccepted, evidence, "not shown to be slower than the limit" + because);
  return End(Verdict::kInconclusive, evidence, "the limit lies within the noise" + because);
}

}  // namespace crucible::decide
