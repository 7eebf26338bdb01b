// The commands that change the log: add, import, split.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <ostream>

#include "base/clock.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/json.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/log_checks.h"
#include "orchestrator/cli/log_command.h"
#include "orchestrator/cli/log_options.h"
#include "orchestrator/cli/log_text.h"
#include "orchestrator/workspace.h"
#include "results_log/jsonl.h"
#include "results_log/retest.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using nlohmann::json;

// The repository's own folder is made so that it ignores itself: the log makes nothing dirty.
Result<std::filesystem::path> LogFileToWrite(const std::string& given) {
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFile(given));
  if (given.empty()) CRUCIBLE_TRY(PrepareHome(Workspace{file.parent_path(), {}}));
  return file;
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

Result<Entry> EntryFrom(const LogOptions& options) {
  Entry entry = options.entry;
  const auto kind = EntryKindFromText(options.kind);
  if (!kind)
    return Fail(ErrorKind::kUsage, "add entry", "",
                fmt::format("--kind {} is unknown", options.kind),
                "kinds: win, loss, null, inconclusive, refused, crashed, note, floor");
  entry.kind = *kind;
  entry.time_ms = SystemClock().UnixMs();
  if (entry.author.empty()) entry.author = UserAuthor();
  if ((options.before_us || options.after_us) && options.cases.size() != 1)
    return Fail(ErrorKind::kUsage, "add entry", "", "--before and --after are times of one case",
                "name one --case, and add an entry for each further one");
  for (const std::string& name : options.cases) {
    CaseResult result;
    result.name = name;
    result.before_us = options.before_us;
    result.after_us = options.after_us;
    if (result.before_us && result.after_us) result.ratio = *result.after_us / *result.before_us;
    entry.cases.push_back(std::move(result));
  }
  CRUCIBLE_ASSIGN(const auto conditions, NamedValues("--condition", options.conditions));
  for (const auto& [name, value] : conditions) entry.conditions[name] = value;
  CRUCIBLE_ASSIGN(const auto evidence, NamedValues("--evidence", options.evidence));
  for (const auto& [name, ref] : evidence) entry.evidence.push_back({name, ref, ""});
  if (entry.kind == EntryKind::kFloor && entry.mechanism.empty()) entry.mechanism = "floor";
  if (entry.kind == EntryKind::kFloor && entry.summary.empty() && options.after_us)
    entry.summary = fmt::format("{} cannot be faster than {}", options.cases.front(),
                                FormatMicroseconds(*options.after_us));
  const bool silent = entry.kind == EntryKind::kFloor
                          ? entry.summary.empty() && entry.reason.empty()
                          : entry.summary.empty() && entry.mechanism.empty();
  if (silent)
    return Fail(ErrorKind::kUsage, "add entry", "", "it says nothing",
                entry.kind == EntryKind::kFloor ? "give --case with --after, --summary or --reason"
                                                : "give --summary or --mechanism");
  CRUCIBLE_TRY(CheckTimes(entry));
  return entry;
}

}  // namespace

Result<int> AddToLog(const LogOptions& options, std::ostream& out, std::ostream&) {
  CRUCIBLE_ASSIGN(Entry entry, EntryFrom(options));
  CRUCIBLE_ASSIGN(const std::filesystem::path file, LogFileToWrite(options.log));
  CRUCIBLE_TRY(SealEvidence(file.parent_path(), &entry));
  CRUCIBLE_ASSIGN(Store store, Store::Open(file));
  if (!entry.supersedes.empty()) {
    CRUCIBLE_ASSIGN(const Entry old, store.FindEntry(entry.supersedes));
    entry.supersedes = old.key;
    if (entry.target.empty()) entry.target = old.target;
  }
  CRUCIBLE_TRY(CheckNames(&store, entry, options.log.empty()));
  Entry added;
  CRUCIBLE_TRY(store.InTransaction([&]() -> Result<> {
    CRUCIBLE_ASSIGN(const std::int64_t id, store.AddEntry(entry));
    CRUCIBLE_ASSIGN(added, store.FindEntry(fmt::format("e{}", id)));
    // A computed floor stands beside the records; one that is merely asserted does not.
    if (entry.kind != EntryKind::kFloor || !options.after_us || IsAssertedFloor(entry)) return {};
    return store.AddPoints(
        {{entry.target, options.cases.front(), "floor", entry.reason, entry.time_ms,
          *options.after_us, std::nullopt, std::nullopt, false, added.key, "{}"}});
  }));
  if (options.as_json)
    out << Dump(WithId(added)) << "\n";
  else
    fmt::print(
        out, "added e{} ({}){}\n", added.id, added.key,
        IsAssertedFloor(entry)
            ? "; it names no limit that it was computed from (--reason with a rate, a clock or a "
              "latency and its unit, or --evidence): the brief lists it as asserted"
            : "");
  return 0;
}

// One file's part of an import, in a sentence.
std::string ImportedText(const json& item) {
  const auto counted = [&](const char* key, const char* one, const char* many = "") {
    return Counted(item[key].get<int>(), one, many);
  };
  return fmt::format("{}: new: {}, {}, {}, {}, {}; known: {}, {} of them with other words{}\n",
                     item["file"].get<std::string>(), counted("entries", "entry", "entries"),
                     counted("missions", "mission"), counted("campaigns", "campaign"),
                     counted("points", "point"), counted("events", "event"),
                     item["known"].get<int>(), item["differing"].get<int>(),
                     item["differing"].get<int>() > 0 ? " (the log's own were kept)" : "");
}

// A file that does not read leaves no log where there was none: it is tried on another one first.
Result<> TryImport(const std::vector<std::string>& files, const std::vector<std::string>& texts) {
  CRUCIBLE_ASSIGN(const std::filesystem::path folder, MakeTemporaryDirectory("crucible_import_"));
  const auto import_all = [&]() -> Result<> {
    CRUCIBLE_ASSIGN(Store trial, Store::Open(folder / "log.sqlite"));
    for (std::size_t i = 0; i < texts.size(); ++i)
      CRUCIBLE_TRY(ImportLines(&trial, texts[i], files[i]));
    return {};
  };
  const Result<> result = import_all();
  (void)RemoveTree(folder);
  return result;
}

Result<int> ImportToLog(const LogOptions& options, std::ostream& out, std::ostream&) {
  std::vector<std::string> texts;
  for (const std::string& file : options.files) {
    CRUCIBLE_ASSIGN(std::string text, ReadFile(file));
    texts.push_back(std::move(text));
  }
  CRUCIBLE_ASSIGN(const std::filesystem::path wanted, LogFile(options.log));
  std::error_code ignored;
  if (!std::filesystem::exists(wanted, ignored)) CRUCIBLE_TRY(TryImport(options.files, texts));
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
    for (const json& item : list) out << ImportedText(item);
  return 0;
}

Result<int> SplitInLog(const LogOptions& options, std::ostream& out, std::ostream&) {
  const std::string author = options.entry.author.empty() ? UserAuthor() : options.entry.author;
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

}  // namespace crucible
