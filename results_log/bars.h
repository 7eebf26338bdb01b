// bars.h: what the points of a log say of each case: where it began, where it stands, beside what.
//
// Pure. A bar moves by a confirmed comparison alone, so only record points count as its first and
// its newest time: a measurement of main by itself, minutes or days later, would show the machine's
// drift as a gain. The dashboard, `log records` and the brief all read the bars from here.
#pragma once

#include <string>
#include <vector>

#include "results_log/store.h"

namespace crucible {

struct CaseBar {
  std::string target, name;
  // The first, the newest and the fastest record; of a case that never had a record, its newest
  // time is first and newest, and `record` is null. All null: main was never timed on it.
  const Point *first = nullptr, *newest = nullptr, *record = nullptr;
  const Point* alone = nullptr;  // main by itself since the newest record: says nothing of a gain
  const Point* floor = nullptr;
  std::vector<const Point*> peers;  // the newest of each, in the order they were timed

  double Ratio() const { return newest->median_us / first->median_us; }
};

// One bar a target and case, in the order they were first named; `points` is oldest first and must
// outlive the bars. Times that are not above zero are left out.
std::vector<CaseBar> BarsOf(const std::vector<Point>& points);

}  // namespace crucible
