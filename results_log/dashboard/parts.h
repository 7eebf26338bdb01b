// parts.h: the pieces of the page. Private to the dashboard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results_log/bars.h"
#include "results_log/dashboard/dashboard.h"

namespace crucible::dashboard {

// Within this of its first time a case has not moved: the default minimum effect.
inline constexpr double kStill = 0.003;

// Text as HTML: & < > " ' escaped, control characters shown as U+FFFD.
std::string Escaped(std::string_view text);

// … that may be broken where a name has a joint (_ / and, between letters, - .), and there alone while that is enough.
std::string Breakable(std::string_view text);

// Cases with a time, in the order they were first measured.
std::vector<CaseBar> CasesOf(const std::vector<Point>& points);

// Every text is HTML.
std::string Bars(const std::vector<CaseBar>& cases);
std::string Geomean(const DashboardInput& input);
std::string Summary(const DashboardInput& input, const std::vector<CaseBar>& cases);
std::string Missions(const DashboardInput& input);
std::string Rejections(const DashboardInput& input);
std::string Recent(const DashboardInput& input);
std::string Queue(const DashboardInput& input);

extern const char kStyle[];

}  // namespace crucible::dashboard
