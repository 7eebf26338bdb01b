// burn_in.h: has the device settled? Unrecorded slots alternate between the arms until it has.
//
// Pure: fed with windows, one per pass over both arms, so the simulator and the driver burn in
// alike. Never judges an arm: a machine that does not settle is measured anyway, and the rounds
// and their control say what it is worth.
#pragma once

#include <deque>

namespace crucible::decide {

class BurnIn {
 public:
  // Settled when the last three windows agree within `tolerance` (of their logs).
  explicit BurnIn(double tolerance) : tolerance_(tolerance) {}

  // `log_time`: mean log time of both arms in this window. True when settled.
  bool Add(double log_time);

 private:
  double tolerance_;
  std::deque<double> windows_;
};

}  // namespace crucible::decide
