// loop_result.cc: what a conversation that ended without a report means for its mission.
#include <fmt/format.h>

#include "base/counted.h"
#include "orchestrator/agents/loop/agent_loop.h"

namespace crucible {

MissionResult ResultOf(const LoopOutcome& outcome) {
  const bool blocked = outcome.end == LoopEnd::kRefused || outcome.end == LoopEnd::kConfiguration;
  const std::string why(ToText(outcome.end));
  return {blocked ? "blocked" : "budget",
          fmt::format("The mission ended without a report: {}{}; {}, {:.2f} USD.\n", why,
                      outcome.detail == why || outcome.detail.empty() ? "" : ": " + outcome.detail,
                      Counted(outcome.spend.turns, "turn"), outcome.spend.usd)};
}

Result<> WriteLoopResult(const std::filesystem::path& folder, const LoopOutcome& outcome) {
  if (outcome.end == LoopEnd::kReported || outcome.end == LoopEnd::kProvider) return {};
  return WriteMissionResult(folder, ResultOf(outcome));
}

}  // namespace crucible
