// landing.h: what a landed merge does to the bars of its cases: the points, and whose record moves.
//
// Pure. A record moves by a confirmed comparison alone, never by one lucky time: the case was
// claimed, and the claim was accepted on the merged tree (or flagged, and a person let it in). Main
// may be slower than a record, by less than the ratchet's limit; a claim that beat main and was not
// shown to beat the record as well leaves the record where it is.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "results_log/store.h"

namespace crucible {

// The points that `entry`, the landed merge's, adds as `commit`. `short_of_record`: claims whose
// record is another binary than the merge's base and was not shown to be beaten.
std::vector<Point> PointsOfLanding(const Entry& entry, const std::string& commit,
                                   const std::set<std::string>& short_of_record);

}  // namespace crucible
