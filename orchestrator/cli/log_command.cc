#include "orchestrator/cli/log_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <ostream>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "orchestrator/cli/log_text.h"
#include "orchestrator/cli/records.h"
#include "orchestrator/workspace.h"
#include "results_log/jsonl.h"
#include "results_log/retest.h"

namespace crucible {
namespace {

// The repository's own folder is made so that it ignores itself: the log makes nothing dirty.
Result<std::filesystem::path> LogFileToWrite(const std::string& given) {
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFile(given));
  if (given.empty()) CRUCIBLE_TRY(PrepareHome(Workspace{file.parent_path(), {}}));
  return file;
}

using nlohmann::json;
using Texts = std::vector<std::string>;

// What the options leave behind; one set for all subcommands.
struct Options {
  std::string log, id, kind, target, campaign, mission, mechanism, author, text, file;
  Entry entry;
  std::optional<double> before_us, after_us;
  Texts cases, kinds, conditions, evidence, files, now, parts;
  int limit = 20;
  bool as_json = false, superseded = false, events = false, conflated = false;
};

Result<int> Add(Options options, std::ostream& out) {
  Entry& entry = options.entry;
  const auto kind = EntryKindFromText(options.kind);
  if (!kind)
    return Fail(ErrorKind::kUsage, "add entry", "",
                fmt::format("--kind {} is unknown", options.kind),
                "kinds: win, loss, null, inconclusive, refused, crashed, note, floor");
  entry.kind = *kind;
  entry.time_ms = SystemClock().UnixMs();
  if (entry.author.empty()) {
    const passwd* user = ::getpwuid(::getuid());
    entry.author =
        "user:" + (user != nullptr ? std::string(user->pw_name) : std::to_string(::getuid()));
  }
  if ((options.before_us || options.after_us) && options.cases.size() != 1)
    return Fail(ErrorKind::kUsage, "add entry", "", "--before and --after are times of one case",
                "name one --case, and add an entry for each further one");
  for (const std::string& name : options.cases) {
    CaseResult result;
    result.name = name;
    result.before_us = options.before_us;
    result.after_us = options.after_us;
    if (result.before_us && result.after_us && *result.before_us > 0)
      result.ratio = *result.after_us / *result.before_us;
    entry.cases.push_back(std::move(result));
  }
  CRUCIBLE_ASSIGN(const auto conditions, NamedValues("--condition", options.conditions));
  for (const auto& [name, value] : conditions) entry.conditions[name] = value;
  CRUCIBLE_ASSIGN(const auto evidence, NamedValues("--evidence", options.evidence));
  for (const auto& [name, ref] : evidence) entry.evidence.push_back({name, ref, ""});
  if (entry.summary.empty() && entry.mechanism.empty())
    return Fail(ErrorKind::kUsage, "add entry", "", "it says nothing",
                "give --summary or --mechanism");
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFileToWrite(options.log));
  CRUCIBLE_ASSIGN(Store store, Store::Open(file));
  if (!entry.supersedes.empty()) {
    CRUCIBLE_ASSIGN(const Entry old, store.FindEntry(entry.supersedes));
    entry.supersedes = old.key;
    if (entry.target.empty()) entry.target = old.target;
  }
  CRUCIBLE_ASSIGN(const std::int64_t id, store.AddEntry(entry));
  CRUCIBLE_ASSIGN(const Entry added, store.FindEntry(fmt::format("e{}", id)));
  // A computed floor stands beside the records; one that is merely asserted does not.
  if (entry.kind == EntryKind::kFloor && options.after_us && !IsAssertedFloor(entry))
    CRUCIBLE_TRY(
        store.AddPoints({{entry.target, options.cases.front(), "floor", entry.reason, entry.time_ms,
                          *options.after_us, std::nullopt, std::nullopt, false, added.key, "{}"}}));
  if (options.as_json)
    out << Dump(WithId(added)) << "\n";
  else
    fmt::print(out, "added e{} ({}){}\n", id, added.key,
               IsAssertedFloor(entry)
                   ? "; it names no limit that it was computed from (--reason with the numbers, or "
                     "--evidence): the brief lists it as asserted"
                   : "");
  return 0;
}

