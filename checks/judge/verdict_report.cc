#include "checks/judge/verdict_report.h"

#include <cmath>

#include "base/json.h"

namespace crucible::judge {
namespace {

using nlohmann::json;

json ParsedOr(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json::object() : value;
}

json CheckJson(const CheckRow& row) {
  json object = {{"case", row.name},
                 {"pass", row.result.pass},
                 {"margins", ParsedOr(row.result.margins)},
                 {"limits", ParsedOr(row.result.limits)},
                 {"worst", ParsedOr(row.result.worst)},
                 {"seed", row.result.seed},
                 {"reason", row.result.reason}};
  if (!row.not_run.empty()) object["not_run"] = row.not_run;
  return object;
}

json CaseJsonOf(const CaseRow& row) {
  json object = {{"case", row.name},
                 {"role", row.role},
                 {"verdict", decide::ToText(row.verdict)},
                 {"reason", row.reason}};
  if (row.role == "measure") {
    object.update({{"after_us", row.median_us},
                   {"median_us", row.median_us},
                   {"low_us", row.low_us},
                   {"high_us", row.high_us},
                   {"rounds", row.rounds}});
    return object;
  }
  object["limit"] = row.limit;
  if (!row.decision) return object;
  const decide::Evidence& evidence = row.decision->evidence;
  object.update({{"before_us", evidence.before_us},
                 {"after_us", evidence.after_us},
                 {"ratio", std::exp(evidence.estimate.center)},
                 {"ratio_low", std::exp(evidence.estimate.low)},
                 {"ratio_high", std::exp(evidence.estimate.high)},
                 {"coverage", evidence.estimate.coverage},
                 {"p", row.decision->p_overall},
                 {"rounds", evidence.rounds},
                 {"units", evidence.units.size()},
                 {"wins", evidence.wins},
                 {"discarded", evidence.throttled + evidence.outliers},
                 {"throttled", evidence.throttled},
                 {"control", std::exp(evidence.control)}});
  return object;
}

json PeerJson(const PeerRow& row) {
  json object = {{"peer", row.peer}, {"case", row.name}};
  if (!row.error.empty()) {
    object["error"] = row.error;
  } else {
    object.update({{"median_us", row.median_us}, {"low_us", row.low_us}, {"high_us", row.high_us}});
  }
  return object;
}

}  // namespace

json ToJson(const Report& report) {
  json object = {
      {"op", report.op},
      {"protocol", 1},
      {"pass", report.pass()},
      {"verdict", decide::ToText(report.verdict)},
      {"reason", report.reason},
      {"seed", report.seed},
      {"wall_ms", report.wall_ms},
      {"candidate",
       {{"source_hash", report.candidate_hash}, {"library_sha256", report.candidate_library}}},
      {"conditions", json::object()},
      {"configuration", ParsedOr(report.configuration)},
      {"checks", json::array()},
      {"cases", json::array()},
      {"peers", json::array()}};
  if (!report.error.empty()) object["error"] = report.error;
  if (!report.baseline_hash.empty() || !report.baseline_library.empty())
    object["baseline"] = {{"source_hash", report.baseline_hash},
                          {"library_sha256", report.baseline_library},
                          {"conditions", ParsedOr(report.baseline_conditions)}};
  for (const auto& [key, value] : report.conditions) {
    json parsed = json::parse(value, nullptr, false);
    object["conditions"][key] = parsed.is_discarded() ? json(value) : parsed;
  }
  for (const CheckRow& row : report.checks) object["checks"].push_back(CheckJson(row));
  for (const CaseRow& row : report.cases) object["cases"].push_back(CaseJsonOf(row));
  for (const PeerRow& row : report.peers) object["peers"].push_back(PeerJson(row));
  return object;
}

}  // namespace crucible::judge
