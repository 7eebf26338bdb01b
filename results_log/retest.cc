#include "results_log/retest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace crucible {
namespace {

bool SameExperiment(const Entry& one, const Entry& other) {
  if (one.target != other.target || one.mechanism != other.mechanism || one.change != other.change)
    return false;
  std::vector<std::string> names;
  for (const CaseResult& result : other.cases) names.push_back(result.name);
  return Concerns(one, names);
}

// Decided later, under conditions that hold today: the older entry is settled by it.
bool AnsweredLater(const std::vector<Entry>& entries, const Entry& old, const Conditions& now) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& other) {
    return other.time_ms > old.time_ms && other.kind != EntryKind::kInconclusive &&
           other.kind != EntryKind::kNote && SameExperiment(other, old) &&
           !other.conditions.empty() && ChangedSince(other.conditions, now).empty();
  });
}

// The harness's entries, and a person's that hold a measurement.
bool SaysWhatHolds(const Entry& entry) {
  return !entry.author.starts_with("user:") ||
         std::any_of(entry.cases.begin(), entry.cases.end(),
                     [](const CaseResult& result) { return result.after_us.has_value(); });
}

std::vector<const Entry*> InTime(const std::vector<Entry>& entries) {
  std::vector<const Entry*> ordered;
  for (const Entry& entry : entries) ordered.push_back(&entry);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Entry* a, const Entry* b) { return a->time_ms < b->time_ms; });
  return ordered;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// What stands behind a number: a rate (GB/s, flops/cycle, TFLOPS) or a clock (GHz).
bool IsARate(std::string_view unit) {
  const auto ends = [&](std::string_view word) {
    return unit.size() >= word.size() && unit.substr(unit.size() - word.size()) == word;
  };
  if (ends("/s") || ends("/cycle") || ends("/clk") || ends("/clock") || ends("hz")) return true;
  // With a prefix a rate; "flops" alone counts operations.
  return ends("flops") && unit.size() == 6 &&
         std::string_view("kmgtp").find(unit[0]) != std::string_view::npos;
}

// A number with the unit of a limit of the machine. A time is one where it is called a latency or
// what a launch takes; else it is the claim itself, as is any other number.
bool NamesALimit(const std::string& reason) {
  const std::string text = Lower(reason);
  const bool of_latency =
      text.find("latency") != std::string::npos || text.find("launch") != std::string::npos;
  constexpr std::string_view kDigits = "0123456789", kUnit = "abcdefghijklmnopqrstuvwxyz/";
  for (std::size_t at = text.find_first_of(kDigits); at != std::string::npos;
       at = text.find_first_of(kDigits, at)) {
    at = std::min(text.find_first_not_of("0123456789.,", at), text.size());
    std::size_t unit = std::min(text.find_first_not_of(' ', at), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kUnit, unit), text.size());
    const std::string_view word = std::string_view(text).substr(unit, end - unit);
    if (IsARate(word)) return true;
    if (of_latency && (word == "ns" || word == "us" || word == "ms" || word == "cycles"))
      return true;
  }
  return text.find("bytes a second") != std::string::npos ||
         text.find("per second") != std::string::npos;
}

}  // namespace

bool IsRejection(EntryKind kind) {
  return kind == EntryKind::kLoss || kind == EntryKind::kNull || kind == EntryKind::kRefused ||
         kind == EntryKind::kCrashed;
}

bool IsRejection(const Entry& entry) { return IsRejection(entry.kind) && !entry.landed; }

std::set<std::string> ReplacedKeys(const std::vector<Entry>& entries) {
  std::set<std::string> keys;
  for (const Entry& entry : entries) {
    if (!entry.supersedes.empty()) keys.insert(entry.supersedes);
    if (!entry.split_from.empty()) keys.insert(entry.split_from);
  }
  return keys;
}

bool Concerns(const Entry& entry, const std::vector<std::string>& cases) {
  if (cases.empty() || entry.cases.empty()) return true;
  return std::any_of(entry.cases.begin(), entry.cases.end(), [&](const CaseResult& result) {
    return std::find(cases.begin(), cases.end(), result.name) != cases.end();
  });
}

