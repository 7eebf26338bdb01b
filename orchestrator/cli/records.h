// records.h: how fast every case is, with the evidence: what `crucible log records` prints. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "results_log/store.h"

namespace crucible {

// One object a case, in the order of target and name:
//   {"target","case","first":P,"best":P,"newest":P,"alone":P,"beside_peers":B}
// P (or null): {"median_us","time_ms","commit","record","entry"}; first, best and newest are of
// records (CaseBar says what that means), alone is main by itself since the newest of them. B (or null) is the newest run
// that timed main and the peers together: {"entry","ours_us","peers":{NAME:us}}; `entries` holds
// ours.
nlohmann::json RecordsOf(const std::vector<Point>& points, const std::vector<Entry>& entries);

// The same for people: two lines a case.
std::string RecordsText(const nlohmann::json& records);

}  // namespace crucible
