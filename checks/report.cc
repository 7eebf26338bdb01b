#include "checks/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/counted.h"
#include "base/json.h"

namespace crucible {
namespace {

using nlohmann::json;
using Row = std::vector<std::string>;

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> Number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string Microseconds(const json& object, const char* key) {
  const auto value = Number(object, key);
  return value && *value > 0 ? fmt::format("{:.6g}", *value) : "";
}

std::string Ratio(const json& object, const char* key) {
  const auto value = Number(object, key);
  return value ? fmt::format("{:.4f}", *value) : "";
}

std::string Count(const json& object, const char* key) {
  const auto value = Number(object, key);
  return value ? fmt::format("{:.0f}", *value) : "";
}

const json& List(const json& object, const char* key) {
  static const json kNone = json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}

// Characters on the screen: UTF-8 continuation bytes take no column.
std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string Table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - Width(row[i]) + 2, ' ')
                                           : std::string());
    line.erase(line.find_last_not_of(' ') + 1);
    text += "\n" + line;
  }
  return text;
}

std::string PairedTable(const json& report) {
  std::vector<Row> rows = {{"case", "role", "before us", "after us", "ratio", "interval", "rounds",
                            "wins", "verdict", "why"}};
  for (const json& item : List(report, "cases")) {
    if (Text(item, "role") == "measure") continue;
    const std::string low = Ratio(item, "ratio_low"), high = Ratio(item, "ratio_high");
    rows.push_back({Text(item, "case"), Text(item, "role"), Microseconds(item, "before_us"),
                    Microseconds(item, "after_us"), Ratio(item, "ratio"),
                    low.empty() ? "" : low + " … " + high, Count(item, "rounds"),
                    Count(item, "wins"), Text(item, "verdict"), Text(item, "reason")});
  }
  return rows.size() > 1 ? Table(rows) : "";
}

std::string TimesTable(const json& report) {
  std::vector<Row> rows = {{"case", "who", "median us", "interval", "note"}};
  const auto add = [&](const json& item, const std::string& who, const std::string& note) {
    const std::string low = Microseconds(item, "low_us");
    rows.push_back({Text(item, "case"), who, Microseconds(item, "median_us"),
                    low.empty() ? "" : low + " … " + Microseconds(item, "high_us"), note});
  };
  for (const json& item : List(report, "cases")) {
    if (Text(item, "role") != "measure") continue;
    add(item, "candidate", Text(item, "reason"));
    for (const json& peer : List(report, "peers"))
      if (Text(peer, "case") == Text(item, "case"))
        add(peer, Text(peer, "peer"), Text(peer, "error"));
  }
  return rows.size() > 1 ? Table(rows) : "";
}

// A row a failed check; those with the same words as the ones before them are only counted.
std::vector<Row> FailedRows(const std::vector<const json*>& failed) {
  std::vector<Row> rows = {{"failed check", "why"}};
  for (std::size_t i = 0; i < failed.size();) {
    const std::string why = Text(*failed[i], "reason");
    std::size_t end = i + 1;
    while (end < failed.size() && Text(*failed[end], "reason") == why) ++end;
    rows.push_back({Text(*failed[i], "case"), why});
    if (end - i > 1) rows.push_back({fmt::format("… and {} more", end - i - 1), "the same"});
    i = end;
  }
  return rows;
}

std::string FailedChecks(const json& report) {
  const json& checks = List(report, "checks");
  // Of an accepted check they are the verdict's reason already.
  if (checks.empty() || (Text(report, "op") == "check" && Text(report, "verdict") == "accepted"))
    return "";
  std::vector<const json*> failed;
  std::size_t passed = 0, not_run = 0;
  std::string left_out;
  for (const json& check : checks) {
    if (const std::string why = Text(check, "not_run"); !why.empty()) {
      ++not_run;
      left_out += fmt::format("\nnot run: {}: {}", Text(check, "case"), why);
    } else if (check.value("pass", false)) {
      ++passed;
    } else {
      failed.push_back(&check);
    }
  }
  const std::size_t run = checks.size() - not_run;
  std::string count =
      fmt::format("\n{} of {}", passed, Counted(run, "check passes", "checks pass"));
  if (not_run > 0) count += fmt::format(", {} not run", not_run) + left_out;
  return failed.empty() ? count : count + Table(FailedRows(failed));
}

std::string MarginsTable(const json& report) {
  std::vector<Row> rows = {{"gate", "worst margin", "limit", "check", "matrix", "seed"}};
  for (const auto& [gate, worst] : WorstMargins(report))
    rows.push_back({gate, fmt::format("{:.4g}", worst.value),
                    worst.limit ? fmt::format("{:g}", *worst.limit) : "", worst.check,
                    worst.matrix < 0 ? "" : fmt::format("{}", worst.matrix),
                    fmt::format("{}", worst.seed)});
  return rows.size() > 1 ? Table(rows) : "";
}

}  // namespace

std::map<std::string, WorstMargin> WorstMargins(const json& report) {
  std::map<std::string, WorstMargin> worst;
  for (const json& check : List(report, "checks")) {
    const auto margins = check.find("margins");
    if (margins == check.end() || !margins->is_object()) continue;
    const auto of = [&](const char* key, const std::string& gate) -> std::optional<double> {
      const auto object = check.find(key);
      if (object == check.end() || !object->is_object()) return std::nullopt;
      return Number(*object, gate.c_str());
    };
    for (const auto& [gate, value] : margins->items()) {
      if (!value.is_number()) continue;
      const auto known = worst.find(gate);
      if (known != worst.end() && value.get<double>() <= known->second.value) continue;
      worst[gate] = {.value = value.get<double>(),
                     .limit = of("limits", gate),
                     .check = Text(check, "case"),
                     .matrix = static_cast<std::int64_t>(of("worst", gate).value_or(-1)),
                     .seed = static_cast<std::uint64_t>(Number(check, "seed").value_or(0))};
    }
  }
  return worst;
}

std::string RenderReport(const json& report) {
  if (!report.is_object()) return "not a report of the judge";
  const std::string verdict = report.contains("error") ? "no verdict" : Text(report, "verdict");
  const std::string reason = Text(report, "reason");
  std::string text = Text(report, "op") + ": ";
  if (!reason.starts_with(verdict)) text += verdict + (reason.empty() ? "" : " — ");
  text += reason;
  text += FailedChecks(report) + MarginsTable(report) + PairedTable(report) + TimesTable(report);
  if (const auto wall = Number(report, "wall_ms"))
    text += fmt::format("\ntook {}, seed {}", FormatDuration(static_cast<std::int64_t>(*wall)),
                        report.contains("seed") ? report["seed"].dump() : "unknown");
  return text;
}

}  // namespace crucible
