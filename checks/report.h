// report.h: the judge's JSON object as a table for people.
//
// Works on the JSON, not on the judge's own types, so a stored report renders like a fresh one and
// `crucible check` / `crucible compare` need not link the judge. Missing fields are left blank.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crucible {

// Verdict and reason, then one line per case (median ratio, interval, rounds, verdict, why), per
// failed check, and per peer. Ends without a newline.
std::string RenderReport(const nlohmann::json& report);

}  // namespace crucible
