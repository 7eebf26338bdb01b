#include "checks/judge/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "checks/judge/bench.h"

namespace crucible::judge {
namespace {

using decide::Verdict;

// Names of [[case]]s narrow what is measured; a check is named by its own words.
Result<std::vector<std::string>> SelectChecks(const Request& request) {
  for (const std::string& name : request.cases) {
    const bool known = std::any_of(request.target.checks.begin(), request.target.checks.end(),
                                   [&](const CheckCase& check) { return check.name == name; });
    if (known) continue;
    std::vector<std::string> names;
    for (const CheckCase& check : request.target.checks) names.push_back(check.name);
    return Fail(ErrorKind::kUsage, "select check", name,
                fmt::format("target {} has no such check", request.target.name),
                fmt::format("choose among \"{}\"", fmt::join(names, "\", \"")));
  }
  const bool tools = request.level == CheckLevel::kFull && request.cases.empty() &&
                     !request.target.tool_checks.empty();
  const bool any = std::any_of(
      request.target.checks.begin(), request.target.checks.end(), [&](const CheckCase& check) {
        return BelongsTo(check, request.level) && NamedIn(request.cases, check.name);
      });
  // Nothing checked is nothing passed.
  if (!any && !tools)
    return Fail(ErrorKind::kUsage, "check", fmt::format("{}", fmt::join(request.cases, ", ")),
                fmt::format("target {} has no such check of level {}", request.target.name,
                            request.level == CheckLevel::kFull ? "full" : "quick"),
                "name another, give --level full, or add [[check]] tables");
  return request.cases;
}

std::string AllPass(const std::vector<CheckRow>& checks) {
  std::vector<std::string> left_out;
  for (const CheckRow& row : checks)
    if (!row.not_run.empty()) left_out.push_back(row.name + ": " + row.not_run);
  const std::size_t run = checks.size() - left_out.size();
  std::string text = run == 1 ? "the one check passes" : fmt::format("all {} checks pass", run);
  if (!left_out.empty())
    text += fmt::format("; {} not run ({})", left_out.size(), fmt::join(left_out, "; "));
  return text;
}

}  // namespace

Result<Report> RunCheck(const Request& request, Clock& clock) {
  CRUCIBLE_ASSIGN(const std::vector<std::string> only, SelectChecks(request));
  CRUCIBLE_ASSIGN(Bench bench, Bench::Make(request, "check", false, clock));
  const bool with_tools = request.level == CheckLevel::kFull && only.empty();
  if (bench.Check(request.level, only) && (!with_tools || bench.CheckWithTools())) {
    bench.report().verdict = Verdict::kAccepted;
    bench.report().reason = AllPass(bench.report().checks);
  }
  return bench.Finish();
}

Result<Report> RunCompare(const Request& request, Clock& clock) {
  CRUCIBLE_TRY(decide::RuleByName(request.rule, request.target.limits.minimum_effect));
  CRUCIBLE_ASSIGN(const std::vector<TargetCase> cases, SelectCases(request.target, request.cases));
  CRUCIBLE_ASSIGN(Bench bench, Bench::Make(request, "compare", true, clock));
  if (!request.quick_check || bench.Check(CheckLevel::kQuick, {})) bench.Claim(cases, request.rule);
  return bench.Finish();
}

Result<Report> RunRatchet(const Request& request, Clock& clock) {
  CRUCIBLE_ASSIGN(const std::vector<TargetCase> cases, SelectCases(request.target, request.cases));
  CRUCIBLE_ASSIGN(Bench bench, Bench::Make(request, "ratchet", true, clock));
  if (!request.quick_check || bench.Check(CheckLevel::kQuick, {})) bench.Ratchet(cases);
  return bench.Finish();
}

Result<Report> RunGate(const Request& request, Clock& clock) {
  std::vector<TargetCase> claims;
  if (!request.claims.empty()) {
    CRUCIBLE_ASSIGN(claims, SelectCases(request.target, request.claims));
  }
  std::vector<TargetCase> others;
  for (const TargetCase& item : request.target.cases)
    if (std::none_of(claims.begin(), claims.end(),
                     [&](const TargetCase& claim) { return claim.name == item.name; }))
      others.push_back(item);
  CRUCIBLE_ASSIGN(Bench bench, Bench::Make(request, "gate", true, clock));
  if (!bench.Check(CheckLevel::kFull, {}) || !bench.CheckWithTools()) return bench.Finish();
  const bool claimed = claims.empty() || bench.Claim(claims, "claim");
  // A person may let a flagged gain in: then the other cases must hold as for any merge.
  const bool flagged = !claimed && bench.report().verdict == Verdict::kFlagged;
  if (bench.failed() || (!claimed && !flagged)) {
    if (!bench.failed()) bench.report().reason += "; the ratchet was not run";
    return bench.Finish();
  }
  const std::string why = bench.report().reason;
  const bool held = bench.Ratchet(others);
  if (bench.failed()) return bench.Finish();
  if (held && flagged) bench.report().verdict = Verdict::kFlagged;
  const std::string before = why.empty() ? "" : why + "; ";
  if (held)
    bench.report().reason = before + "no other case is slower than its limit";
  else if (bench.report().verdict == Verdict::kFlagged)
    bench.report().reason = before + bench.report().reason;
  return bench.Finish();
}

Result<Report> RunMeasure(const Request& request, Clock& clock) {
  CRUCIBLE_ASSIGN(const std::vector<TargetCase> cases, SelectCases(request.target, request.cases));
  CRUCIBLE_ASSIGN(Bench bench, Bench::Make(request, "measure", false, clock));
  if (!request.quick_check || bench.Check(CheckLevel::kQuick, {}))
    bench.Measure(cases, request.with_peers);
  return bench.Finish();
}

Result<Report> RunExploits(const Request& request, Clock& clock) {
  if (request.target.exploits.empty())
    return Fail(ErrorKind::kUsage, "run exploits of", request.target.name, "the target names none",
                "add [[exploit]] tables");
  CRUCIBLE_ASSIGN(Bench bench, Bench::Make(request, "exploits", false, clock));
  if (bench.CatchExploits() && bench.Check(CheckLevel::kQuick, {}))
    bench.report().verdict = Verdict::kAccepted;
  return bench.Finish();
}

}  // namespace crucible::judge
