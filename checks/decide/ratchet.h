// ratchet.h: decides for one case whether a change may merge that claims nothing about it.
//
// Pure, as rule.h. The question is turned round: not "is it faster" but "can it be slower than the
// limit". A case passes as soon as its interval lies under the limit. Over or across the limit it
// gets one rerun with more rounds on fresh processes, so neither noise nor an unlucky page
// placement fails a merge; what the rerun leaves undecided is inconclusive, never a rejection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/decide/evidence.h"
#include "checks/decide/rule.h"

namespace crucible::decide {

struct RatchetRule {
  double limit = 0.02;                // slowdown that fails, as a share of the baseline's time
  std::vector<int> first = {5, 11};   // rounds after which the first run looks
  std::vector<int> rerun = {21, 41};  // … and the rerun, which starts from nothing
  EvidenceOptions evidence = {.unit = Unit::kRound, .far_share_max = 0};
  double throttled_share_max = 0.34;
};

// The limit of a case by its time: short cases jitter more from run to run.
double RatchetLimit(double case_us, double limit, double limit_short, double short_us);

class Ratchet {
 public:
  explicit Ratchet(RatchetRule rule) : rule_(std::move(rule)) {}

  // The verdict once there is one: accepted (not slower than the limit), rejected, inconclusive or
  // refused. Empty: measure another round.
  std::optional<Decision> Add(const Round& round);
  Decision Finish(const std::string& why);

  // True once, when the rerun begins: start fresh processes before the next round.
  bool TakeRestart() { return std::exchange(restart_, false); }
  bool rerunning() const { return rerunning_; }
  const RatchetRule& rule() const { return rule_; }
  void SetLimit(double limit) { rule_.limit = limit; }

 private:
  Decision End(Verdict verdict, const Evidence& evidence, const std::string& text) const;

  RatchetRule rule_;
  std::vector<Round> rounds_;        // of the run under way
  std::vector<Round> first_rounds_;  // of the first run, once the rerun has begun
  std::size_t next_look_ = 0;
  bool rerunning_ = false, restart_ = false;
};

}  // namespace crucible::decide
