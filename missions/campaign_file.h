// campaign_file.h: a campaign file (missions/campaigns/*.toml), read and validated.
//
//   name = "demo"                    # [a-z0-9_-]+
//   target = "../targets/eigh_cpu.toml"   # relative to this file
//   branch = "main"                  # the branch that merges move
//   agents = 2                       # missions at once
//   cases = ["n32"]                  # only these are worked on (not said: all); every case stays
//                                    // under the ratchet
//   [budget]
//   wall = "5m"                      # no new mission after this; running ones end (`budget`)
//   missions = 8                     # at most (0: no limit)
//   idle_missions = 3                # stop after so many in a row that landed nothing
//   usd = 20.0                       # once so much was spent, running missions end and none begins
//                                    # (0: no limit); turns, tokens, device_seconds likewise
//   [mission]
//   wall = "90s"                     # of one mission
//   experiments = 6                  # of one mission
//   turns = 60                       # of a model, and so on: tokens, usd, device_seconds,
//                                    # format_errors, idle_turns, silence (AgentBudget)
//   [agent]
//   kind = "proposer"                # proposer | command (any program that reads a mission and
//                                    # commits) | llm (a model with crucible's tools) | cli (a
//                                    # program such as claude, given the mission on stdin)
//   command = ["…"]                  # kind = command or cli; {mission} {worktree} {bin} replaced
//   profile = "claude"               # kind = cli: instead of a command
//   model = "…"                      # kind = cli: passed on to the program
//   usd = { input = 1.0, output = 8.0 }  # kind = cli: prices, where the program tells tokens only
//   readable = ["/opt/node"]         // kind = cli: what its sandbox shows beside the system
//   unsandboxed = false              # true: without bubblewrap
//   seed = 1                         # of the models' draw; 0: from the clock, and recorded
//   [[model]]                        # kind = llm: at least one; no key, no address (docs/llm.md)
//   name = "…"
//   provider = "anthropic"           # anthropic | openai
//   weight = 1.0
//   flavours = ["kernel"]            # missions it takes; none: any
//   usd = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }   # a million tokens
//                                    # (cache prices not given: as input, and 1.25 times it)
//   stream, max_tokens, context_tokens, key_variable
//   [planner]                        // a model chooses among the policy's candidates; none: the
//                                    // policy's first. name, provider, key_variable, usd, stream,
//                                    // max_tokens as of a [[model]], and:
//   wall = "60s"                     // of one choice; later, the policy's first is taken
//   candidates = 6                   // at most so many are shown
//   budget = { usd = 1.0, tokens = 0 }   // of all choices together (0: the campaign's own limit)
//   [merge]
//   approve = false                  # true: a person approves each merge
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "missions/agent_settings.h"

namespace crucible {

struct CampaignFile {
  std::string name, branch = "main";
  std::filesystem::path file, target;  // absolute
  int agents = 2;
  std::vector<std::string> cases;  // empty: all
  std::int64_t wall_ms = 3'600'000;
  int missions = 0;
  int idle_missions = 0;  // 0: never stop for that
  std::int64_t mission_wall_ms = 600'000;
  int mission_experiments = 12;
  std::int64_t turns = 0, tokens = 0;  // of all missions together; 0: no limit
  double usd = 0, device_seconds = 0;
  AgentSettings agent;
  PlannerSettings planner;
  std::uint64_t seed = 0;
  bool approve = false;
};

Result<CampaignFile> LoadCampaignFile(const std::filesystem::path& file);
Result<CampaignFile> ParseCampaignFile(const std::string& toml, const std::filesystem::path& file);

}  // namespace crucible
