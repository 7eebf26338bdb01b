// measure_tools.cc: build, check, compare.
#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/json.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/duplicates.h"
#include "orchestrator/agents/tools/measure.h"
#include "orchestrator/agents/tools/tool_lists.h"
#include "results_log/retest.h"

namespace crucible {
namespace {

using nlohmann::json;
using Kind = Argument::Kind;

// What went wrong, cut to an answer's size; its text names the log that has the rest.
ToolAnswer Failed(const Session& session, const Error& error) {
  return {.text = Head(error.text, session.context.limits.answer_bytes,
                       (session.Folder() / "build.log").string()) +
                  "\n",
          .is_error = true};
}

Result<ToolAnswer> Build(Session* session) {
  CRUCIBLE_TRY(session->InTime());
  bool built_now = false;
  const auto arm = BuildWorktree(session, &built_now);
  if (!arm) return Failed(*session, arm.error());
  return Say(fmt::format(
      "{} (files {}); output in {}\n", built_now ? "built" : "nothing changed since the last build",
      arm->source_hash.substr(0, 12), (session->Folder() / "build.log").string()));
}

Result<ToolAnswer> CheckTool(Session* session, const json& arguments) {
  CRUCIBLE_TRY(session->InTime());
  const std::string level = arguments.value("level", std::string("quick"));
  const auto report = Check(session, level);
  if (!report) return Failed(*session, report.error());
  session->Event("check", fmt::format("{} check {}", level, report->pass ? "passed" : "failed"));
  return ToolAnswer{.text = fmt::format("{} check\n{}", level, ReportText(*report, *session)),
                    .is_error = !report->pass};
}

Result<> ExperimentsLeft(const Session& session, const std::string& tree) {
  const int most = session.order().experiments;
  if (most <= 0 || session.state.measured.contains(tree) ||
      static_cast<int>(session.state.measured.size()) < most)
    return {};
  return Fail(
      ErrorKind::kUsage, "compare", session.order().id,
      fmt::format("the mission's {} used up", Counted(most, "experiment is", "experiments are")),
      "log the last one, commit what was accepted, and report");
}

// A comparison that nobody logs is lost to every later mission, so the next one waits for it. What
// was not measured (a failed build or check) may be mended first, and what passed a screen or was
// inconclusive may be measured again; a rejection may not, until chance takes it. (A claim may
// decide what a screen rejected: it is the stricter of the two.)
Result<> LastOneLogged(const Session& session, const std::string& tree, const std::string& rule) {
  if (!session.Unlogged()) return {};
  const Entry& entry = *session.state.pending;
  const bool measured = entry.kind != EntryKind::kCrashed && entry.kind != EntryKind::kRefused;
  const bool same = json::parse(entry.change).value("tree", "") == tree;
  const auto& last = session.state.compared;
  const bool only_screened = last && last->tree == tree && last->rule == "screen";
  if (!measured || (same && !IsRejection(entry.kind))) return {};
  if (same && only_screened && rule == "claim") return {};
  return Fail(ErrorKind::kUsage, "compare", session.order().id,
              fmt::format("the last comparison is not in the log ({}: {})", ToText(entry.kind),
                          entry.summary),
              "log_experiment first, whatever came of it");
}

// Time on the device is not spent on what the log already answers.
Result<> NotRejectedBefore(Session* session, const Comparison& comparison, const json& arguments,
                           const std::string& tree) {
  Experiment experiment;
  experiment.cases = comparison.cases;
  experiment.tree = tree;
  experiment.against = comparison.against == "base" ? session->order().baseline.source_hash
                                                    : session->state.held.source_hash;
  if (arguments.contains("mechanism")) {
    experiment.mechanism = arguments["mechanism"];
    experiment.params = arguments.value("params", json::object()).dump();
  }
  EntryFilter filter;
  filter.target = session->target().name;
  CRUCIBLE_ASSIGN(const auto entries, session->store.QueryEntries(filter));
  const Entry* old =
      FindRejection(entries, experiment, session->order().now, session->order().retry);
  if (old == nullptr) return {};
  return Fail(ErrorKind::kConflict, "compare", session->order().id,
              "the log rejected this experiment under today's conditions: " + Citation(*old),
              "try something else; if it is another experiment, say so in mechanism and params");
}

Result<Comparison> ComparisonFrom(const Session& session, const json& arguments) {
  Comparison comparison;
  comparison.rule = arguments.value("rule", std::string("claim"));
  comparison.against = arguments.value("against", std::string("held"));
  comparison.cases = arguments.value("cases", session.order().cases);
  if (comparison.cases.empty()) comparison.cases = session.order().cases;
  CRUCIBLE_TRY(SelectCases(session.target(), comparison.cases));
  return comparison;
}

std::string Advice(const Session& session, const Comparison& comparison,
                   const JudgeReport& report) {
  std::string text;
  if (report.pass && comparison.rule == "screen")
    text = "A screen that passes is worth confirming and no more: compare again with rule claim.\n";
  else if (report.pass && comparison.against == "held")
    text = "Accepted: commit it, and log_experiment.\n";
  else if (report.verdict == "inconclusive")
    text = "Nothing is shown yet: compare again, or log it with log_experiment.\n";
  else
    text = "Log it with log_experiment; restore puts the files back as they were.\n";
  const int most = session.order().experiments;
  if (most > 0)
    text +=
        fmt::format("{} of {} made.\n", session.state.measured.size(), Counted(most, "experiment"));
  return text;
}

Result<ToolAnswer> CompareTool(Session* session, const json& arguments) {
  CRUCIBLE_TRY(session->InTime());
  CRUCIBLE_ASSIGN(const Comparison comparison, ComparisonFrom(*session, arguments));
  CRUCIBLE_TRY(session->NothingForeignChanged());
  CRUCIBLE_ASSIGN(const std::string tree, session->Tree());
  const std::string& other = comparison.against == "base" ? session->order().baseline.source_hash
                                                          : session->state.held.source_hash;
  if (tree == other)
    return Fail(ErrorKind::kUsage, "compare", session->order().id,
                "the files are the same as what they would be compared with", "change something");
  CRUCIBLE_TRY(LastOneLogged(*session, tree, comparison.rule));
  CRUCIBLE_TRY(ExperimentsLeft(*session, tree));
  CRUCIBLE_TRY(NotRejectedBefore(session, comparison, arguments, tree));
  session->Event("experiment", fmt::format("compare ({}) {}", comparison.rule,
                                           fmt::join(comparison.cases, ", ")));
  const auto report = Compare(session, comparison);
  if (!report) return Failed(*session, report.error());
  session->Event("decision", fmt::format("{} {}: {}", comparison.rule, report->verdict,
                                         session->state.pending->summary));
  return Say(fmt::format("{} of {} against {}\n{}{}", comparison.rule,
                         fmt::join(comparison.cases, ", "),
                         comparison.against == "base" ? "the mission's base" : "what is held",
                         ReportText(*report, *session), Advice(*session, comparison, *report)));
}

std::vector<std::string> CaseNames(const Target& target) {
  std::vector<std::string> names;
  for (const TargetCase& item : target.cases) names.push_back(item.name);
  return names;
}

}  // namespace

void AddMeasureTools(const SharedSession& session, ToolSet* tools) {
  tools->push_back(
      MakeFunctionTool({"build",
                        "Build the worktree as the judge will; a failure quotes the compiler.",
                        {},
                        [session](const json&) { return Build(session.get()); }}));
  tools->push_back(MakeFunctionTool(
      {"check",
       "Build, then check the results against the oracle: quick takes seconds, full is what the "
       "merge runs. Waits for the device by itself.",
       {{.name = "level", .help = "quick (default) or full", .choices = {"quick", "full"}}},
       [session](const json& arguments) { return CheckTool(session.get(), arguments); }}));
  tools->push_back(MakeFunctionTool(
      {"compare",
       "Build, check, and measure the worktree in pairs against what is held (the last commit of "
       "this mission, at first its base). rule screen is cheap and only says what is worth "
       "confirming; rule claim decides, and is what commit asks for. Only these numbers count. "
       "Give mechanism and params and it refuses, before measuring, what the log already rejected.",
       {{.name = "rule", .help = "claim (default) or screen", .choices = {"claim", "screen"}},
        {.name = "against", .help = "held (default) or base", .choices = {"held", "base"}},
        {.name = "cases",
         .kind = Kind::kTexts,
         .help = "default: the mission's cases",
         .choices = CaseNames(session->target())},
        {.name = "mechanism", .help = "as for log_experiment"},
        {.name = "params", .kind = Kind::kObject, .help = "as for log_experiment"}},
       [session](const json& arguments) { return CompareTool(session.get(), arguments); }}));
}

}  // namespace crucible
