// spend.h: what missions have used of money, tokens and device time, live and in the log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "missions/campaign_file.h"
#include "orchestrator/workspace.h"
#include "results_log/store.h"

namespace crucible {

struct Spend {
  std::int64_t turns = 0;
  std::int64_t tokens = 0;  // without those read from a provider's cache
  double usd = 0, device_seconds = 0;
  Spend& operator+=(const Spend& other);
  bool empty() const { return turns == 0 && tokens == 0 && usd == 0 && device_seconds == 0; }
};

// The agent's spend.json as it is now; empty where there is none (the proposer has none).
nlohmann::json AgentSpend(const std::filesystem::path& mission_folder);

// Seconds of device time that the queue gave to jobs of this mission, running ones included.
Result<double> DeviceSeconds(const std::filesystem::path& log_file, const std::string& mission);

// "12 of 10 s of device time are used" once a mission has used up `most` (0: no limit), else "".
std::string DeviceTimeUsedUp(const Workspace& workspace, const std::string& mission, double most);

// Of every mission of the campaign: ended ones by their row, running ones by their spend.json, and
// the device's queue for both; and of a planner's answers that no mission came of.
Result<Spend> SpendOf(Store* store, const Workspace& workspace, const std::string& campaign);

// What a mission has used so far, as its row is to say it: the agent's spend.json, what a planner
// model was paid for choosing the mission (in `planner_usd`, and in the sums), the queue's seconds,
// its wall time.
nlohmann::json SpendForRow(const Workspace& workspace, const MissionRow& mission);

// What an ended mission's row says.
Spend RecordedSpend(const MissionRow& mission);

// The same in JSON of a mission in any state: an ended one's row, else as of now.
nlohmann::json SpendNow(const Workspace& workspace, const MissionRow& mission);

// What a planner model was paid for answers that became no mission, because the campaign was killed
// meanwhile: by the folders of its questions that no mission of `missions` names.
Spend UntakenChoices(const Workspace& workspace, const std::string& campaign,
                     const std::vector<MissionRow>& missions);

// The sums of a spend in JSON, of an agent or a row; nothing where it is no object.
Spend SpendIn(const nlohmann::json& object);

// "1.25 USD, 81000 tokens, 95 s of device time"; "" when nothing was spent.
std::string ToText(const Spend& spend);

// Which of the campaign's budgets is used up: "its 20 USD are spent"; "" while none is.
std::string UsedUp(const CampaignFile& file, const Spend& spend);

}  // namespace crucible
