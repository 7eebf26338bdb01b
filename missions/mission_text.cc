#include "missions/mission_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/counted.h"
#include "missions/templates.h"

namespace crucible {
namespace {

std::string Bullets(const std::vector<std::string>& lines, const char* indent = "") {
  std::string text;
  for (const std::string& line : lines) text += indent + ("- " + line) + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

// `{{name}}` replaced by its value, in one pass: a value that holds braces stays as it is.
std::string Fill(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find("{{", at);
    filled += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find("}}", open);
    CRUCIBLE_CHECK(close != std::string_view::npos, "a mission template closes its braces");
    const auto value = values.find(std::string(text.substr(open + 2, close - open - 2)));
    CRUCIBLE_CHECK(value != values.end(), "a mission template names known values");
    filled += value->second;
    at = close + 2;
  }
  return filled;
}

}  // namespace

std::string MissionText(const std::string& id, const MissionPlan& plan, const Target& target,
                        const MissionBudget& budget, const std::string& branch,
                        const std::string& base_commit, const std::string& worktree) {
  std::vector<std::string> claimed, others;
  for (const TargetCase& item : target.cases) {
    const bool claim =
        std::find(plan.cases.begin(), plan.cases.end(), item.name) != plan.cases.end();
    std::string line = fmt::format("`{}` {}", item.name, item.params);
    if (claim && item.floor_us)
      line += fmt::format(": floor {} ({})", FormatMicroseconds(*item.floor_us), item.floor_why);
    (claim ? claimed : others).push_back(claim ? line : "`" + item.name + "`");
  }
  std::vector<std::string> retry;
  for (const std::string& key : plan.retry) retry.push_back("[" + key + "]");
  const std::string_view own = FlavourTemplate(plan.flavour);
  return Fill(MissionTemplate(),
              {{"id", id},
               {"flavour", plan.flavour},
               {"goal", plan.goal},
               {"why", plan.why},
               {"target", target.name},
               {"target_file", target.file.string()},
               {"description", target.description},
               {"claimed", Bullets(claimed)},
               {"others", others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))},
               {"ratchet", fmt::format("{:.3g}", target.limits.ratchet * 100)},
               {"ratchet_short", fmt::format("{:.3g}", target.limits.ratchet_short * 100)},
               {"short_time", FormatMicroseconds(target.limits.short_us)},
               {"minimum_effect", fmt::format("{:.3g}", target.limits.minimum_effect * 100)},
               {"editable", Bullets(target.editable, "  ")},
               {"protected",
                target.protected_.empty() ? "  - nothing more" : Bullets(target.protected_, "  ")},
               {"retry", retry.empty() ? ""
                                       : "\nMeasure these again first: " +
                                             fmt::format("{}", fmt::join(retry, ", ")) + "\n"},
               {"wall", FormatDuration(budget.wall_ms)},
               {"experiments", Counted(budget.experiments, "experiment")},
               {"branch", branch},
               {"base", base_commit},
               {"base_short", base_commit.substr(0, 12)},
               {"worktree", worktree},
               {"cases", fmt::format("--case {}", fmt::join(plan.cases, " --case "))},
               {"how", std::string(own.empty() ? FlavourTemplate("kernel") : own)}});
}

}  // namespace crucible
