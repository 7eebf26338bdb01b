// budget.h: how much measuring fits into the time there is. Pure.
//
// A kernel takes microseconds or a tenth of a second, a harness starts in milliseconds or seconds:
// the slot's length and the rounds per pair of processes follow from what was seen of both, so that
// a screen takes seconds on every case.
#pragma once

#include <cstdint>
#include <string>

#include "checks/judge/arm_runner.h"

namespace crucible::judge {

// Calls and milliseconds of one slot: what `slot_ms` asks, and less where `rounds` rounds would not
// fit into `time_ms` otherwise; a call that is longer than that is made once.
SlotRequest PlanSlot(double call_us, double slot_ms, double time_ms, int rounds);

// How many rounds two processes run before fresh ones take over: the more, the dearer a start is
// beside a round; never so many that the time ends before the first look's pairs are through. With
// `pairs_needed` 0 rounds are what counts, and three of them share a pair unless starts are dear.
int RoundsPerPair(double start_ms, double round_ms, double time_ms, int pairs_needed);

// How long unrecorded slots may run until the device has settled (decide::BurnIn).
struct BurnInPlan {
  double least_ms = 0;
  double most_ms = 1000;
  double tolerance = 0.01;
  double slot_ms = 25;
};
// A processor settles at once, a GPU's clocks take seconds, and again some after the idle moment in
// which later pairs of processes start.
BurnInPlan PlanBurnIn(const std::string& device, double time_ms, bool first_pair);

}  // namespace crucible::judge
