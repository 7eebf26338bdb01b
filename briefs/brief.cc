// brief.cc: sections of cited lines, then cut to the budget from the least important end.
#include "briefs/brief.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "results_log/bars.h"
#include "results_log/case_text.h"
#include "results_log/retest.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr std::size_t kCharactersPerToken = 4;
constexpr std::size_t kLongestText = 300;  // of one field: a line is a hint, the log has the rest

struct Section {
  std::string title;
  std::string empty;               // said where there is nothing to say
  int importance = 0;              // the least is cut first
  std::vector<std::string> lines;  // most important first
  std::size_t cut = 0;
};

// One line whatever the log holds: an entry's words cannot end their line and begin a section.
std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = static_cast<unsigned char>(c) < 0x21 || c == 0x7f;
    if (!blank)
      line.push_back(c);
    else if (!line.empty() && line.back() != ' ')
      line.push_back(' ');
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() <= kLongestText) return line;
  std::size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return line.substr(0, end) + "…";
}

std::string Cite(const Entry& entry) {
  return entry.id > 0 ? fmt::format("[e{}]", entry.id) : fmt::format("[{}]", OneLine(entry.key));
}

// Ends with a full stop, so that another sentence can follow.
std::string Sentence(const std::string& text) {
  const bool ended = text.empty() || text.ends_with("…") ||
                     std::string_view(".!?").find(text.back()) != std::string_view::npos;
  return ended ? text : text + ".";
}

