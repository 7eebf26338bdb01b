#include "results_log/landing.h"

#include "base/json.h"

namespace crucible {

std::vector<Point> PointsOfLanding(const Entry& entry, const std::string& commit,
                                   const std::set<std::string>& short_of_record) {
  std::vector<Point> points;
  const std::string conditions = JsonText(entry.conditions);
  for (const CaseResult& result : entry.cases) {
    // Only a comparison moves a bar: the other cases' times are in the entry, but alone, minutes
    // after the first ones, they would show the machine's drift as a gain.
    if (!result.after_us || result.role != "claim") continue;
    Point point{entry.target, result.name,  "main", commit,    entry.time_ms, *result.after_us,
                std::nullopt, std::nullopt, false,  entry.key, conditions};
    if (result.before_us && result.ratio_low) point.low_us = *result.before_us * *result.ratio_low;
    if (result.before_us && result.ratio_high)
      point.high_us = *result.before_us * *result.ratio_high;
    const bool confirmed = result.verdict == "accepted" || result.verdict == "flagged";
    point.record = entry.landed && confirmed && !short_of_record.contains(result.name);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace crucible
