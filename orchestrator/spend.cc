#include "orchestrator/spend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process_identity.h"

namespace crucible {
namespace {

using nlohmann::json;

template <class Number>
Number Field(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<Number>() : Number{};
}

// How the mission was chosen; an empty object where no model was asked.
json PlannerRecord(const MissionRow& mission) {
  const json settings = json::parse(mission.settings, nullptr, false);
  if (!settings.is_object() || !settings.contains("planner")) return json::object();
  return settings["planner"];
}

// What was paid for that.
json PlannerSpend(const MissionRow& mission) {
  return PlannerRecord(mission).value("spend", json::object());
}

}  // namespace

Spend SpendIn(const json& object) {
  Spend spend;
  if (!object.is_object()) return spend;
  spend.turns = Field<std::int64_t>(object, "turns");
  for (const char* key : {"tokens_input", "tokens_output", "tokens_cache_write"})
    spend.tokens += Field<std::int64_t>(object, key);
  spend.usd = Field<double>(object, "usd");
  spend.device_seconds = Field<double>(object, "gpu_seconds");
  return spend;
}

Spend& Spend::operator+=(const Spend& other) {
  turns += other.turns;
  tokens += other.tokens;
  usd += other.usd;
  device_seconds += other.device_seconds;
  return *this;
}

json AgentSpend(const std::filesystem::path& mission_folder) {
  const auto text = ReadFile(mission_folder / "spend.json");
  if (!text) return json::object();
  json object = json::parse(*text, nullptr, false);
  return object.is_object() ? object : json::object();
}

json SpendForRow(const Workspace& workspace, const MissionRow& mission) {
  json spend = AgentSpend(workspace.Mission(mission.id));
  if (const json choosing = PlannerSpend(mission); !choosing.empty()) {
    for (const char* key :
         {"tokens_input", "tokens_output", "tokens_cache_read", "tokens_cache_write"})
      spend[key] = Field<std::int64_t>(spend, key) + Field<std::int64_t>(choosing, key);
    spend["usd"] = Field<double>(spend, "usd") + Field<double>(choosing, "usd");
    spend["planner_usd"] = Field<double>(choosing, "usd");
  }
  spend["gpu_seconds"] = DeviceSeconds(workspace.LogFile(), mission.id).value_or(0);
  const std::int64_t end_ms = mission.ended_ms.value_or(SystemClock().UnixMs());
  spend["wall_ms"] = end_ms - mission.started_ms.value_or(end_ms);
  return spend;
}

Result<double> DeviceSeconds(const std::filesystem::path& log_file, const std::string& mission) {
  CRUCIBLE_ASSIGN(Store store, Store::OpenReadOnly(log_file));
  CRUCIBLE_ASSIGN(const std::vector<LoggedJob> jobs, store.Jobs());
  std::int64_t sum_ms = 0;
  for (const LoggedJob& job : jobs) {
    if (job.mission != mission || !job.started_ms) continue;
    // Whose runner died: nobody saw it end, and what is not known is not charged.
    if (job.outcome == "lost") continue;
    if (!job.ended_ms && !IsAlive(ProcessIdentityFromText(job.runner))) continue;
    sum_ms +=
        std::max<std::int64_t>(0, job.ended_ms.value_or(SystemClock().UnixMs()) - *job.started_ms);
  }
  return static_cast<double>(sum_ms) / 1000;
}

Result<Spend> SpendOf(Store* store, const Workspace& workspace, const std::string& campaign) {
  Spend total;
  CRUCIBLE_ASSIGN(const std::vector<MissionRow> missions, store->Missions(campaign));
  total += UntakenChoices(workspace, campaign, missions);
  for (const MissionRow& mission : missions) {
    Spend of_mission = SpendIn(SpendNow(workspace, mission));
    // The queue knows it to the moment, and its merge's.
    of_mission.device_seconds = DeviceSeconds(workspace.LogFile(), mission.id).value_or(0);
    total += of_mission;
  }
  return total;
}

Spend RecordedSpend(const MissionRow& mission) {
  return SpendIn(json::parse(mission.spend, nullptr, false));
}

json SpendNow(const Workspace& workspace, const MissionRow& mission) {
  if (!mission.ended_ms && mission.state != "planned") return SpendForRow(workspace, mission);
  return json::parse(mission.spend, nullptr, false);
}

Spend UntakenChoices(const Workspace& workspace, const std::string& campaign,
                     const std::vector<MissionRow>& missions) {
  std::set<std::string> taken;
  for (const MissionRow& mission : missions)
    taken.insert(std::filesystem::path(PlannerRecord(mission).value("folder", std::string()))
                     .filename()
                     .string());
  Spend total;
  std::error_code none;  // asked nobody yet
  for (const auto& item :
       std::filesystem::directory_iterator(workspace.Campaign(campaign) / "planner", none))
    if (!taken.contains(item.path().filename().string())) total += SpendIn(AgentSpend(item.path()));
  return total;
}

std::string DeviceTimeUsedUp(const Workspace& workspace, const std::string& mission, double most) {
  if (most <= 0) return "";
  const double used = DeviceSeconds(workspace.LogFile(), mission).value_or(0);
  if (used < most) return "";
  return fmt::format("{:.0f} of {:.0f} s of device time are used", used, most);
}

std::string ToText(const Spend& spend) {
  std::vector<std::string> parts;
  if (spend.usd > 0) parts.push_back(fmt::format("{:.4g} USD", spend.usd));
  if (spend.tokens > 0) parts.push_back(fmt::format("{} tokens", spend.tokens));
  if (spend.device_seconds > 0)
    parts.push_back(fmt::format("{:.0f} s of device time", spend.device_seconds));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string UsedUp(const CampaignFile& file, const Spend& spend) {
  if (file.usd > 0 && spend.usd >= file.usd)
    return fmt::format("its {:.4g} USD are spent ({:.4g})", file.usd, spend.usd);
  if (file.tokens > 0 && spend.tokens >= file.tokens)
    return fmt::format("its {} tokens are used up ({})", file.tokens, spend.tokens);
  if (file.turns > 0 && spend.turns >= file.turns)
    return fmt::format("its {} used up ({})", Counted(file.turns, "turn is", "turns are"),
                       spend.turns);
  if (file.device_seconds > 0 && spend.device_seconds >= file.device_seconds)
    return fmt::format("its {:.0f} s of device time are used up ({:.0f})", file.device_seconds,
                       spend.device_seconds);
  return "";
}

}  // namespace crucible
