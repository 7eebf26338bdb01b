// campaign_file.h: a campaign file (missions/campaigns/*.toml), read and validated.
//
//   name = "demo"                    # [a-z0-9_-]+
//   target = "../targets/eigh_cpu.toml"   # relative to this file
//   branch = "main"                  # the branch that merges move
//   agents = 2                       # missions at once
//   [budget]
//   wall = "5m"                      # no new mission after this; running ones end in state `budget`
//   missions = 8                     # at most (0: no limit)
//   idle_missions = 3                # stop after so many in a row that landed nothing
//   [mission]
//   wall = "90s"                     # of one mission
//   experiments = 6                  # of one mission
//   [agent]
//   kind = "proposer"                # proposer | command (any program that reads a mission, commits)
//   command = ["…"]                  # kind = command only; {mission} {worktree} {bin} replaced
//   seed = 1                         # 0: from the clock, and recorded
//   [merge]
//   approve = false                  # true: a person approves each merge
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

struct CampaignFile {
  std::string name, branch = "main";
  std::filesystem::path file, target;          // absolute
  int agents = 2;
  std::int64_t wall_ms = 3'600'000;
  int missions = 0;
  int idle_missions = 0;                        // 0: never stop for that
  std::int64_t mission_wall_ms = 600'000;
  int mission_experiments = 12;
  std::string agent_kind = "proposer";
  std::vector<std::string> agent_command;
  std::uint64_t seed = 0;
  bool approve = false;
};

Result<CampaignFile> LoadCampaignFile(const std::filesystem::path& file);
Result<CampaignFile> ParseCampaignFile(const std::string& toml, const std::filesystem::path& file);

}  // namespace crucible
