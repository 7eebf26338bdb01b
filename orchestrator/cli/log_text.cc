#include "orchestrator/cli/log_text.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/printable.h"
#include "results_log/case_text.h"

namespace crucible {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

bool HasTimes(const Entry& entry) {
  return std::any_of(entry.cases.begin(), entry.cases.end(),
                     [](const CaseResult& result) { return result.after_us.has_value(); });
}

}  // namespace

std::string Dump(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace);
}

json WithId(const Entry& entry) {
  json object = ToJson(entry);
  object["id"] = entry.id;
  return object;
}

std::string Row(const Entry& entry) {
  Texts cases;
  for (const CaseResult& result : entry.cases) cases.push_back(CaseText(result, false));
  // What a person says stands in the summary; a measurement's numbers are its cases.
  const bool words = cases.empty() || (entry.kind == EntryKind::kNote && !HasTimes(entry));
  return Printable(fmt::format("e{:<5} {} {:<12} {:<5} {:<24} {}", entry.id,
                               FormatUtc(entry.time_ms).substr(0, 16), ToText(entry.kind),
                               entry.mission.empty() ? "-" : entry.mission, entry.mechanism,
                               words ? entry.summary : fmt::format("{}", fmt::join(cases, ", "))));
}

void PrintEntry(const Entry& entry, std::ostream& out) {
  fmt::print(out, "e{} {} ({})\n", entry.id, ToText(entry.kind), entry.key);
  const auto field = [&](const char* name, const std::string& value) {
    const std::size_t end = value.find_last_not_of(' ');
    if (end != std::string::npos)
      fmt::print(out, "  {:<12} {}\n", name, Printable(value.substr(0, end + 1)));
  };
  field("time", FormatUtc(entry.time_ms));
  field("target", entry.target);
  field("campaign", entry.campaign);
  field("mission", entry.mission);
  field("author", entry.author);
  field("flavour", entry.flavour);
  field("mechanism", entry.mechanism);
  field("hypothesis", entry.hypothesis);
  field("summary", entry.summary);
  field("reason", entry.reason);
  if (entry.change != "{}") field("change", entry.change);
  field("landed", entry.landed ? "yes" : "");
  field("conflated", entry.conflated ? "yes: it changed several things at once" : "");
  field("supersedes", entry.supersedes);
  field("split from", entry.split_from);
  for (const CaseResult& result : entry.cases) {
    field("case", fmt::format("{} {} {}", CaseText(result, true), result.role, result.verdict));
  }
  for (const auto& [name, value] : entry.conditions) field("condition", name + " = " + value);
  for (const auto& [name, value] : entry.margins)
    field("margin", fmt::format("{} = {}", name, MarginText(value)));
  for (const Evidence& item : entry.evidence)
    field("evidence", fmt::format("{} {} {}", item.kind, item.ref, item.sha256));
}

}  // namespace crucible
