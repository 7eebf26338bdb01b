// candidates.h: the missions that may come next, best first: what an LLM planner chooses from.
//
// Pure. Candidate 0 is PlanNext's own choice; each further one is what PlanNext would choose if the
// cases of those before it were taken. So a candidate is always a mission of the policy, with its
// flavour, its reason and the score in it, and no two name the same case. A mission that a person
// added is the only candidate: it is nobody's to put off.
#pragma once

#include <string>
#include <vector>

#include "missions/planner.h"

namespace crucible {

// At most `most`; none when PlanNext has none (why is in `why_not` if given).
std::vector<MissionPlan> PlanCandidates(const PlannerInput& input,
                                        const std::string& default_flavour, std::size_t most,
                                        std::string* why_not = nullptr);

}  // namespace crucible
