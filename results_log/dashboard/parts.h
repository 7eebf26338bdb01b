// parts.h: the pieces of the page. Private to the dashboard.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results_log/dashboard/dashboard.h"

namespace crucible::dashboard {

// Text as HTML: & < > " ' escaped, control characters shown as U+FFFD.
std::string Escaped(std::string_view text);

// What the points say of one case.
struct CaseTimes {
  std::string name;
  const Point *first = nullptr, *newest = nullptr, *record = nullptr, *floor = nullptr;
  std::vector<const Point*> peers;  // the newest of each
  double Ratio() const { return newest->median_us / first->median_us; }
};

// Cases with a time, in the order they were first measured.
std::vector<CaseTimes> CasesOf(const std::vector<Point>& points);

// Every text is HTML.
std::string Bars(const std::vector<CaseTimes>& cases);
std::string Geomean(const DashboardInput& input);
std::string Summary(const DashboardInput& input, const std::vector<CaseTimes>& cases);
std::string Missions(const DashboardInput& input);
std::string Rejections(const DashboardInput& input);
std::string Recent(const DashboardInput& input);
std::string Queue(const DashboardInput& input);

extern const char kStyle[];

}  // namespace crucible::dashboard