bool OverturnedLater(const std::vector<Entry>& entries, const Entry& rejection) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& other) {
    return other.time_ms > rejection.time_ms && other.kind == EntryKind::kWin &&
           SameExperiment(other, rejection);
  });
}

RetestSurvey SurveyRetests(const std::vector<Entry>& entries, const std::vector<std::string>& cases,
                           const Conditions& now) {
  const std::set<std::string> replaced = ReplacedKeys(entries);
  RetestSurvey survey;
  for (const Entry& entry : entries) {
    if (!IsRejection(entry) && entry.kind != EntryKind::kInconclusive) continue;
    if (!Concerns(entry, cases)) continue;
    auto changed = ChangedSince(entry.conditions, now);
    if (replaced.contains(entry.key))
      ++survey.replaced;
    else if (OverturnedLater(entries, entry) ||
             (!changed.empty() && AnsweredLater(entries, entry, now)))
      ++survey.settled;
    else if (entry.conditions.empty())
      ++survey.without_conditions;
    else if (changed.empty())
      ++survey.holding;
    else
      survey.retests.push_back({entry, std::move(changed)});
  }
  return survey;
}

std::vector<Retest> FindRetests(const std::vector<Entry>& entries,
                                const std::vector<std::string>& cases, const Conditions& now) {
  return SurveyRetests(entries, cases, now).retests;
}

std::string Describe(const std::vector<ChangedCondition>& changed) {
  std::string text;
  for (const ChangedCondition& item : changed)
    text +=
        fmt::format("{}{}: {} -> {}", text.empty() ? "" : "; ", item.field, item.then, item.now);
  return text;
}

Conditions ConditionsFromLog(const std::vector<Entry>& entries,
                             const std::vector<std::string>& cases, Conditions known) {
  Conditions now = std::move(known);
  const Entry* generation = nullptr;
  for (const Entry& entry : entries) {
    if (entry.conditions.empty()) continue;
    if (entry.conditions.contains("kernel_generation") && Concerns(entry, cases) &&
        (generation == nullptr || entry.time_ms >= generation->time_ms))
      generation = &entry;
  }
  // Field by field: an entry that names one condition says nothing of the others.
  if (now.empty())
    for (const Entry* entry : InTime(entries))
      if (SaysWhatHolds(*entry))
        for (const auto& [field, value] : entry->conditions) now[field] = value;
  now.erase("kernel_generation");
  if (generation != nullptr)
    now["kernel_generation"] = generation->landed ? "after " + generation->key
                                                  : generation->conditions.at("kernel_generation");
  return now;
}

bool IsAssertedFloor(const Entry& floor) {
  return floor.kind == EntryKind::kFloor && floor.evidence.empty() && !NamesALimit(floor.reason);
}

Result<std::vector<Entry>> SplitEntry(Store* store, const std::string& key_or_id,
                                      std::vector<Entry> parts) {
  if (parts.size() < 2)
    return Fail(ErrorKind::kUsage, "split entry", key_or_id,
                fmt::format("{} part given", parts.size()),
                "name at least two mechanisms it mixed (--part, twice or more)");
  CRUCIBLE_ASSIGN(const Entry whole, store->FindEntry(key_or_id));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Entry& part = parts[i];
    part.key = fmt::format("{}.s{}", whole.key, i + 1);
    part.split_from = whole.key;
    part.target = whole.target;
    part.campaign = whole.campaign;
    part.mission = whole.mission;
    if (part.flavour.empty()) part.flavour = whole.flavour;
    // The whole's times are of all parts together: a part concerns the same cases, unmeasured.
    if (part.cases.empty())
      for (const CaseResult& result : whole.cases)
        part.cases.push_back({.name = result.name, .role = result.role});
    if (part.conditions.empty()) part.conditions = whole.conditions;
    if (part.evidence.empty()) part.evidence = whole.evidence;
  }
  std::vector<Entry> stored;
  CRUCIBLE_TRY(store->InTransaction([&]() -> Result<> {
    for (const Entry& part : parts) {
      CRUCIBLE_TRY(store->AddEntry(part));
      CRUCIBLE_ASSIGN(Entry added, store->FindEntry(part.key));
      stored.push_back(std::move(added));
    }
    return store->MarkConflated(whole.key, true);
  }));
  return stored;
}

}  // namespace crucible
