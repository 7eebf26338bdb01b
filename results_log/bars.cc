#include "results_log/bars.h"

#include <algorithm>

namespace crucible {
namespace {

void AddMain(CaseBar* bar, const Point& point) {
  if (!point.record) {
    bar->alone = &point;
    return;
  }
  if (bar->first == nullptr) bar->first = &point;
  if (bar->record == nullptr || point.median_us < bar->record->median_us) bar->record = &point;
  bar->newest = &point;
  bar->alone = nullptr;
}

}  // namespace

std::vector<CaseBar> BarsOf(const std::vector<Point>& points) {
  std::vector<CaseBar> bars;
  const auto of = [&](const Point& point) -> CaseBar& {
    for (CaseBar& bar : bars)
      if (bar.name == point.case_name && bar.target == point.target) return bar;
    CaseBar& bar = bars.emplace_back();
    bar.target = point.target;
    bar.name = point.case_name;
    return bar;
  };
  for (const Point& point : points) {
    if (point.median_us <= 0) continue;
    CaseBar& bar = of(point);
    if (point.kind == "main") AddMain(&bar, point);
    if (point.kind == "floor") bar.floor = &point;
    if (point.kind == "peer") {
      std::erase_if(bar.peers, [&](const Point* peer) { return peer->name == point.name; });
      bar.peers.push_back(&point);
    }
  }
  for (CaseBar& bar : bars)
    if (bar.first == nullptr && bar.alone != nullptr) {
      bar.first = bar.newest = bar.alone;
      bar.alone = nullptr;
    }
  return bars;
}

}  // namespace crucible
