// report_text.cc: a judge's report as an agent reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/clock.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/measure.h"
#include "results_log/case_text.h"

namespace crucible {
namespace {

constexpr std::size_t kLongestReason = 1500;
constexpr double kClearlySlower = 1.02;

std::string Time(const std::optional<double>& us) {
  return us ? FormatMicroseconds(*us) : std::string("-");
}

std::string Percent(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:+.2f} %", (*ratio - 1) * 100) : std::string("-");
}

std::string Table(const std::vector<CaseResult>& cases) {
  std::size_t width = 4;
  for (const CaseResult& result : cases) width = std::max(width, result.name.size());
  std::string text = fmt::format("{:<{}}  {:>12} {:>12} {:>10}  {:<22} {:>6}  verdict\n", "case",
                                 width, "before", "after", "change", "interval", "rounds");
  for (const CaseResult& result : cases)
    text += fmt::format("{:<{}}  {:>12} {:>12} {:>10}  {:<22} {:>6}  {}\n", result.name, width,
                        Time(result.before_us), Time(result.after_us), Percent(result.ratio),
                        result.ratio_low && result.ratio_high
                            ? Percent(result.ratio_low) + " .. " + Percent(result.ratio_high)
                            : "-",
                        result.rounds ? std::to_string(*result.rounds) : "-", result.verdict);
  return text;
}

// A verdict's name alone may mislead: a change that lost 80 % in one round is "no_difference",
// since a gain is excluded and one round shows no loss with certainty.
std::string Meaning(const JudgeReport& report) {
  if (report.verdict != "no_difference") return "";
  const std::vector<std::string> slower = ClearlySlower(report.cases);
  if (slower.empty()) return " (a gain worth having is excluded)";
  return fmt::format(
      " (a gain is excluded: it was SLOWER, {}; more rounds would be needed to call it a loss)",
      fmt::join(slower, ", "));
}

}  // namespace

std::vector<std::string> ClearlySlower(const std::vector<CaseResult>& cases) {
  std::vector<std::string> slower;
  for (const CaseResult& result : cases)
    if (result.role == "claim" && result.ratio && *result.ratio >= kClearlySlower)
      slower.push_back(result.name + " " + Percent(result.ratio));
  return slower;
}

std::string ReportText(const JudgeReport& report, const Session& session) {
  std::string text =
      fmt::format("verdict: {}{}\n",
                  report.verdict.empty() ? (report.pass ? "passed" : "failed") : report.verdict,
                  Meaning(report));
  if (!report.cases.empty()) text += Table(report.cases);
  if (!report.reason.empty())
    text += fmt::format("why: {}\n", Shorten(report.reason, kLongestReason));
  if (!report.first_failed_check.empty())
    text +=
        fmt::format("first failed check: {}\n", Shorten(report.first_failed_check, kLongestReason));
  if (!report.margins.empty()) {
    std::vector<std::string> parts;
    for (const auto& [gate, value] : report.margins)
      parts.push_back(fmt::format("{} {}", gate, MarginText(value)));
    text += fmt::format("worst scaled residuals: {}\n", fmt::join(parts, ", "));
  }
  for (const Evidence& evidence : report.evidence)
    if (evidence.kind == "report")
      text += fmt::format("report: {}\n", (session.order().workspace.home / evidence.ref).string());
  return text;
}

}  // namespace crucible
