// dashboard.h: the log as one HTML page that needs nothing else: no script, font or network.
//
// RenderDashboard is pure: the same rows and time give the same bytes. Every text of the log is
// escaped, because agents write into it.
#pragma once

#include <string>
#include <vector>

#include "results_log/store.h"

namespace crucible {

struct DashboardInput {
  std::string target;
  std::int64_t now_ms = 0;
  int refresh_s = 0;                   // > 0: the page asks for itself again (the live server)
  std::vector<CampaignRow> campaigns;  // newest first
  std::vector<MissionRow> missions;    // oldest first
  std::vector<Entry> entries;          // oldest first
  std::vector<Point> points;           // oldest first
  std::vector<LoggedJob> jobs;         // newest first
};

// Rows of one target ("" : the one measured last), from one consistent reading of the log.
Result<DashboardInput> LoadDashboard(Store* store, const std::string& target);

std::string RenderDashboard(const DashboardInput& input);

}  // namespace crucible