Result<Store> Reading(const Options& options) {
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFile(options.log));
  return Store::OpenReadOnly(file);
}

// The newer entries that took this one's place, "e26 e27".
Result<std::string> ReplacedBy(Store* store, const Entry& entry) {
  EntryFilter filter;
  filter.target = entry.target;
  filter.superseded = true;
  CRUCIBLE_ASSIGN(const auto entries, store->QueryEntries(filter));
  Texts ids;
  for (const Entry& other : entries)
    if (other.supersedes == entry.key || other.split_from == entry.key)
      ids.push_back(fmt::format("e{}", other.id));
  return fmt::format("{}", fmt::join(ids, " "));
}

Result<int> Show(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const Entry entry, store.FindEntry(options.id));
  CRUCIBLE_ASSIGN(const std::string replaced_by, ReplacedBy(&store, entry));
  if (options.as_json)
    out << Dump(WithId(entry)) << "\n";
  else
    PrintEntry(entry, out);
  if (!options.as_json && !replaced_by.empty())
    fmt::print(out, "  {:<12} {}\n", "replaced by", replaced_by);
  return 0;
}

Result<int> Query(const Options& options, std::ostream& out) {
  EntryFilter filter;
  filter.cases = options.cases;
  for (const std::string& name : options.kinds) {
    const auto kind = EntryKindFromText(name);
    if (!kind)
      return Fail(ErrorKind::kUsage, "query log", "", fmt::format("--kind {} is unknown", name),
                  "kinds: win, loss, null, inconclusive, refused, crashed, note, floor");
    filter.kinds.push_back(*kind);
  }
  filter.target = options.target;
  filter.campaign = options.campaign;
  filter.mission = options.mission;
  filter.mechanism = options.mechanism;
  filter.author = options.author;
  filter.text = options.text;
  filter.superseded = options.superseded;
  filter.limit = options.limit;
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(filter));
  json list = json::array();
  for (const Entry& entry : entries) {
    if (options.as_json)
      list.push_back(WithId(entry));
    else
      out << Row(entry) << "\n";
  }
  if (options.as_json) out << Dump(list) << "\n";
  return 0;
}

Result<int> Export(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const std::string text, ExportLines(&store, {.events = options.events}));
  if (options.file.empty() || options.file == "-")
    out << text;
  else
    CRUCIBLE_TRY(WriteFileAtomically(options.file, text));
  return 0;
}

Result<int> Import(const Options& options, std::ostream& out) {
  std::vector<std::string> texts;
  for (const std::string& file : options.files) {
    CRUCIBLE_ASSIGN(std::string text, ReadFile(file));
    texts.push_back(std::move(text));
  }
  CRUCIBLE_ASSIGN(const std::filesystem::path log, LogFileToWrite(options.log));
  CRUCIBLE_ASSIGN(Store store, Store::Open(log));
  json list = json::array();
  // All files or none: the transaction around them is one.
  CRUCIBLE_TRY(store.InTransaction([&]() -> Result<> {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CRUCIBLE_ASSIGN(const ImportSummary sum, ImportLines(&store, texts[i], options.files[i]));
      list.push_back({{"file", options.files[i]},
                      {"entries", sum.entries},
                      {"missions", sum.missions},
                      {"campaigns", sum.campaigns},
                      {"points", sum.points},
                      {"events", sum.events},
                      {"known", sum.known},
                      {"differing", sum.differing}});
    }
    return {};
  }));
  if (options.as_json)
    out << Dump(list) << "\n";
  else
    for (const json& item : list)
      fmt::print(out,
                 "{}: {} entries, {} missions, {} campaigns, {} points, {} events are new; {} "
                 "were known, {} of them with other words (the log's own were kept)\n",
                 item["file"].get<std::string>(), item["entries"].get<int>(),
                 item["missions"].get<int>(), item["campaigns"].get<int>(),
                 item["points"].get<int>(), item["events"].get<int>(), item["known"].get<int>(),
                 item["differing"].get<int>());
  return 0;
}

