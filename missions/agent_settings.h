// agent_settings.h: who carries out a campaign's missions, and within which limits. Plain data,
// part of the campaign file and frozen into every mission's order. Never holds a key or an address:
// those come from the environment or a key file of the machine (docs/llm.md).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

// A model that missions may be given to ([[model]] of the campaign file).
struct CampaignModel {
  std::string name;                    // as the server knows it
  std::string provider = "anthropic";  // anthropic | openai: the format its server speaks
  std::string key_variable;            // empty: the provider's usual one
  double weight = 1;                   // how often it is chosen, against its fellows
  std::vector<std::string> flavours;   // of missions; empty: any
  // US dollars for a million tokens; all zero: no price is known.
  double usd_input = 0, usd_output = 0, usd_cache_read = 0, usd_cache_write = 0;
  bool stream = true;
  int max_tokens = 8192;  // of one reply
  std::int64_t context_tokens = 200'000;
};

// Of one mission; 0: no limit.
struct AgentBudget {
  int turns = 200;
  std::int64_t tokens = 0;
  double usd = 0;
  double device_seconds = 0;
  int format_errors = 3;              // one after the other
  int idle_turns = 25;                // one after the other, without an edit, comparison or entry
  std::int64_t silence_ms = 600'000;  // of a command-line agent
};

struct AgentSettings {
  std::string kind = "proposer";      // proposer | command | llm | cli
  std::vector<std::string> command;   // kind = command; kind = cli without a profile
  std::string profile;                // kind = cli: claude | codex | opencode | gemini
  std::string cli_model;              // kind = cli: passed on; empty: the program's own choice
  bool unsandboxed = false;           // commands of an agent run without bubblewrap
  std::vector<CampaignModel> models;  // kind = llm
  AgentBudget budget;
};

nlohmann::json ToJson(const AgentSettings& settings);
// kUsage names the field that is missing or wrong.
Result<AgentSettings> AgentSettingsFromJson(const nlohmann::json& json);

}  // namespace crucible
