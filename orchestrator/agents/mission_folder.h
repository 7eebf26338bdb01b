// mission_folder.h: the files by which the orchestrator and an agent talk (missions/ID/).
//
// mission.json is written before the agent starts and tells it everything; result.json is what it
// leaves. Any program can be an agent: the numbers come from the judge, and the commit from the
// worktree's branch, so a result file is a claim about the outcome only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/target.h"
#include "missions/agent_settings.h"
#include "orchestrator/workspace.h"

namespace crucible {

struct MissionOrder {
  std::string id, campaign, flavour;
  std::string key_prefix;  // of the entries' keys: "CAMPAIGN_ID.m3"
  std::vector<std::string> cases;
  Workspace workspace;
  std::filesystem::path target_file;  // frozen for the campaign
  std::filesystem::path worktree;
  std::string branch, base_commit;
  std::string main_branch = "main";  // where its merge goes
  Arm baseline;                      // base_commit, already built
  std::string run_nonce;
  int experiments = 0;
  std::int64_t deadline_ms = 0;  // Unix ms
  std::uint64_t seed = 0;
  std::vector<std::string> retry;          // keys of entries to be measured again first
  std::map<std::string, std::string> now;  // today's conditions
  AgentSettings agent;
};

Result<> WriteMissionOrder(const MissionOrder& order);
Result<MissionOrder> ReadMissionOrder(const std::filesystem::path& file);

struct MissionResult {
  std::string outcome;  // candidate, no_change, pivot, blocked, budget
  std::string report;   // Markdown
};

Result<> WriteMissionResult(const std::filesystem::path& folder, const MissionResult& result);
// kNotFound when the agent left none; kUsage when it makes no sense.
Result<MissionResult> ReadMissionResult(const std::filesystem::path& folder);

}  // namespace crucible