Result<int> RetestList(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const std::string target, OnlyTarget(&store, options.target));
  CRUCIBLE_ASSIGN(const Conditions now,
                  ConditionsToday(&store, target, options.cases, options.now));
  EntryFilter filter;
  filter.target = target;
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(filter));
  json list = json::array();
  for (const Retest& retest : FindRetests(entries, options.cases, now)) {
    json changed = json::array();
    for (const ChangedCondition& item : retest.changed)
      changed.push_back({{"field", item.field}, {"then", item.then}, {"now", item.now}});
    list.push_back({{"entry", WithId(retest.entry)}, {"changed", changed}});
    if (!options.as_json)
      fmt::print(out, "{}\n       changed: {}\n       it said: {}\n", Row(retest.entry),
                 Describe(retest.changed),
                 retest.entry.reason.empty() ? retest.entry.summary : retest.entry.reason);
  }
  if (options.as_json) {
    out << Dump(list) << "\n";
    return 0;
  }
  Texts today;
  for (const auto& [field, value] : now)
    if (MattersForRetest(field)) today.push_back(field + " = " + value);
  if (list.empty())
    out << "nothing is up for a retest\n";
  else
    fmt::print(out, "{} up for a retest\n", list.size());
  fmt::print(out, "today: {}\n",
             today.empty() ? "no conditions are known; name them with --now FIELD=VALUE"
                           : fmt::format("{}", fmt::join(today, "; ")));
  return 0;
}

// --part 'KIND:MECHANISM:SUMMARY', the summary may be left out.
Result<Entry> PartFrom(const std::string& text, const std::string& author) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  const auto kind = EntryKindFromText(text.substr(0, first));
  if (first == std::string::npos || !kind)
    return Fail(ErrorKind::kUsage, "read --part", text, "it is not KIND:MECHANISM[:SUMMARY]",
                "for example --part 'loss:panel width:slower by itself'");
  Entry part;
  part.kind = *kind;
  part.time_ms = SystemClock().UnixMs();
  part.author = author;
  part.mechanism =
      text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  if (second != std::string::npos) part.summary = text.substr(second + 1);
  return part;
}

Result<int> Split(const Options& options, std::ostream& out) {
  std::string author = options.entry.author;
  if (author.empty()) {
    const passwd* user = ::getpwuid(::getuid());
    author = "user:" + (user != nullptr ? std::string(user->pw_name) : std::to_string(::getuid()));
  }
  std::vector<Entry> parts;
  for (const std::string& text : options.parts) {
    CRUCIBLE_ASSIGN(Entry part, PartFrom(text, author));
    parts.push_back(std::move(part));
  }
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFile(options.log));
  CRUCIBLE_TRY(Store::OpenReadOnly(file));  // an entry of no log cannot be split
  CRUCIBLE_ASSIGN(Store store, Store::Open(file));
  CRUCIBLE_ASSIGN(const auto stored, SplitEntry(&store, options.id, std::move(parts)));
  json list = json::array();
  for (const Entry& entry : stored) {
    list.push_back(WithId(entry));
    if (!options.as_json) out << Row(entry) << "\n";
  }
  if (options.as_json) out << Dump(list) << "\n";
  return 0;
}

Result<int> Records(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Store store, Reading(options));
  CRUCIBLE_ASSIGN(const auto points, store.Points(options.target));
  EntryFilter measurements;
  measurements.target = options.target;
  measurements.kinds = {EntryKind::kNote};
  CRUCIBLE_ASSIGN(const auto entries, store.QueryEntries(measurements));
  const json records = RecordsOf(points, entries);
  out << (options.as_json ? Dump(records) + "\n" : RecordsText(records));
  return 0;
}

using Action = Result<int> (*)(const Options&, std::ostream&);

Result<int> AddCopy(const Options& options, std::ostream& out) { return Add(options, out); }

void Filters(CLI::App* sub, Options* options) {
  sub->add_option("--case", options->cases, "a case; repeatable: any of them");
  sub->add_option("--target", options->target, "entries of this target");
}

