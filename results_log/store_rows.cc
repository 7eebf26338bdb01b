// store_rows.cc: campaigns, missions, points, events, meta.
#include "base/clock.h"
#include "base/json.h"
#include "results_log/store_impl.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr char kCampaignColumns[] =
    "name, target, file, settings, state, owner, started_ms, ended_ms, deadline_ms, base_commit, "
    "phase, message";
constexpr char kMissionColumns[] =
    "id, campaign, target, flavour, goal, cases, settings, state, outcome, merge_outcome, owner, "
    "branch, worktree, base_commit, best_commit, merge_commit, report, spend, planned_ms, "
    "started_ms, ended_ms";

CampaignRow ReadCampaign(const Statement& row) {
  return {row.Text(0),
          row.Text(1),
          row.Text(2),
          row.Text(3),
          row.Text(4),
          row.Text(5),
          row.Integer(6),
          row.OptionalInteger(7),
          row.OptionalInteger(8),
          row.Text(9),
          row.Text(10),
          row.Text(11)};
}

MissionRow ReadMission(const Statement& row) {
  MissionRow mission;
  int column = 0;
  mission.id = row.Text(column++);
  mission.campaign = row.Text(column++);
  mission.target = row.Text(column++);
  mission.flavour = row.Text(column++);
  mission.goal = row.Text(column++);
  const json cases = json::parse(row.Text(column++), nullptr, false);
  if (cases.is_array()) cases.get_to(mission.cases);
  for (std::string* field :
       {&mission.settings, &mission.state, &mission.outcome, &mission.merge_outcome, &mission.owner,
        &mission.branch, &mission.worktree, &mission.base_commit, &mission.best_commit,
        &mission.merge_commit, &mission.report, &mission.spend})
    *field = row.Text(column++);
  mission.planned_ms = row.Integer(column++);
  mission.started_ms = row.OptionalInteger(column++);
  mission.ended_ms = row.OptionalInteger(column++);
  return mission;
}

}  // namespace

Result<> Store::PutCampaign(const CampaignRow& row) {
  CRUCIBLE_ASSIGN(Statement write,
                  impl_->Prepare(fmt::format("INSERT OR REPLACE INTO campaigns ({}) VALUES "
                                             "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                             kCampaignColumns)));
  write.Bind(row.name).Bind(row.target).Bind(row.file).Bind(row.settings).Bind(row.state);
  write.Bind(row.owner).Bind(row.started_ms).Bind(row.ended_ms).Bind(row.deadline_ms);
  write.Bind(row.base_commit).Bind(row.phase).Bind(row.message);
  return write.Run();
}

Result<> Store::RemoveCampaign(const std::string& name) {
  return InTransaction([&]() -> Result<> {
    for (const char* sql :
         {"DELETE FROM events WHERE campaign = ?", "DELETE FROM meta WHERE name = 'run:' || ?",
          "DELETE FROM campaigns WHERE name = ?"}) {
      CRUCIBLE_ASSIGN(Statement remove, impl_->Prepare(sql));
      remove.Bind(name);
      CRUCIBLE_TRY(remove.Run());
    }
    return {};
  });
}

Result<std::optional<CampaignRow>> Store::FindCampaign(const std::string& name) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare(fmt::format(
                                     "SELECT {} FROM campaigns WHERE name = ?", kCampaignColumns)));
  row.Bind(name);
  CRUCIBLE_ASSIGN(const bool there, row.Step());
  return there ? std::optional(ReadCampaign(row)) : std::nullopt;
}

Result<std::vector<CampaignRow>> Store::Campaigns() {
  CRUCIBLE_ASSIGN(Statement rows, impl_->Prepare(fmt::format(
                                      "SELECT {} FROM campaigns ORDER BY started_ms DESC, name",
                                      kCampaignColumns)));
  std::vector<CampaignRow> campaigns;
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) return campaigns;
    campaigns.push_back(ReadCampaign(rows));
  }
}

Result<bool> Store::MoveCampaign(const std::string& name, const std::string& from,
                                 const std::string& to) {
  CRUCIBLE_ASSIGN(Statement row,
                  impl_->Prepare("UPDATE campaigns SET state = ? WHERE name = ? AND state = ?"));
  row.Bind(to).Bind(name).Bind(from);
  CRUCIBLE_TRY(row.Run());
  return sqlite3_changes(impl_->database) > 0;
}

Result<> Store::SetCampaignPhase(const std::string& name, const std::string& phase,
                                 const std::string& message) {
  CRUCIBLE_ASSIGN(Statement row,
                  impl_->Prepare("UPDATE campaigns SET phase = ?, message = ? WHERE name = ?"));
  row.Bind(phase).Bind(message).Bind(name);
  return row.Run();
}

Result<std::string> Store::AddMission(MissionRow row) {
  CRUCIBLE_TRY(InTransaction([&]() -> Result<> {
    CRUCIBLE_ASSIGN(Statement last,
                    impl_->Prepare("SELECT COALESCE(MAX(CAST(substr(id, 2) AS INTEGER)), 0) + 1 "
                                   "FROM missions"));
    CRUCIBLE_TRY(last.Step());
    row.id = fmt::format("m{}", last.Integer(0));
    return PutMission(row);
  }));
  return row.id;
}

