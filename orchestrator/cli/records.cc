#include "orchestrator/cli/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/clock.h"
#include "base/json.h"
#include "results_log/bars.h"

namespace crucible {
namespace {

using nlohmann::json;

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

// The newest run that timed peers, with our time in it; null where no entry says that.
json BesidePeers(const CaseBar& bar, const std::vector<Entry>& entries) {
  if (bar.peers.empty()) return nullptr;
  const std::string& run = bar.peers.back()->entry_key;
  const auto ours = OursIn(entries, run, bar.name);
  if (!ours) return nullptr;
  std::map<std::string, double> peers;
  for (const Point* peer : bar.peers)
    if (peer->entry_key == run) peers[peer->name] = peer->median_us;
  return {{"entry", run}, {"ours_us", *ours}, {"peers", peers}};
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
  std::vector<CaseBar> bars = BarsOf(points);
  std::stable_sort(bars.begin(), bars.end(), [](const CaseBar& a, const CaseBar& b) {
    return std::tie(a.target, a.name) < std::tie(b.target, b.name);
  });
  json list = json::array();
  for (const CaseBar& bar : bars) {
    if (bar.newest == nullptr) continue;
    json item = {{"target", bar.target},
                 {"case", bar.name},
                 {"first", PointJson(bar.first)},
                 {"best", PointJson(bar.record)},
                 {"newest", PointJson(bar.newest)},
                 {"alone", PointJson(bar.alone)},
                 {"beside_peers", BesidePeers(bar, entries)}};
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
        moved
            ? fmt::format(
                  "{}  {}{}", PointText("first", item["first"]), PointText("best", item["best"]),
                  item["newest"] == item["best"] ? "" : "  " + PointText("newest", item["newest"]))
            : PointText("since the start", item["first"]));
    if (!item["alone"].is_null())
      text += fmt::format("{:<27} {}: not compared, so the bar stays\n", "",
                          PointText("main alone since", item["alone"]));
    if (!item["beside_peers"].is_null())
      text += fmt::format("{:<27} {}\n", "", PeersText(item["beside_peers"]));
  }
  return text;
}

}  // namespace crucible
