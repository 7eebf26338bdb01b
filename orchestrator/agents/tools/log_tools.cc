// log_tools.cc: brief and log_query: what the results log knows.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "briefs/brief.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {
namespace {

using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::int64_t kDefaultTokens = 3000;
constexpr std::int64_t kDefaultEntries = 20;
constexpr std::size_t kLongestField = 240;

// An answer, or its beginning and a file with all of it.
Result<ToolAnswer> Bounded(Session* session, const std::string& name, const std::string& text) {
  const std::size_t most = session->context.limits.answer_bytes;
  if (text.size() <= most) return Say(text);
  const std::filesystem::path file = session->NextOutput(name);
  CRUCIBLE_TRY(WriteFileAtomically(file, text));
  return Say(Head(text, most, file.string()));
}

Result<ToolAnswer> Brief(Session* session, const json& arguments) {
  BriefInput input;
  input.target = session->target().name;
  input.cases = arguments.value("cases", session->order().cases);
  CRUCIBLE_TRY(SelectCases(session->target(), input.cases));
  input.token_budget = static_cast<int>(arguments.value("tokens", kDefaultTokens));
  EntryFilter filter;
  filter.target = input.target;
  CRUCIBLE_ASSIGN(input.entries, session->store.QueryEntries(filter));
  CRUCIBLE_ASSIGN(input.points, session->store.Points(input.target));
  input.now = session->order().now;
  input.commands = {"compare {\"rule\": \"screen\"}, then compare {\"rule\": \"claim\"}"};
  return Bounded(session, "brief", CompileBrief(input));
}

std::string Line(const Entry& entry) {
  std::string text = fmt::format(
      "[e{}] {} {} {}: {}", entry.id, FormatUtc(entry.time_ms).substr(0, 16), ToText(entry.kind),
      Shorten(entry.mechanism, kLongestField), Shorten(entry.summary, kLongestField));
  if (!entry.reason.empty()) text += ". Why: " + Shorten(entry.reason, kLongestField);
  return text + fmt::format(" ({})\n", entry.author);
}

Result<EntryFilter> FilterFrom(const Session& session, const json& arguments) {
  EntryFilter filter;
  filter.target = session.target().name;
  filter.cases = arguments.value("cases", std::vector<std::string>());
  for (const std::string& kind : arguments.value("kinds", std::vector<std::string>()))
    filter.kinds.push_back(EntryKindFromText(kind).value());  // the schema's choices
  filter.text = arguments.value("text", std::string());
  filter.mechanism = arguments.value("mechanism", std::string());
  filter.mission = arguments.value("mission", std::string());
  return filter;
}

Result<ToolAnswer> LogQuery(Session* session, const json& arguments) {
  if (arguments.contains("entry")) {
    CRUCIBLE_ASSIGN(const Entry entry, session->store.FindEntry(arguments["entry"]));
    return Bounded(session, "entry", JsonText(ToJson(entry), 2) + "\n");
  }
  CRUCIBLE_ASSIGN(EntryFilter filter, FilterFrom(*session, arguments));
  const auto offset = static_cast<std::size_t>(arguments.value("offset", std::int64_t{0}));
  const auto limit = static_cast<std::size_t>(arguments.value("limit", kDefaultEntries));
  filter.limit = static_cast<int>(offset + limit + 1);  // one more says whether there are more
  CRUCIBLE_ASSIGN(const auto entries, session->store.QueryEntries(filter));
  if (entries.empty()) return Say("no entry matches\n");
  if (offset >= entries.size())
    return Say(
        fmt::format("no entry matches from offset {} on; there are {}\n", offset, entries.size()));
  const std::size_t end = std::min(entries.size(), offset + limit);
  std::string text;
  for (std::size_t i = offset; i < end; ++i) text += Line(entries[i]);
  if (offset > 0 || end < entries.size())
    text += fmt::format("[{} to {}, newest first; {}]\n", offset + 1, end,
                        end < entries.size() ? fmt::format("older ones: offset {}", end)
                                             : "there are no older ones");
  return Bounded(session, "log", text);
}

}  // namespace

void AddLogTools(const SharedSession& session, ToolSet* tools) {
  std::vector<std::string> cases;
  for (const TargetCase& item : session->target().cases) cases.push_back(item.name);
  tools->push_back(MakeFunctionTool(
      {"brief",
       "What the results log knows of cases, fresh: records and floors, what holds, what was "
       "rejected and must not be tried again, what is up for a retest, open leads.",
       {{.name = "cases", .kind = Kind::kTexts, .help = "default: the mission's", .choices = cases},
        {.name = "tokens",
         .kind = Kind::kInteger,
         .help = "at most so many (default 3000)",
         .least = 200,
         .most = 20'000}},
       [session](const json& arguments) { return Brief(session.get(), arguments); }}));
  tools->push_back(MakeFunctionTool(
      {"log_query",
       "Entries of the results log, newest first, or one of them whole.",
       {{.name = "entry", .help = "an id or key, like e12: that entry alone, with everything"},
        {.name = "cases", .kind = Kind::kTexts, .help = "of any of these cases", .choices = cases},
        {.name = "kinds",
         .kind = Kind::kTexts,
         .help = "of any of these kinds",
         .choices = {"win", "loss", "null", "inconclusive", "refused", "crashed", "note", "floor"}},
        {.name = "text", .help = "words in the mechanism, hypothesis, summary or reason"},
        {.name = "mechanism", .help = "exactly this mechanism"},
        {.name = "mission", .help = "of one mission, like m12"},
        {.name = "limit",
         .kind = Kind::kInteger,
         .help = "most entries (default 20)",
         .least = 1,
         .most = 200},
        {.name = "offset",
         .kind = Kind::kInteger,
         .help = "so many of the newest left out (default 0), to go on where an answer ended",
         .least = 0,
         .most = 1'000'000}},
       [session](const json& arguments) { return LogQuery(session.get(), arguments); }}));
}

}  // namespace crucible
