// tables.cc: the summary tiles, missions, rejections, recent entries, the device's queue.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/counted.h"
#include "base/json.h"
#include "results_log/dashboard/parts.h"
#include "results_log/retest.h"

namespace crucible::dashboard {
namespace {

using nlohmann::json;

constexpr std::size_t kRows = 25;       // of the tables that only grow: the log has the rest
constexpr std::size_t kNamedCases = 3;  // more than these are counted in a tile, and named below,
constexpr std::size_t kTileWidth = 24;  // … as are names with more letters than fit its first line

std::string Tile(const std::string& value, const std::string& label, const char* state = "") {
  return fmt::format(
      "<div class=\"tile\"><b class=\"{}\">{}</b><span class=\"dim\">{}</span></div>\n", state,
      Breakable(value), Breakable(label));
}

// The words of a command, as a person would write them; what is no list of words stays as it is.
std::string CommandText(const std::string& argv) {
  const json words = json::parse(argv, nullptr, false);
  if (!words.is_array()) return Breakable(argv);
  std::string text;
  for (const json& word : words) {
    const std::string one = word.is_string() ? word.get<std::string>() : JsonText(word);
    const bool plain = !one.empty() && one.find_first_of(" \t\n'\"") == std::string::npos;
    text += (text.empty() ? "" : " ") + Breakable(plain ? one : "'" + one + "'");
  }
  return text;
}

// A table of cells that are HTML already; a header that begins with '#' is of numbers, one with '~'
// of long text.
std::string Table(const std::vector<std::string>& headers,
                  const std::vector<std::vector<std::string>>& rows, const std::string& none) {
  if (rows.empty()) return fmt::format("<p class=\"dim\">{}</p>\n", none);
  const auto kind = [&](std::size_t column) {
    return headers[column][0] == '#' ? "num" : headers[column][0] == '~' ? "long" : "short";
  };
  const auto name = [&](std::size_t column) {
    const std::string& header = headers[column];
    return header[0] == '#' || header[0] == '~' ? header.substr(1) : header;
  };
  std::string text = "<div class=\"wide\"><table><tr class=\"head\">";
  for (std::size_t i = 0; i < headers.size(); ++i)
    text += fmt::format("<th class=\"{}\">{}</th>", kind(i), name(i));
  text += "</tr>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      text += fmt::format("<td class=\"{}\" data-of=\"{}\">{}</td>", kind(i), name(i), row[i]);
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string Span(const std::optional<std::int64_t>& begin, const std::optional<std::int64_t>& end,
                 std::int64_t now_ms) {
  if (!begin) return "–";
  return FormatDuration(std::max<std::int64_t>(0, end.value_or(now_ms) - *begin));
}

// "0.184 USD" or "59885 tokens", as far as it is known; a proposer spends neither.
std::string SpendOf(const MissionRow& mission) {
  const json spend = json::parse(mission.spend, nullptr, false);
  if (!spend.is_object()) return "";
  const auto number = [&](const char* key) {
    const auto found = spend.find(key);
    return found != spend.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  if (number("usd") > 0) return fmt::format("{:.3g} USD", number("usd"));
  const double tokens = number("tokens_input") + number("tokens_output");
  return tokens > 0 ? fmt::format("{:.0f} tokens", tokens) : "";
}

double Usd(const DashboardInput& input, bool* known) {
  double sum = 0;
  for (const MissionRow& mission : input.missions) {
    const json spend = json::parse(mission.spend, nullptr, false);
    if (!spend.is_object() || !spend.contains("usd") || !spend["usd"].is_number()) continue;
    *known = true;
    sum += spend["usd"].get<double>();
  }
  return sum;
}

std::ptrdiff_t Landed(const DashboardInput& input) {
  return std::count_if(input.missions.begin(), input.missions.end(),
                       [](const auto& row) { return row.merge_outcome == "landed"; });
}

// What the missions of this target took of the device (another target's jobs are in the log too)
// for each microsecond that they gained together.
std::string Cost(const DashboardInput& input, const std::vector<CaseBar>& cases) {
  double gained_us = 0, device_s = 0;
  for (const CaseBar& item : cases)
    gained_us += std::max(0.0, item.first->median_us - item.newest->median_us);
  if (gained_us <= 0) return Tile("–", "cost per accepted us: nothing gained yet");
  if (Landed(input) == 0) return Tile("–", "cost per accepted us: no mission's merge landed");
  std::set<std::string> own;
  for (const MissionRow& mission : input.missions) own.insert(mission.id);
  bool any = false;
  for (const LoggedJob& job : input.jobs) {
    if (!job.started_ms || !job.ended_ms || !own.contains(job.mission)) continue;
    any = true;
    device_s += static_cast<double>(*job.ended_ms - *job.started_ms) / 1000;
  }
  std::string label = "device time of missions per accepted us";
  bool priced = false;
  if (const double usd = Usd(input, &priced); priced)
    label += fmt::format(", and {:.3g} USD per accepted ms", usd / gained_us * 1000);
  if (!any) return Tile("–", "cost per accepted us: no mission's device job is in this log");
  return Tile(FormatMicroseconds(device_s / gained_us * 1e6), label);
}

// Rejections that no newer entry replaced.
std::vector<const Entry*> StandingRejections(const DashboardInput& input) {
  const std::set<std::string> replaced = ReplacedKeys(input.entries);
  std::vector<const Entry*> standing;
  for (const Entry& entry : input.entries)
    if (IsRejection(entry) && !replaced.contains(entry.key)) standing.push_back(&entry);
  return standing;
}

}  // namespace

std::string Summary(const DashboardInput& input, const std::vector<CaseBar>& cases) {
  std::string text = "<div class=\"tiles\">\n";
  double sum = 0;
  std::vector<std::string> still;
  for (const CaseBar& item : cases) {
    sum += std::log(item.Ratio());
    if (item.Ratio() > 1 - kStill) still.push_back(item.name);
  }
  if (!cases.empty()) {
    const double ratio = std::exp(sum / static_cast<double>(cases.size()));
    text += Tile(std::abs(ratio - 1) < kStill ? "not moved"
                 : ratio < 1                  ? fmt::format("{:.2f}x faster", 1 / ratio)
                                              : fmt::format("{:.2f}x slower", ratio),
                 "geometric mean over " + Counted(cases.size(), "case"),
                 ratio < 1 - kStill ? "moved" : "still");
    text +=
        still.empty() ? Tile("none", "cases that have not moved", "moved")
        : still.size() <= kNamedCases &&
                fmt::format("{}", fmt::join(still, ", ")).size() <= kTileWidth
            ? Tile(fmt::format("{}", fmt::join(still, ", ")), "not moved (or slower)", "still")
            : Tile(fmt::format("{} of {}", still.size(), cases.size()),
                   fmt::format("cases not moved (or slower): {}", fmt::join(still, ", ")), "still");
  }
  text += Tile(fmt::format("{} of {}", Landed(input), input.missions.size()),
               input.missions.size() == 1 ? "mission landed" : "missions landed");
  const std::size_t rejections = StandingRejections(input).size();
  text += Tile(std::to_string(rejections),
               (rejections == 1 ? "rejection among " : "rejections among ") +
                   Counted(input.entries.size(), "entry", "entries"));
  text += Cost(input, cases) + "</div>\n";
  for (const CampaignRow& row : input.campaigns)
    text +=
        fmt::format("<p><b>{}</b>: {}{}{} <span class=\"dim\">since {} UTC{}</span></p>\n",
                    Escaped(row.name), Escaped(row.state),
                    row.phase.empty() || row.phase == row.state ? "" : ", " + Escaped(row.phase),
                    row.message.empty() ? "" : ": " + Escaped(row.message),
                    FormatUtc(row.started_ms).substr(0, 16),
                    row.ended_ms ? ", took " + FormatDuration(*row.ended_ms - row.started_ms) : "");
  return text;
}

std::string Missions(const DashboardInput& input) {
  std::vector<std::vector<std::string>> rows;
  for (auto row = input.missions.rbegin(); row != input.missions.rend() && rows.size() < kRows;
       ++row) {
    const char* state = row->merge_outcome == "landed" ? "moved"
                        : row->outcome == "crashed"    ? "worse"
                                                       : "";
    rows.push_back({Escaped(row->id), Escaped(row->flavour),
                    Breakable(fmt::format("{}", fmt::join(row->cases, ", "))), Escaped(row->state),
                    Escaped(row->outcome),
                    fmt::format("<span class=\"{}\">{}</span>", state, Escaped(row->merge_outcome)),
                    Span(row->started_ms, row->ended_ms, input.now_ms), SpendOf(*row),
                    Escaped(row->goal)});
  }
  return Table(
      {"mission", "flavour", "cases", "state", "outcome", "merge", "#time", "#spent", "~goal"},
      rows, "No mission was planned yet.");
}

std::string Rejections(const DashboardInput& input) {
  struct Group {
    std::map<EntryKind, int> kinds;
    int count = 0;
    double worst = 0;
    std::string where, newest;
  };
  std::map<std::string, Group> groups;
  for (const Entry* entry : StandingRejections(input)) {
    Group& group = groups[entry->mechanism];
    ++group.count;
    ++group.kinds[entry->kind];
    group.newest = fmt::format("e{}", entry->id);
    for (const CaseResult& result : entry->cases)
      if (result.ratio && *result.ratio > group.worst) {
        group.worst = *result.ratio;
        group.where = result.name;
      }
  }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  std::vector<std::vector<std::string>> rows;
  for (const auto& [mechanism, group] : sorted) {
    if (rows.size() == kRows) break;
    std::vector<std::string> kinds;
    for (const auto& [kind, count] : group.kinds)
      kinds.push_back(fmt::format("{} {}", count, ToText(kind)));
    rows.push_back({Escaped(mechanism.empty() ? "(none named)" : mechanism),
                    std::to_string(group.count), fmt::format("{}", fmt::join(kinds, ", ")),
                    group.worst > 0
                        ? fmt::format("{:+.1f} % {}", (group.worst - 1) * 100, Escaped(group.where))
                        : "not measured",
                    Escaped(group.newest)});
  }
  return Table({"~mechanism", "#count", "kinds", "#worst", "newest"}, rows,
               "Nothing was rejected yet.");
}

std::string Recent(const DashboardInput& input) {
  std::vector<std::vector<std::string>> rows;
  for (auto entry = input.entries.rbegin(); entry != input.entries.rend() && rows.size() < kRows;
       ++entry) {
    std::vector<std::string> cases;
    for (const CaseResult& result : entry->cases)
      cases.push_back(Breakable(
          result.ratio ? fmt::format("{} {:+.1f} %", result.name, (*result.ratio - 1) * 100)
                       : result.name));
    const char* state = entry->kind == EntryKind::kWin    ? "moved"
                        : entry->kind == EntryKind::kLoss ? "worse"
                                                          : "";
    rows.push_back({fmt::format("e{}", entry->id), FormatUtc(entry->time_ms).substr(5, 11),
                    fmt::format("<span class=\"{}\">{}</span>", state, ToText(entry->kind)),
                    Escaped(entry->mechanism), fmt::format("{}", fmt::join(cases, "<br>")),
                    Escaped(entry->summary.empty() ? entry->reason : entry->summary),
                    Escaped(entry->author)});
  }
  return Table({"entry", "time, UTC", "kind", "~mechanism", "cases", "~what happened", "author"},
               rows, "The log has no entry yet.");
}

std::string Queue(const DashboardInput& input) {
  std::vector<std::vector<std::string>> rows;
  for (const LoggedJob& job : input.jobs) {
    if (rows.size() == kRows) break;
    const std::string state = job.ended_ms ? job.outcome : job.started_ms ? "running" : "waiting";
    rows.push_back({Escaped(job.id), Escaped(job.device), Escaped(job.mission), Escaped(state),
                    Span(job.queued_ms, job.started_ms, input.now_ms),
                    Span(job.started_ms, job.ended_ms, input.now_ms), CommandText(job.argv)});
  }
  return Table({"job", "device", "mission", "state", "#waited", "#ran", "~command"}, rows,
               "No job went through the device's queue yet.");
}

}  // namespace crucible::dashboard