void Declare(CLI::App* app, Options* o, std::vector<std::pair<CLI::App*, Action>>* actions) {
  app->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Action action) {
    CLI::App* sub = app->add_subcommand(name, help);
    sub->add_option("--log", o->log, "the log's file (default: the repository's)");
    sub->add_flag("--json", o->as_json, "print JSON");
    actions->emplace_back(sub, action);
    return sub;
  };
  CLI::App* sub = add("add", "add an entry by hand", AddCopy);
  sub->add_option("--kind", o->kind, "win, loss, null, inconclusive, refused, crashed, note, floor")
      ->required();
  sub->add_option("--case", o->cases, "a case it applies to; repeatable");
  sub->add_option("--target", o->entry.target, "the target it applies to");
  sub->add_option("--campaign", o->entry.campaign, "the campaign it belongs to");
  sub->add_option("--mission", o->entry.mission, "the mission it belongs to");
  sub->add_option("--mechanism", o->entry.mechanism, "what changes physically, short");
  sub->add_option("--hypothesis", o->entry.hypothesis, "what was expected, and why");
  sub->add_option("--summary", o->entry.summary, "what happened, with the numbers");
  sub->add_option("--reason", o->entry.reason,
                  "why it was decided so; a floor: what it is computed from");
  sub->add_option("--before", o->before_us, "time before, microseconds")
      ->check(CLI::PositiveNumber);
  sub->add_option("--after", o->after_us, "time after, microseconds")->check(CLI::PositiveNumber);
  sub->add_option("--condition", o->conditions, "FIELD=VALUE it was measured under; repeatable");
  sub->add_option("--evidence", o->evidence,
                  "KIND=REF: commit, job, report, profile, file, url; repeatable");
  sub->add_option("--supersedes", o->entry.supersedes, "the entry that this one replaces");
  sub->add_option("--author", o->entry.author, "who says so (default: user:NAME)");
  sub->add_flag("--conflated", o->entry.conflated, "it changed several things at once");

  sub = add("show", "show one entry whole", Show);
  sub->add_option("ID", o->id, "e12, 12, or a key (its first 6 characters do)")->required();

  sub = add("query", "list entries, newest first", Query);
  Filters(sub, o);
  sub->add_option("--kind", o->kinds, "a kind; repeatable: any of them");
  sub->add_option("--mechanism", o->mechanism, "exactly this mechanism");
  sub->add_option("--mission", o->mission, "of this mission");
  sub->add_option("--campaign", o->campaign, "of this campaign");
  sub->add_option("--author", o->author, "of this author");
  sub->add_option("--text", o->text, "a word of mechanism, hypothesis, summary or reason");
  sub->add_option("--limit", o->limit, "at most so many; 0: all, oldest first")
      ->check(CLI::NonNegativeNumber);
  sub->add_flag("--superseded", o->superseded, "also those that another entry replaced");

  sub = add("export", "write the log as JSON Lines", Export);
  sub->add_option("FILE", o->file, "where to (default: stdout)");
  sub->add_flag("--events", o->events, "the campaign's events too");

  sub = add("import", "read JSON Lines: all of them or none", Import);
  sub->add_option("FILE", o->files, "what to read")->required();

  sub = add("retest", "list rejections whose conditions changed", RetestList);
  Filters(sub, o);
  sub->add_option("--now", o->now, "FIELD=VALUE that holds today; repeatable");

  sub = add("split", "split an entry that changed several things", Split);
  sub->add_option("ID", o->id, "the entry")->required();
  sub->add_option("--part", o->parts, "KIND:MECHANISM[:SUMMARY]; at least twice")->required();
  sub->add_option("--author", o->entry.author, "who says so (default: user:NAME)");

  sub = add("records", "first, best and newest time of every case", Records);
  sub->add_option("--target", o->target, "of this target");
}

}  // namespace

int LogCommand(const Texts& words, std::ostream& out, std::ostream& err) {
  CLI::App app("crucible log: what was tried, what came of it, under which conditions",
               "crucible log");
  Options options;
  std::vector<std::pair<CLI::App*, Action>> actions;
  Declare(&app, &options, &actions);
  try {
    app.parse(Texts(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : 2;
  }
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    const Result<int> done = action(options, out);
    if (done) return *done;
    err << "crucible: " << done.error().text << "\n";
    return ExitCode(done.error());
  }
  return 2;
}

}  // namespace crucible
