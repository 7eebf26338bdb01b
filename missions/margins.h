// margins.h: have merges used up accuracy? Pure over the log.
//
// Every landed merge records the worst scaled residual of each gate of its full check. All of them
// passed, and yet a kernel that comes closer to a gate with each merge ends at it. Where the newest
// merge's residual at a gate is at least twice the least of an earlier one, a precision mission is
// due on that merge's cases; one that has begun since settles it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results_log/store.h"

namespace crucible {

struct ThinnedMargin {
  std::string gate;
  double least = 0, newest = 0;       // scaled residuals
  std::string least_key, newest_key;  // of the entries
  std::vector<std::string> claimed;   // the newest merge's cases
};

// `entries` and `missions` oldest first; only those of `target` and `campaign` count. The gate that
// has lost the most, ties by name.
std::optional<ThinnedMargin> ThinnedMarginOf(const std::vector<Entry>& entries,
                                             const std::vector<MissionRow>& missions,
                                             const std::string& target,
                                             const std::string& campaign);

}  // namespace crucible
