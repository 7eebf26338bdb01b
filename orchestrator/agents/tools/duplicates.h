// duplicates.h: whether the log already rejected an experiment, under conditions that hold today.
//
// Two entries are the same experiment when they name the same mechanism (letters' case, blanks and
// signs apart) with the same parameters for a case in common, or when they measured the very same
// files against the very same others. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "results_log/conditions.h"
#include "results_log/entry.h"

namespace crucible {

struct Experiment {
  std::string mechanism, params;  // params: JSON object text, or ""
  std::string tree, against;      // source hashes; "" where not known
  std::vector<std::string> cases;
};

// The newest rejection in `entries` (oldest first) that says the experiment is not to be tried
// again; nullptr when there is none. Keys in `retry` are up for another try.
const Entry* FindRejection(const std::vector<Entry>& entries, const Experiment& experiment,
                           const Conditions& now, const std::vector<std::string>& retry);

// "[e12] panel width: loss; n32 +4.0 %: slower": how the refusal cites it.
std::string Citation(const Entry& entry);

}  // namespace crucible
