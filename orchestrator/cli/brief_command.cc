#include "orchestrator/cli/brief_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/json.h"
#include "base/paths.h"
#include "briefs/brief.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/log_command.h"
#include "orchestrator/repository.h"

namespace crucible {
namespace {

struct Options {
  std::vector<std::string> cases, now;
  std::string target, log;
  int budget = 4000;
  bool as_json = false;
};

// A case that nobody measured or wrote of is a slip of the pen, unless the log has none at all.
Result<> CheckCases(const BriefInput& input) {
  std::vector<std::string> known;
  const auto add = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  };
  for (const Point& point : input.points) add(point.case_name);
  for (const Entry& entry : input.entries)
    for (const CaseResult& result : entry.cases) add(result.name);
  for (const std::string& name : input.cases)
    if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end())
      return Fail(ErrorKind::kUsage, "brief", name,
                  "the log of target " + input.target + " has no such case",
                  fmt::format("it has {}", fmt::join(known, ", ")));
  return {};
}

// As check and compare take it; a log from elsewhere may be of a target that has no file here.
std::string OfTarget(const std::string& target) {
  if (target.empty()) return "";
  return " --target " + (FindTargetFile(target) ? target : "FILE_OF_" + target);
}

// The branch that merges move in the repository around this folder.
std::string MainBranch() {
  const auto here = CurrentFolder();
  if (!here) return "main";
  const auto repository = Repository::Open(*here, "");
  return repository ? repository->main_branch() : "main";
}

Result<std::string> Compile(const Options& options) {
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFile(options.log));
  CRUCIBLE_ASSIGN(Store store, Store::OpenReadOnly(file));
  BriefInput input;
  CRUCIBLE_ASSIGN(input.target, OnlyTarget(&store, options.target));
  input.cases = options.cases;
  input.token_budget = options.budget;
  EntryFilter filter;
  filter.target = input.target;
  CRUCIBLE_ASSIGN(input.entries, store.QueryEntries(filter));
  CRUCIBLE_ASSIGN(input.points, store.Points(input.target));
  CRUCIBLE_TRY(CheckCases(input));
  CRUCIBLE_ASSIGN(input.now, ConditionsToday(&store, input.target, input.cases, options.now));
  std::string chosen;
  for (const std::string& name : input.cases) chosen += " --case " + name;
  const std::string of_target = OfTarget(input.target);
  input.commands = {"crucible check ." + of_target,
                    "crucible compare " + MainBranch() + " ." + chosen + of_target};
  return CompileBrief(input);
}

}  // namespace

int BriefCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  CLI::App app("crucible brief: what the log knows about cases, every line citing its entry",
               "crucible brief");
  Options options;
  app.add_option("CASE", options.cases, "the cases (default: all of the target)");
  app.add_option("--target", options.target, "the target (default: the log's only one)");
  app.add_option("--budget", options.budget, "at most so many tokens, about 4 characters each")
      ->check(CLI::PositiveNumber);
  app.add_option("--now", options.now, "FIELD=VALUE that holds today; repeatable");
  app.add_option("--log", options.log, "the log's file (default: the repository's)");
  app.add_flag("--json", options.as_json, "print {\"brief\": …}");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto text = Compile(options);
  if (!text) return Report(text.error(), err);
  if (options.as_json)
    out << nlohmann::json{{"brief", *text}}.dump(2, ' ', false,
                                                 nlohmann::json::error_handler_t::replace)
        << "\n";
  else
    out << *text;
  return 0;
}

}  // namespace crucible
