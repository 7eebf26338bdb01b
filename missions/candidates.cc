#include "missions/candidates.h"

namespace crucible {

std::vector<MissionPlan> PlanCandidates(const PlannerInput& input,
                                        const std::string& default_flavour, std::size_t most,
                                        std::string* why_not) {
  PlannerInput rest = input;
  std::vector<MissionPlan> candidates;
  while (candidates.size() < most) {
    const bool first = candidates.empty();
    auto plan = PlanNext(rest, default_flavour, first ? why_not : nullptr);
    if (!plan || (!first && !plan->added_mission.empty())) break;
    const bool added = !plan->added_mission.empty();
    MissionRow taken;  // as if it were at work already
    taken.campaign = input.campaign;
    taken.target = input.target->name;
    taken.flavour = plan->flavour;
    taken.cases = plan->cases;
    taken.state = "running";
    rest.missions.push_back(std::move(taken));
    candidates.push_back(std::move(*plan));
    if (added) break;
  }
  return candidates;
}

}  // namespace crucible