Result<> Store::PutMission(const MissionRow& row) {
  CRUCIBLE_ASSIGN(Statement write, impl_->Prepare(fmt::format(
                                       "INSERT OR REPLACE INTO missions ({}) VALUES (?, ?, ?, "
                                       "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                       kMissionColumns)));
  write.Bind(row.id).Bind(row.campaign).Bind(row.target).Bind(row.flavour).Bind(row.goal);
  write.Bind(JsonText(row.cases)).Bind(row.settings).Bind(row.state).Bind(row.outcome);
  write.Bind(row.merge_outcome).Bind(row.owner).Bind(row.branch).Bind(row.worktree);
  write.Bind(row.base_commit).Bind(row.best_commit).Bind(row.merge_commit).Bind(row.report);
  write.Bind(row.spend).Bind(row.planned_ms).Bind(row.started_ms).Bind(row.ended_ms);
  return write.Run();
}

Result<std::optional<MissionRow>> Store::FindMission(const std::string& id) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare(fmt::format("SELECT {} FROM missions WHERE id = ?",
                                                            kMissionColumns)));
  row.Bind(id);
  CRUCIBLE_ASSIGN(const bool there, row.Step());
  return there ? std::optional(ReadMission(row)) : std::nullopt;
}

Result<std::vector<MissionRow>> Store::Missions(const std::string& campaign) {
  CRUCIBLE_ASSIGN(Statement rows, impl_->Prepare(fmt::format(
                                      "SELECT {} FROM missions WHERE ?1 = '' OR campaign = ?1 "
                                      "ORDER BY CAST(substr(id, 2) AS INTEGER)",
                                      kMissionColumns)));
  rows.Bind(campaign);
  std::vector<MissionRow> missions;
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) return missions;
    missions.push_back(ReadMission(rows));
  }
}

Result<> Store::AddPoints(const std::vector<Point>& points) {
  return InTransaction([&]() -> Result<> {
    for (const Point& point : points) {
      CRUCIBLE_ASSIGN(Statement row,
                      impl_->Prepare("INSERT OR IGNORE INTO points (target, case_name, kind, name, "
                                     "time_ms, median_us, low_us, high_us, record, entry_key, "
                                     "conditions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
      row.Bind(point.target).Bind(point.case_name).Bind(point.kind).Bind(point.name);
      row.Bind(point.time_ms).Bind(point.median_us).Bind(point.low_us).Bind(point.high_us);
      row.Bind(point.record).Bind(point.entry_key).Bind(point.conditions);
      CRUCIBLE_TRY(row.Run());
    }
    return {};
  });
}

Result<std::vector<Point>> Store::Points(const std::string& target) {
  CRUCIBLE_ASSIGN(
      Statement rows,
      impl_->Prepare("SELECT target, case_name, kind, name, time_ms, median_us, low_us, "
                     "high_us, record, entry_key, conditions FROM points WHERE ?1 = '' "
                     "OR target = ?1 ORDER BY time_ms, id"));
  rows.Bind(target);
  std::vector<Point> points;
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) return points;
    points.push_back({rows.Text(0), rows.Text(1), rows.Text(2), rows.Text(3), rows.Integer(4),
                      rows.Real(5), rows.OptionalReal(6), rows.OptionalReal(7),
                      rows.Integer(8) != 0, rows.Text(9), rows.Text(10)});
  }
}

Result<> Store::AddEvent(const std::string& campaign, const std::string& mission,
                         const std::string& kind, const std::string& text) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare("INSERT INTO events (time_ms, campaign, mission, "
                                                "kind, text) VALUES (?, ?, ?, ?, ?)"));
  row.Bind(SystemClock().UnixMs()).Bind(campaign).Bind(mission).Bind(kind).Bind(text);
  return row.Run();
}

Result<std::vector<Event>> Store::Events(const std::string& campaign, std::int64_t after_id) {
  CRUCIBLE_ASSIGN(Statement rows,
                  impl_->Prepare("SELECT id, time_ms, campaign, mission, kind, text FROM events "
                                 "WHERE campaign = ? AND id > ? ORDER BY id"));
  rows.Bind(campaign).Bind(after_id);
  std::vector<Event> events;
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) return events;
    events.push_back(
        {rows.Integer(0), rows.Integer(1), rows.Text(2), rows.Text(3), rows.Text(4), rows.Text(5)});
  }
}

Result<std::vector<LoggedJob>> Store::Jobs() {
  std::vector<LoggedJob> jobs;
  CRUCIBLE_ASSIGN(Statement table,
                  impl_->Prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' "
                                 "AND name = 'jobs'"));
  CRUCIBLE_ASSIGN(const bool there, table.Step());
  if (!there) return jobs;
  CRUCIBLE_ASSIGN(
      Statement rows,
      impl_->Prepare("SELECT id, device, argv, mission, outcome, queued_ms, started_ms, "
                     "ended_ms, runner FROM jobs ORDER BY queued_ms DESC, id DESC"));
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) return jobs;
    jobs.push_back({rows.Text(0), rows.Text(1), rows.Text(2), rows.Text(3), rows.Text(4),
                    rows.Integer(5), rows.OptionalInteger(6), rows.OptionalInteger(7),
                    rows.Text(8)});
  }
}

Result<std::string> Store::Meta(const std::string& name) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare("SELECT value FROM meta WHERE name = ?"));
  row.Bind(name);
  CRUCIBLE_ASSIGN(const bool there, row.Step());
  return there ? row.Text(0) : std::string();
}

Result<> Store::SetMeta(const std::string& name, const std::string& value) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)"));
  row.Bind(name).Bind(value);
  return row.Run();
}

}  // namespace crucible
