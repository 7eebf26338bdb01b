#include "results_log/jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.h"
#include "results_log/store_impl.h"

namespace crucible {
namespace {

using nlohmann::json;

// JSON text kept as JSON where it is some, else as a string: so that git shows it readably.
json Embedded(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_object() ? value : json(text);
}

std::string Unembedded(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return "{}";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

template <class T>
std::optional<T> Optional(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? std::nullopt : std::optional(found->get<T>());
}

template <class T>
void PutOptional(json* object, const char* name, const std::optional<T>& value) {
  if (value) (*object)[name] = *value;
}

json LineOf(const CampaignRow& row) {
  json line = {{"type", "campaign"},           {"name", row.name},
               {"target", row.target},         {"file", row.file},
               {"state", row.state},           {"settings", Embedded(row.settings)},
               {"phase", row.phase},           {"message", row.message},
               {"started_ms", row.started_ms}, {"base_commit", row.base_commit}};
  PutOptional(&line, "ended_ms", row.ended_ms);
  PutOptional(&line, "deadline_ms", row.deadline_ms);
  return line;
}

// An orchestrator of another machine does not run here, so what was under way was interrupted.
CampaignRow CampaignFrom(const json& line) {
  CampaignRow row;
  row.name = line.at("name");
  row.target = line.at("target");
  row.file = line.value("file", "");
  row.settings = Unembedded(line, "settings");
  row.state = line.at("state");
  if (row.state == "running" || row.state == "paused" || row.state == "stopping")
    row.state = "interrupted";
  row.started_ms = line.at("started_ms");
  row.ended_ms = Optional<std::int64_t>(line, "ended_ms");
  row.deadline_ms = Optional<std::int64_t>(line, "deadline_ms");
  row.base_commit = line.value("base_commit", "");
  row.phase = line.value("phase", "");
  row.message = line.value("message", "");
  return row;
}

json LineOf(const MissionRow& row) {
  json line = {{"type", "mission"},
               {"id", row.id},
               {"campaign", row.campaign},
               {"target", row.target},
               {"flavour", row.flavour},
               {"goal", row.goal},
               {"cases", row.cases},
               {"settings", Embedded(row.settings)},
               {"state", row.state},
               {"outcome", row.outcome},
               {"merge_outcome", row.merge_outcome},
               {"branch", row.branch},
               {"base_commit", row.base_commit},
               {"best_commit", row.best_commit},
               {"merge_commit", row.merge_commit},
               {"report", row.report},
               {"spend", Embedded(row.spend)},
               {"planned_ms", row.planned_ms}};
  PutOptional(&line, "started_ms", row.started_ms);
  PutOptional(&line, "ended_ms", row.ended_ms);
  return line;
}

MissionRow MissionFrom(const json& line) {
  MissionRow row;
  row.id = line.at("id");
  row.campaign = line.at("campaign");
  row.target = line.at("target");
  row.flavour = line.value("flavour", "");
  row.goal = line.value("goal", "");
  row.cases = line.value("cases", std::vector<std::string>());
  row.settings = Unembedded(line, "settings");
  row.state = line.at("state");
  row.outcome = line.value("outcome", "");
  if (row.state != "done") {
    row.state = "done";
    if (row.outcome.empty()) row.outcome = "interrupted";
  }
  row.merge_outcome = line.value("merge_outcome", "");
  row.branch = line.value("branch", "");
  row.base_commit = line.value("base_commit", "");
  row.best_commit = line.value("best_commit", "");
  row.merge_commit = line.value("merge_commit", "");
  row.report = line.value("report", "");
  row.spend = Unembedded(line, "spend");
  row.planned_ms = line.at("planned_ms");
  row.started_ms = Optional<std::int64_t>(line, "started_ms");
  row.ended_ms = Optional<std::int64_t>(line, "ended_ms");
  return row;
}

json LineOf(const Point& point) {
  json line = {{"type", "point"},
               {"target", point.target},
               {"case", point.case_name},
               {"kind", point.kind},
               {"name", point.name},
               {"time_ms", point.time_ms},
               {"median_us", point.median_us},
               {"record", point.record},
               {"entry", point.entry_key},
               {"conditions", Embedded(point.conditions)}};
  PutOptional(&line, "low_us", point.low_us);
  PutOptional(&line, "high_us", point.high_us);
  return line;
}

Point PointFrom(const json& line) {
  Point point;
  point.target = line.at("target");
  point.case_name = line.at("case");
  point.kind = line.at("kind");
  point.name = line.value("name", "");
  point.time_ms = line.at("time_ms");
  point.median_us = line.at("median_us");
  point.low_us = Optional<double>(line, "low_us");
  point.high_us = Optional<double>(line, "high_us");
  point.record = line.value("record", false);
  point.entry_key = line.value("entry", "");
  point.conditions = Unembedded(line, "conditions");
  return point;
}

json LineOf(const Event& event) {
  return {{"type", "event"},          {"time_ms", event.time_ms}, {"campaign", event.campaign},
          {"mission", event.mission}, {"kind", event.kind},       {"text", event.text}};
}

// Bytes that are no UTF-8 (a compiler's words, cut in the middle) become U+FFFD: JSON has no
// others.
std::string Dumped(const json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

class Importer {
 public:
  Importer(Store* store, Store::Impl* database) : store_(store), database_(database) {}

  Result<> Line(const json& line) {
    const std::string type = line.at("type").get<std::string>();
    if (type == "campaign") return Campaign(CampaignFrom(line));
    if (type == "mission") return Mission(MissionFrom(line));
    if (type == "point") return AddPoint(PointFrom(line));
    if (type == "event") return AddEvent(line);
    if (type != "entry")
      return Fail(ErrorKind::kUsage, "read line", "", fmt::format("its type '{}' is unknown", type),
                  "types: campaign, mission, entry, point, event");
    CRUCIBLE_ASSIGN(Entry entry, EntryFromJson(line));
    return AddEntry(std::move(entry));
  }

  const ImportSummary& summary() const { return summary_; }

 private:
  void Count(bool fresh, int* counter) { ++*(fresh ? counter : &summary_.known); }

  Result<> Campaign(const CampaignRow& row) {
    CRUCIBLE_ASSIGN(const auto known, store_->FindCampaign(row.name));
    Count(!known, &summary_.campaigns);
    return known ? Result<>() : store_->PutCampaign(row);
  }

  // A mission's number is unique in one log alone; what it is, is its campaign, time and goal.
  Result<> Mission(MissionRow row) {
    CRUCIBLE_ASSIGN(Statement same, database_->Prepare("SELECT id FROM missions WHERE campaign = ? "
                                                       "AND planned_ms = ? AND goal = ? "
                                                       "ORDER BY id = ? DESC LIMIT 1"));
    same.Bind(row.campaign).Bind(row.planned_ms).Bind(row.goal).Bind(row.id);
    CRUCIBLE_ASSIGN(const bool known, same.Step());
    Count(!known, &summary_.missions);
    if (known) {
      renamed_[{row.campaign, row.id}] = same.Text(0);
      return {};
    }
    const std::string old_id = row.id;
    CRUCIBLE_ASSIGN(const auto taken, store_->FindMission(row.id));
    if (!taken) {
      renamed_[{row.campaign, old_id}] = old_id;
      return store_->PutMission(row);
    }
    CRUCIBLE_ASSIGN(const std::string id, store_->AddMission(row));
    renamed_[{row.campaign, old_id}] = id;
    return {};
  }

  void Rename(const std::string& campaign, std::string* mission) const {
    const auto found = renamed_.find({campaign, *mission});
    if (found != renamed_.end()) *mission = found->second;
  }

  Result<> AddEntry(Entry entry) {
    if (entry.key.empty())
      return Fail(ErrorKind::kUsage, "read entry", "", "its key is empty", "give it one");
    Rename(entry.campaign, &entry.mission);
    bool fresh = false;
    CRUCIBLE_TRY(store_->AddEntry(entry, &fresh));
    Count(fresh, &summary_.entries);
    if (fresh) return {};
    CRUCIBLE_ASSIGN(Entry own, store_->FindEntry(entry.key));
    // Marks only ever grow, so both logs end with the same ones in whichever order they merge.
    if (entry.landed && !own.landed) CRUCIBLE_TRY(store_->MarkLanded(entry.key));
    if (entry.conflated && !own.conflated) CRUCIBLE_TRY(store_->MarkConflated(entry.key, true));
    own.landed = entry.landed;
    own.conflated = entry.conflated;
    own.mission = entry.mission;
    if (ToJson(own) != ToJson(entry)) ++summary_.differing;
    return {};
  }

  Result<> AddPoint(const Point& point) {
    CRUCIBLE_TRY(store_->AddPoints({point}));
    Count(sqlite3_changes(database_->database) > 0, &summary_.points);
    return {};
  }

  Result<> AddEvent(const json& line) {
    std::string mission = line.value("mission", "");
    Rename(line.at("campaign"), &mission);
    CRUCIBLE_ASSIGN(
        Statement row,
        database_->Prepare(
            "INSERT INTO events (time_ms, campaign, mission, kind, text) SELECT ?1, ?2, "
            "?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM events WHERE time_ms = ?1 AND "
            "campaign = ?2 AND mission = ?3 AND kind = ?4 AND text = ?5)"));
    row.Bind(line.at("time_ms").get<std::int64_t>()).Bind(line.at("campaign").get<std::string>());
    row.Bind(mission).Bind(line.at("kind").get<std::string>());
    row.Bind(line.at("text").get<std::string>());
    CRUCIBLE_TRY(row.Run());
    Count(sqlite3_changes(database_->database) > 0, &summary_.events);
    return {};
  }

  Store* store_;
  Store::Impl* database_;
  ImportSummary summary_;
  std::map<std::pair<std::string, std::string>, std::string> renamed_;  // (campaign, id) -> here
};

// Campaigns and missions first: entries and points refer to them.
int Rank(const json& line) {
  const std::string type = line.is_object() ? line.value("type", "") : "";
  return type == "campaign" ? 0 : type == "mission" ? 1 : 2;
}

}  // namespace

Result<std::string> ExportLines(Store* store, const ExportOptions& options) {
  CRUCIBLE_ASSIGN(auto campaigns, store->Campaigns());
  CRUCIBLE_ASSIGN(auto missions, store->Missions(""));
  CRUCIBLE_ASSIGN(auto entries, store->QueryEntries({}));
  CRUCIBLE_ASSIGN(auto points, store->Points(""));
  std::string text;
  const auto add = [&](const json& line) { text += Dumped(line) + "\n"; };

  std::sort(campaigns.begin(), campaigns.end(), [](const auto& a, const auto& b) {
    return std::tie(a.started_ms, a.name) < std::tie(b.started_ms, b.name);
  });
  for (const CampaignRow& row : campaigns) add(LineOf(row));
  std::sort(missions.begin(), missions.end(), [](const auto& a, const auto& b) {
    return std::tie(a.planned_ms, a.id) < std::tie(b.planned_ms, b.id);
  });
  for (const MissionRow& row : missions) add(LineOf(row));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.time_ms, a.key) < std::tie(b.time_ms, b.key);
  });
  for (const Entry& entry : entries) {
    json line = ToJson(entry);
    line["type"] = "entry";
    add(line);
  }
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return std::tie(a.time_ms, a.target, a.case_name, a.kind, a.name, a.entry_key) <
           std::tie(b.time_ms, b.target, b.case_name, b.kind, b.name, b.entry_key);
  });
  for (const Point& point : points) add(LineOf(point));
  if (!options.events) return text;
  std::vector<std::string> names = {""};
  for (const CampaignRow& row : campaigns) names.push_back(row.name);
  for (const std::string& name : names) {
    CRUCIBLE_ASSIGN(const auto events, store->Events(name, 0));
    for (const Event& event : events) add(LineOf(event));
  }
  return text;
}

Result<ImportSummary> ImportLines(Store* store, std::string_view text, const std::string& name) {
  std::vector<std::pair<int, json>> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (word.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      lines.emplace_back(number, json::parse(word));
    } catch (const json::parse_error& error) {
      return Fail(ErrorKind::kUsage, "import", fmt::format("{}:{}", name, number),
                  fmt::format("the line is not JSON from its character {} on", error.byte),
                  "mend that line; nothing was imported");
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return Rank(a.second) < Rank(b.second); });
  Importer importer(store, store->impl_.get());
  CRUCIBLE_TRY(store->InTransaction([&]() -> Result<> {
    for (const auto& [number, line] : lines) {
      Result<> done;
      try {
        done = importer.Line(line);
      } catch (const json::exception& error) {
        done = Fail(ErrorKind::kUsage, "read", "line", error.what(),
                    "docs/log_format.md has an example of each type");
      }
      if (done) continue;
      const Error& error = done.error();
      return Fail(error.kind, "import", fmt::format("{}:{}", name, number), error.text,
                  "nothing was imported");
    }
    return {};
  }));
  return importer.summary();
}

}  // namespace crucible
