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

// US dollars for a million tokens; all zero: no price is known.
struct UsdPrices {
  double input = 0, output = 0, cache_read = 0, cache_write = 0;
};

// A model that missions may be given to ([[model]] of the campaign file).
struct CampaignModel {
  std::string name;                    // as the server knows it
  std::string provider = "anthropic";  // anthropic | openai: the format its server speaks
  std::string key_variable;            // empty: the provider's usual one
  double weight = 1;                   // how often it is chosen, against its fellows
  std::vector<std::string> flavours;   // of missions; empty: any
  UsdPrices usd;
  bool stream = true;
  int max_tokens = 8192;  // of one reply
  std::int64_t context_tokens = 200'000;
};

// IdleTurnsOf(flavour): a scout reads for long before it has anything to log.
inline constexpr int kIdleByFlavour = -1;

// Of one mission; 0: no limit.
struct AgentBudget {
  int turns = 200;
  std::int64_t tokens = 0;
  double usd = 0;
  double device_seconds = 0;
  int format_errors = 3;              // one after the other
  int idle_turns = kIdleByFlavour;    // one after the other, without an edit, comparison or entry
  std::int64_t silence_ms = 600'000;  // of a command-line agent
};

struct AgentSettings {
  std::string kind = "proposer";      // proposer | command | llm | cli
  std::vector<std::string> command;   // kind = command; kind = cli without a profile
  std::string profile;                // kind = cli: claude | codex | opencode | gemini
  std::string cli_model;              // kind = cli: passed on; empty: the program's own choice
  UsdPrices cli_usd;                  // kind = cli: for a program that tells tokens but no money
  bool unsandboxed = false;           // commands of an agent run without bubblewrap
  bool network = false;               // kind = cli: its sandbox has the network
  std::vector<std::string> readable;  // kind = cli: folders that its sandbox shows, too
  std::vector<CampaignModel> models;  // kind = llm
  AgentBudget budget;
};

// A model that chooses among the policy's candidates ([planner] of the campaign file).
struct PlannerSettings {
  CampaignModel model;            // without a name: no model, the policy's first candidate is taken
  std::int64_t wall_ms = 60'000;  // of one choice, retries included
  int candidates = 6;             // at most so many are shown
  std::int64_t tokens = 0;        // of all choices of the campaign together; 0: no limit
  double usd = 0;

  bool on() const { return !model.name.empty(); }
};

// How many turns in a row a mission of that flavour may spend on reading and thinking alone.
int IdleTurnsOf(const AgentBudget& budget, const std::string& flavour);

nlohmann::json ToJson(const AgentSettings& settings);
nlohmann::json ToJson(const PlannerSettings& settings);
Result<PlannerSettings> PlannerSettingsFromJson(const nlohmann::json& json);
// kUsage names the field that is missing or wrong.
Result<AgentSettings> AgentSettingsFromJson(const nlohmann::json& json);

}  // namespace crucible
