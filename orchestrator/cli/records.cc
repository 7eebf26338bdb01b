#include "orchestrator/cli/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/json.h"

namespace crucible {
namespace {

using nlohmann::json;

struct OfCase {
  const Point *first = nullptr, *best = nullptr, *newest = nullptr;
  std::string peers_entry;  // of the newest run with peers
  std::map<std::string, double> peers;
};

json PointJson(const Point* point) {
  if (point == nullptr) return nullptr;
  return {{"median_us", point->median_us},
          {"time_ms", point->time_ms},
          {"commit", point->name},
          {"record", point->record},
          {"entry", point->entry_key}};
}

std::optional<double> OursIn(const std::vector<Entry>& entries, const std::string& key,
                             const std::string& case_name) {
  for (const Entry& entry : entries) {
    if (entry.key != key) continue;
    for (const CaseResult& result : entry.cases)
      if (result.name == case_name) return result.after_us;
  }
  return std::nullopt;
}

std::string PointText(const char* label, const json& point) {
  if (point.is_null()) return fmt::format("{} none", label);
  return fmt::format("{} {} ({}, {})", label, FormatMicroseconds(point["median_us"].get<double>()),
                     point["commit"].get<std::string>().substr(0, 12),
                     point["entry"].get<std::string>());
}

std::string PeersText(const json& run) {
  const double ours = run["ours_us"].get<double>();
  std::vector<std::string> words = {"ours " + FormatMicroseconds(ours)};
  double fastest = 0;
  for (const auto& [name, us] : run["peers"].items()) {
    const double peer = us.get<double>();
    words.push_back(fmt::format("{} {}", name, FormatMicroseconds(peer)));
    if (fastest == 0 || peer < fastest) fastest = peer;
  }
  const double gain = fastest / ours;
  return fmt::format("in one run ({}): {}: {}", run["entry"].get<std::string>(),
                     fmt::join(words, ", "),
                     gain >= 1 ? fmt::format("{:.2f} times as fast as the best peer", gain)
                               : fmt::format("the best peer is {:.2f} times as fast", 1 / gain));
}

}  // namespace

json RecordsOf(const std::vector<Point>& points, const std::vector<Entry>& entries) {
  std::map<std::pair<std::string, std::string>, OfCase> cases;
  for (const Point& point : points) {
    OfCase& of = cases[{point.target, point.case_name}];
    if (point.kind == "peer") {
      if (point.entry_key != of.peers_entry) of.peers.clear();
      of.peers_entry = point.entry_key;
      of.peers[point.name] = point.median_us;
    }
    if (point.kind != "main") continue;
    if (of.first == nullptr) of.first = &point;
    if (point.record && (of.best == nullptr || point.median_us < of.best->median_us))
      of.best = &point;
    of.newest = &point;
  }
  json list = json::array();
  for (const auto& [name, of] : cases) {
    if (of.newest == nullptr) continue;
    json item = {{"target", name.first},           {"case", name.second},
                 {"first", PointJson(of.first)},   {"best", PointJson(of.best)},
                 {"newest", PointJson(of.newest)}, {"beside_peers", nullptr}};
    if (const auto ours = OursIn(entries, of.peers_entry, name.second); ours && !of.peers.empty())
      item["beside_peers"] = {{"entry", of.peers_entry}, {"ours_us", *ours}, {"peers", of.peers}};
    list.push_back(std::move(item));
  }
  return list;
}

std::string RecordsText(const json& records) {
  if (records.empty())
    return "no records: main was not measured in this log yet (`crucible campaign launch` does "
           "that first); `crucible log query` lists its entries\n";
  std::string text;
  for (const json& item : records) {
    // A bar that has not moved is one number.
    const bool moved = item["first"] != item["newest"] || item["first"] != item["best"];
    text += fmt::format(
        "{:<14} {:<12} {}\n", item["target"].get<std::string>(), item["case"].get<std::string>(),
        moved ? fmt::format("{}  {}  {}", PointText("first", item["first"]),
                            PointText("best", item["best"]), PointText("newest", item["newest"]))
              : PointText("since the start", item["first"]));
    if (!item["beside_peers"].is_null())
      text += fmt::format("{:<27} {}\n", "", PeersText(item["beside_peers"]));
  }
  return text;
}

}  // namespace crucible
