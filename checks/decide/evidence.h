// evidence.h: rounds of slots turned into what a rule judges.
//
// A round is four slots, A B B A or B A A B by a coin toss, so a drift that is linear over the
// round cancels. Its difference is d = mean(log B) - mean(log A): below zero, the candidate B is
// faster. Rounds are dropped only for reasons that do not know which arm is which, so dropping
// keeps the coin toss fair. Pure; thread-safe.
#pragma once

#include <vector>

#include "checks/decide/statistics.h"

namespace crucible::decide {

struct Round {
  double a_first_us = 0, a_second_us = 0;  // baseline slots, in the order of time
  double b_first_us = 0, b_second_us = 0;  // candidate slots, in the order of time
  bool throttled = false;   // the device says it was held back in one of the four slots
  int pair = 0;             // which two processes ran it
  bool closes_pair = true;  // the last round of these two

  double Difference() const;  // d
  double Control() const;     // log(second A slot / first A slot): the device against itself
};

// What counts as one independent observation. Where a process lands in memory shifts all of its
// slots alike, so rounds of the same two processes are not independent; pairs of processes are.
enum class Unit { kRound, kPair };

struct EvidenceOptions {
  Unit unit = Unit::kPair;
  double coverage = 0.95;
  // A round whose two slots of one arm differ by more than this many robust standard deviations
  // holds an excursion (a boost, a neighbour): it is dropped …
  double outlier_sigmas = 5;
  // … unless so many would be dropped that they are the noise, not the exception.
  double outlier_share_max = 0.75;
  // An excursion that lasts over both slots of one arm shows in |d| alone: far beyond the others'
  // it is dropped as well, but only where it is rare. A kernel's own slow mode is not.
  double far_share_max = 0.1;
};

struct Evidence {
  std::vector<double> units;           // one difference per unit, in the order of time
  int rounds = 0;                      // all rounds seen
  int throttled = 0;                   // … dropped on the device's own word
  int outliers = 0;                    // … dropped because an arm disagreed with itself
  int wins = 0;                        // units below zero
  Estimate estimate;                   // of log(after / before)
  double p_faster = 1;                 // exact, one-sided
  double control = 0;                  // median of Control() over kept rounds
  double control_p = 1;                // sign test of Control()
  double before_us = 0, after_us = 0;  // medians of the kept slots
};

// Which rounds count: neither throttled nor outliers. Swapping the arms of any round changes
// nothing.
std::vector<bool> Kept(const std::vector<Round>& rounds, const EvidenceOptions& options);

Evidence Weigh(const std::vector<Round>& rounds, const EvidenceOptions& options);

}  // namespace crucible::decide