// {"knobs":{"panel":[1,8]}} -> "panel 1 -> 8".
std::string Change(const Entry& entry) {
  const json change = json::parse(entry.change, nullptr, false);
  if (!change.is_object()) return "";
  const json& knobs = change.contains("knobs")    ? change["knobs"]
                      : change.contains("params") ? change["params"]
                                                  : change;
  if (!knobs.is_object()) return "";
  std::vector<std::string> words;
  const auto word = [](const json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  for (const auto& [name, values] : knobs.items())
    if (values.is_array() && values.size() == 2)
      words.push_back(fmt::format("{} {} -> {}", name, word(values[0]), word(values[1])));
    else if (change.contains("params") && values.is_primitive())
      words.push_back(fmt::format("{} {}", name, word(values)));
  return OneLine(fmt::format("{}", fmt::join(words, ", ")));
}

class Compiler {
 public:
  explicit Compiler(const BriefInput& input)
      : input_(input), replaced_(ReplacedKeys(input.entries)) {
    for (const Entry& entry : input.entries)
      if ((entry.target == input.target || entry.target.empty()) && Concerns(entry, input.cases))
        entries_.push_back(&entry);
    // Newest first: what is cut is what is oldest.
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry* a, const Entry* b) { return a->time_ms > b->time_ms; });
  }

  std::string Run() {
    std::vector<Section> sections = {Records(),   Holds(),          Rejected(), Retests(),
                                     Conflated(), AssertedFloors(), Leads(),    Commands()};
    return Fit(&sections);
  }

 private:
  bool Asked(const std::string& name) const {
    return input_.cases.empty() ||
           std::find(input_.cases.begin(), input_.cases.end(), name) != input_.cases.end();
  }
  bool Live(const Entry& entry) const { return !replaced_.contains(entry.key) && !entry.conflated; }

  // " [e12]"; an imported point may name no entry, or one of another log.
  std::string CitePoint(const Point& point) const {
    for (const Entry& entry : input_.entries)
      if (entry.key == point.entry_key) return " " + Cite(entry);
    return point.entry_key.empty() ? "" : fmt::format(" [{}]", OneLine(point.entry_key));
  }

  // What was tried and what came of it, the interval of every case asked for; then why, or what
  // was said of it. Whole sentences.
  std::string Line(const Entry& entry) const {
    std::string text = fmt::format("- {} {}", Cite(entry), OneLine(entry.mechanism));
    if (const std::string change = Change(entry); !change.empty()) text += " (" + change + ")";
    text += fmt::format(": {}", ToText(entry.kind));
    std::vector<std::string> numbers;
    for (const CaseResult& result : entry.cases)
      if (Asked(result.name) && (result.ratio || result.after_us))
        numbers.push_back(OneLine(CaseText(result, true)));
    const std::string summary = OneLine(entry.summary), reason = OneLine(entry.reason);
    if (!numbers.empty())
      text += fmt::format(", {}", fmt::join(numbers, ", "));
    else if (!summary.empty())
      text += ", " + summary;
    text = Sentence(text);
    if (!reason.empty())
      text += " Why: " + Sentence(reason);
    else if (!numbers.empty() && !summary.empty())
      text += " " + Sentence(summary);
    return text;
  }

  Section Records() const {
    Section section{"Records and floor", "Nothing was measured yet.", 7, {}, 0};
    std::vector<Point> points;
    for (const Point& point : input_.points)
      if (point.target == input_.target && Asked(point.case_name)) points.push_back(point);
    std::vector<CaseBar> bars = BarsOf(points);
    const auto place = [&](const CaseBar& bar) {
      return std::find(input_.cases.begin(), input_.cases.end(), bar.name) - input_.cases.begin();
    };
    std::stable_sort(bars.begin(), bars.end(),
                     [&](const CaseBar& a, const CaseBar& b) { return place(a) < place(b); });
    for (const CaseBar& bar : bars) section.lines.push_back(Record(bar));
    return section;
  }

  std::string Record(const CaseBar& bar) const {
    const auto time = [&](const Point& point) {
      return FormatMicroseconds(point.median_us) + CitePoint(point);
    };
    std::string text = fmt::format("- {}:", OneLine(bar.name));
    if (bar.record != nullptr)
      text += " record " + time(*bar.record);
    else if (bar.newest != nullptr)
      text += fmt::format(" newest {}, no record", time(*bar.newest));
    else
      text += " not measured";
    const Point* held = bar.record != nullptr ? bar.record : bar.newest;
    if (bar.first != nullptr && held != bar.first) text += ", first " + time(*bar.first);
    for (const Point* peer : bar.peers)
      text += fmt::format(", {} {}", OneLine(peer->name), time(*peer));
    if (bar.floor != nullptr) {
      text += fmt::format(", floor {} ({}){}", FormatMicroseconds(bar.floor->median_us),
                          OneLine(bar.floor->name), CiteFloor(*bar.floor));
      if (held != nullptr)
        text += fmt::format(", {:.1f}x above the floor", held->median_us / bar.floor->median_us);
    }
    return text;
  }

  // A floor's point names what it was computed from; its entry says the same as its reason.
  std::string CiteFloor(const Point& point) const {
    for (const Entry* entry : entries_)
      if (entry->kind == EntryKind::kFloor && Concerns(*entry, {point.case_name}) &&
          (entry->key == point.entry_key || entry->reason == point.name))
        return " " + Cite(*entry);
    return CitePoint(point);
  }

  // A case that another win's ratchet passed through did not win it.
  bool IsOnlyRatcheted(const Entry& entry) const {
    return !entry.cases.empty() &&
           std::none_of(entry.cases.begin(), entry.cases.end(), [&](const CaseResult& result) {
             return Asked(result.name) && result.role != "ratchet";
           });
  }

  Section Holds() const {
    Section section{"What holds, and why", "Nothing was kept yet.", 4, {}, 0};
    for (const Entry* entry : entries_)
      if ((entry->kind == EntryKind::kWin || (IsRejection(entry->kind) && entry->landed)) &&
          Live(*entry) && !IsOnlyRatcheted(*entry))
        section.lines.push_back(Line(*entry) + (entry->landed ? " On main." : " Not on main."));
    return section;
  }

  Section Rejected() const {
    Section section{"Rejected under today's conditions: do not retry", "None.", 6, {}, 0};
    // The same experiment again is the same line, with one more citation.
    std::map<std::string, std::pair<std::size_t, std::vector<std::string>>> seen;
    std::vector<const Entry*> shown;
    for (const Entry* entry : entries_) {
      if (!IsRejection(*entry) || !Live(*entry)) continue;
      if (!ChangedSince(entry->conditions, input_.now).empty()) continue;
      if (OverturnedLater(input_.entries, *entry)) continue;
      std::string same =
          fmt::format("{}\n{}\n{}", ToText(entry->kind), entry->mechanism, entry->change);
      for (const CaseResult& result : entry->cases) same += "\n" + result.name;
      auto [place, fresh] = seen.try_emplace(same, shown.size(), std::vector<std::string>());
      if (fresh)
        shown.push_back(entry);
      else
        place->second.second.push_back(Cite(*entry));
    }
    for (const Entry* entry : shown) section.lines.push_back(Line(*entry));
    for (const auto& [same, group] : seen)
      if (!group.second.empty())
        section.lines[group.first] += fmt::format(" Also {}.", fmt::join(group.second, " "));
    return section;
  }

  Section Retests() const {
    Section section{"Up for a retest, and why", "None.", 5, {}, 0};
    auto retests = FindRetests(input_.entries, input_.cases, input_.now);
    std::stable_sort(retests.begin(), retests.end(), [](const Retest& a, const Retest& b) {
      return a.entry.time_ms > b.entry.time_ms;
    });
    for (const Retest& retest : retests)
      if ((retest.entry.target == input_.target || retest.entry.target.empty()) &&
          Live(retest.entry))
        section.lines.push_back(fmt::format("{} Changed since: {}.", Line(retest.entry),
                                            OneLine(Describe(retest.changed))));
    return section;
  }

  Section Conflated() const {
    Section section{
        "Conflated: several changes at once, so none of them is judged", "None.", 2, {}, 0};
    for (const Entry* entry : entries_) {
      if (!entry->conflated) continue;
      std::vector<std::string> parts;
      for (const Entry* part : entries_)
        if (part->split_from == entry->key) parts.push_back(Cite(*part));
      std::sort(parts.begin(), parts.end());
      section.lines.push_back(
          Line(*entry) + (parts.empty() ? " Not split yet: test its parts one by one."
                                        : fmt::format(" Split into {}.", fmt::join(parts, " "))));
    }
    return section;
  }

  Section AssertedFloors() const {
    Section section{"Asserted floors to challenge", "None.", 1, {}, 0};
    for (const Entry* entry : entries_)
      if (IsAssertedFloor(*entry) && Live(*entry))
        section.lines.push_back(fmt::format(
            "- {} {}: {} It does not name what it was computed from.", Cite(*entry),
            OneLine(entry->summary.empty() ? entry->mechanism : entry->summary),
            entry->reason.empty() ? "no reason given." : "\"" + OneLine(entry->reason) + "\"."));
    return section;
  }

  Section Leads() const {
    Section section{"Open leads", "None.", 3, {}, 0};
    for (const Entry* entry : entries_) {
      if (!Live(*entry)) continue;
      if (entry->kind == EntryKind::kInconclusive &&
          ChangedSince(entry->conditions, input_.now).empty())
        section.lines.push_back(Line(*entry) + " Measure it again.");
      // A note with times is a measurement and stands under the records; one with words is a lead.
      const bool times = std::any_of(entry->cases.begin(), entry->cases.end(),
                                     [](const CaseResult& result) { return result.after_us; });
      if (entry->kind == EntryKind::kNote && !times)
        section.lines.push_back(fmt::format(
            "- {} {} ({}).{}", Cite(*entry),
            OneLine(entry->summary.empty() ? entry->mechanism : entry->summary),
            OneLine(entry->author),
            entry->hypothesis.empty() ? "" : " Expected: " + Sentence(OneLine(entry->hypothesis))));
    }
    return section;
  }

  Section Commands() const {
    Section section{"Measuring commands", "", 8, {}, 0};
    for (const std::string& command : input_.commands)
      section.lines.push_back("    " + OneLine(command));
    return section;
  }

  std::string Header() const {
    std::vector<std::string> names = input_.cases, conditions;
    std::string text = fmt::format(
        "# Brief: {}, {}\n\n", input_.target.empty() ? "an empty log" : input_.target,
        names.empty() ? "all cases" : OneLine(fmt::format("{}", fmt::join(names, ", "))));
    for (const auto& [field, value] : input_.now)
      if (MattersForRetest(field)) conditions.push_back(field + " " + OneLine(value));
    text += conditions.empty() ? "Today's conditions are unknown.\n"
                               : fmt::format("Today: {}.\n", fmt::join(conditions, "; "));
    return text;
  }

  std::string Print(const std::vector<Section>& sections) const {
    std::string text = Header();
    for (const Section& section : sections) {
      if (section.lines.empty() && section.cut == 0 && section.empty.empty()) continue;
      text += fmt::format("\n## {}\n\n", section.title);
      if (section.lines.empty() && section.cut == 0) text += section.empty + "\n";
      for (const std::string& line : section.lines) text += line + "\n";
      if (section.cut > 0)
        text += fmt::format("({} more left out for the budget; `crucible log query` lists them)\n",
                            section.cut);
    }
    return text;
  }

  std::string Fit(std::vector<Section>* sections) const {
    const std::size_t budget =
        static_cast<std::size_t>(std::max(0, input_.token_budget)) * kCharactersPerToken;
    std::string text = Print(*sections);
    while (text.size() > budget) {
      Section* least = nullptr;
      for (Section& section : *sections)
        if (!section.lines.empty() && section.importance < 8 &&
            (least == nullptr || section.importance < least->importance))
          least = &section;
      if (least == nullptr) break;  // titles and commands alone: they always stay
      // Enough lines at once to get under, so that a long log is cut in a few prints.
      std::size_t freed = 0;
      while (!least->lines.empty() && text.size() - std::min(text.size(), freed) > budget) {
        freed += least->lines.back().size() + 1;
        least->lines.pop_back();
        ++least->cut;
      }
      text = Print(*sections);
    }
    if (text.size() > budget)
      text += fmt::format(
          "\n(The titles and the commands alone take about {} tokens, more than the budget of "
          "{}.)\n",
          text.size() / kCharactersPerToken, input_.token_budget);
    return text;
  }

  const BriefInput& input_;
  std::set<std::string> replaced_;
  std::vector<const Entry*> entries_;  // of the target and cases, newest first
};

}  // namespace

std::string CompileBrief(const BriefInput& input) { return Compiler(input).Run(); }

}  // namespace crucible
