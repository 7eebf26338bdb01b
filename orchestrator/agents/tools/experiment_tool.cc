// experiment_tool.cc: log_experiment: the agent's words to the harness's numbers.
//
// The entry was made when the judge (or the build) answered; the agent says what it changed and
// what it expected, and cannot say what came of it. A rejection that the log already has is
// refused, with its entry named, and a confirmed gain where the log said "rejected" replaces that
// entry.
#include <fmt/format.h>

#include "base/json.h"
#include "orchestrator/agents/tools/duplicates.h"
#include "orchestrator/agents/tools/tool_lists.h"
#include "results_log/retest.h"

namespace crucible {
namespace {

using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::size_t kLongestMechanism = 120;
constexpr std::size_t kLongestText = 4000;    // hypothesis, description
constexpr std::size_t kLongestParams = 2000;  // as JSON

Result<> Words(const std::string& field, const std::string& text, std::size_t most) {
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
  if (!blank && text.size() <= most) return {};
  return Fail(ErrorKind::kUsage, "log_experiment", field,
              blank ? "it is empty" : fmt::format("it is longer than {} bytes", most),
              "say it in a few words");
}

Result<Entry> Described(const Session& session, const json& arguments) {
  if (!session.state.pending)
    return Fail(ErrorKind::kUsage, "log_experiment", session.order().id,
                session.state.last_logged.empty()
                    ? "nothing was measured yet"
                    : "the last measurement is in the log as [" + session.state.last_logged + "]",
                "compare first: the numbers come from the harness alone; note keeps an idea");
  Entry entry = *session.state.pending;
  entry.mechanism = arguments.at("mechanism");
  entry.hypothesis = arguments.at("hypothesis");
  CRUCIBLE_TRY(Words("mechanism", entry.mechanism, kLongestMechanism));
  CRUCIBLE_TRY(Words("hypothesis", entry.hypothesis, kLongestText));
  json change = json::parse(entry.change);
  change["params"] = arguments.value("params", json::object());
  if (change["params"].dump().size() > kLongestParams)
    return Fail(ErrorKind::kUsage, "log_experiment", "params",
                fmt::format("they are longer than {} bytes", kLongestParams),
                "name what was set, not how");
  if (arguments.contains("description")) {
    change["description"] = arguments["description"];
    CRUCIBLE_TRY(Words("description", arguments["description"], kLongestText));
  }
  entry.change = JsonText(change);
  entry.key = fmt::format("{}.{}", session.order().key_prefix, session.state.number + 1);
  return entry;
}

// What the log says of the same experiment, and what that means for this entry.
Result<> AgainstTheLog(Session* session, Entry* entry, const std::string& params) {
  EntryFilter filter;
  filter.target = session->target().name;
  CRUCIBLE_ASSIGN(const auto entries, session->store.QueryEntries(filter));
  const json change = json::parse(entry->change);
  Experiment experiment{
      entry->mechanism, params, change.value("tree", ""), change.value("against", ""), {}};
  for (const CaseResult& result : entry->cases) experiment.cases.push_back(result.name);
  const Entry* old =
      FindRejection(entries, experiment, session->order().now, session->order().retry);
  if (old == nullptr) return {};
  if (entry->kind == EntryKind::kWin) {
    entry->supersedes = old->key;
    return {};
  }
  session->state.pending_known = old->key;  // answered: the mission may go on without logging it
  CRUCIBLE_TRY(session->Save());
  return Fail(ErrorKind::kConflict, "log_experiment", entry->mechanism,
              "the log has this experiment, rejected under today's conditions: " + Citation(*old),
              "leave it and try something else; if it is another experiment, say in mechanism "
              "and params how it differs");
}

Result<ToolAnswer> LogExperiment(Session* session, const json& arguments) {
  CRUCIBLE_ASSIGN(Entry entry, Described(*session, arguments));
  const std::string params = arguments.value("params", json::object()).dump();
  CRUCIBLE_TRY(AgainstTheLog(session, &entry, params));
  // The number first: a kill between the two leaves a gap in the keys, never a key used twice.
  ++session->state.number;
  CRUCIBLE_TRY(session->Save());
  CRUCIBLE_ASSIGN(const std::int64_t id, session->store.AddEntry(entry));
  session->state.pending.reset();
  session->state.pending_known.clear();
  session->state.last_logged = fmt::format("e{}", id);
  CRUCIBLE_TRY(session->Save());
  const std::string what = fmt::format("{} {}: {}", ToText(entry.kind), entry.mechanism,
                                       entry.summary.empty() ? entry.reason : entry.summary);
  session->Event("decision", what);
  return Say(fmt::format("logged as [e{}]: {}{}\n", id, what,
                         entry.supersedes.empty() ? "" : "; it replaces " + entry.supersedes));
}

}  // namespace

void AddExperimentTool(const SharedSession& session, ToolSet* tools) {
  tools->push_back(MakeFunctionTool(
      {"log_experiment",
       "Log the last measurement (comparison, failed check or failed build), once, whatever came "
       "of it. You say what was changed and what you expected; the numbers and the verdict are the "
       "harness's.",
       {{.name = "mechanism",
         .help = "what it changes physically, short and reusable: \"panel width\"",
         .required = true},
        {.name = "hypothesis", .help = "what it should have gained, and why", .required = true},
        {.name = "params",
         .kind = Kind::kObject,
         .help = "what was set, as {\"panel_width\": [4, 8]} (before, after) or {\"layout\": "
                 "\"columns\"}; the same mechanism with the same params is the same experiment"},
        {.name = "description", .help = "what was changed, for a reader of the log"}},
       [session](const json& arguments) { return LogExperiment(session.get(), arguments); }}));
}

}  // namespace crucible
