// agent_ready.h: can a campaign's agents work on this machine? Asked before anything is written, so
// that a missing key is an error at the launch and not a crashed mission at night.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "missions/agent_settings.h"

namespace crucible {

// The first thing that is missing: a key, a program, the sandbox. Asks nothing of the network.
Result<> AgentsReady(const AgentSettings& settings, const PlannerSettings& planner = {});

struct EndpointFinding {
  std::string model;
  bool usable = false, sure = false;
  std::string found, next;
};
// Asks each model's endpoint, and the planner's, whether it answers; costs no tokens.
std::vector<EndpointFinding> ProbeModels(const AgentSettings& settings,
                                         const PlannerSettings& planner = {});

}  // namespace crucible
