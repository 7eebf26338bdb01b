// report.h: the judge's JSON object as a table for people.
//
// Works on the JSON, not on the judge's own types, so a stored report renders like a fresh one and
// `crucible check` / `crucible compare` need not link the judge. Missing fields are left blank.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace crucible {

// Of all checks of a report, for each gate the largest scaled residual and where it was.
struct WorstMargin {
  double value = 0;
  std::optional<double> limit;
  std::string check;         // its params in words
  std::int64_t matrix = -1;  // of that check's batch; -1: the harness did not say
  std::uint64_t seed = 0;    // of that check's inputs
};
std::map<std::string, WorstMargin> WorstMargins(const nlohmann::json& report);

// Verdict and reason, then the worst margin of each gate with its matrix, then one line per case
// (median ratio, interval, rounds, verdict, why), per failed check, and per peer. Ends without a
// newline.
std::string RenderReport(const nlohmann::json& report);

}  // namespace crucible
