// rule.h: when a comparison stops, and with which verdict.
//
// Pure: no clock, disk or process, so every decision replays from its rounds. A Comparison is fed
// one round at a time and says "more" or how it ends; the driver adds what only it knows (time is
// up). Acceptance is looked for at fixed counts of units alone, each look with its share of the
// error, because a test that may stop at any moment accepts noise sooner or later.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checks/decide/evidence.h"
#include "checks/decide/verdict.h"

namespace crucible::decide {

struct Look {
  int units = 0;
  double alpha = 0;  // accepted when the exact one-sided p-value is at most this
};

// Ends a hopeless comparison early. Never accepts, so it costs power but no error.
struct Futility {
  int units = 0;
  double p_above = 0;
};

// A gain that needs few units: every one wins, by much, and the worst by a good share of the
// estimate; the larger the gain, the fewer. Its size is not exact as a look's is, but found by
// simulation: against normal noise of any width `counts_as_p`, and the least gain keeps it away
// from noise that takes few values.
struct ClearGain {
  int units = 6;
  double least = 0.05;             // the estimated gain
  double worst_share = 0.5;        // the worst unit's share of it
  double control_share_max = 0.5;  // the control's
  double counts_as_p = 2e-3;       // beside the claim's other cases (Holm)
};

struct Rule {
  std::string name;
  std::vector<Look> looks;         // ascending; past the last one there is no "more"
  std::vector<Futility> futility;  // ascending
  std::vector<ClearGain> clear;    // ascending
  EvidenceOptions evidence;
  bool needs_interval = true;     // accepts only when the interval lies below zero as well
  bool divides_error = true;      // among the cases of one claim (Holm)
  double minimum_effect = 0.003;  // a smaller gain is not accepted, however certain
  double worth = 0.003;           // "no difference" means: a gain above this is excluded
  // The control (an arm against itself) refuses when its drift is above both of these and its sign
  // test is below control_p: then the device moved, and in a way that repeats.
  double control_floor = 0.001;
  double control_share = 0.25;  // … of the estimated effect
  double control_p = 0.01;
  double throttled_share_max = 0.34;  // more rounds than this held back by the device: refused
  int most_units = 0;                 // units tried, dropped ones included: then no more are had
  int most_replaced = 2;              // rounds of one pair that are measured again (NeedsAnother)

  double Alpha() const;  // over all looks
};

// A gain claimed for a few cases: looks at 11, 21 and 41 pairs of processes, 0.01 in total.
Rule ClaimRule(double minimum_effect);
// The first, cheap pass of a search over hundreds of candidates: most null candidates end here.
Rule ScreenRule(double minimum_effect);
// … and the second, on fresh data: together at most 0.05 false accepts in 300 null candidates.
Rule ConfirmRule(double minimum_effect);
Result<Rule> RuleByName(std::string_view name, double minimum_effect);  // kUsage lists the names

// The rule for one of `cases` claimed together: Holm's first step, alpha / cases.
Rule ForOneOf(Rule rule, std::size_t cases);

struct Decision {
  Verdict verdict = Verdict::kInconclusive;
  Evidence evidence;
  double p_overall = 1;  // p-value corrected for the looks: at most Alpha() where a look accepts
  std::string reason;    // in words and numbers
};

class Comparison {
 public:
  explicit Comparison(Rule rule) : rule_(std::move(rule)) {}

  // The verdict once there is one; empty: measure another round.
  std::optional<Decision> Add(const Round& round);
  // Ask before Add: would these two processes leave nothing that counts, every round of theirs
  // dropped? Another round in them costs a third of fresh ones. Does not know which arm is which,
  // so the coin toss stays fair. Always false where rounds are the units: there the next one is it.
  bool NeedsAnother(const Round& round) const;
  // No more rounds can be had (time ran out): a last look at what there is, with the error of all
  // looks that were not reached.
  Decision Finish(const std::string& why);

  const Rule& rule() const { return rule_; }
  const std::vector<Round>& rounds() const { return rounds_; }

 private:
  Decision End(Verdict verdict, Evidence evidence, std::string reason) const;
  std::optional<Decision> AtLook(const Look& look, const Evidence& evidence, bool last);
  Decision WithoutGain(const Evidence& evidence, const std::string& why) const;
  int NextStop() const;
  std::optional<Decision> AtClearGain(const ClearGain& clear, const Evidence& evidence);
  std::optional<std::string> Unfit(const Evidence& evidence) const;

  Rule rule_;
  std::vector<Round> rounds_;
  std::size_t next_look_ = 0, next_futility_ = 0, next_clear_ = 0;
  int units_tried_ = 0;
  double p_overall_ = 1;
};

// The cases of one claim, decided together: each entry kAccepted where Holm's rule at `alpha` holds
// and its own decision found an interval and an effect fit to be accepted.
std::vector<Decision> DecideTogether(std::vector<Decision> decisions, const Rule& rule,
                                     double alpha);

// "-1.2 %" of a log ratio.
std::string Percent(double log_ratio);

}  // namespace crucible::decide
