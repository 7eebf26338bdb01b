// choose_plan.h: asks a model which of the policy's candidates comes next.
//
// One request, with one tool `choose` whose arguments are a candidate's number and a sentence. The
// answer is taken when it is one well-formed call with a number on the list, in time and within the
// planner's budget; anything else is candidate 0 with the cause. Never an Error: planning goes on
// without the model. Runs on the caller's thread until the deadline at most.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "orchestrator/agents/llm/provider.h"
#include "orchestrator/agents/planner/plan_question.h"

namespace crucible {

struct ChoosePlanSpec {
  Provider* provider = nullptr;
  std::filesystem::path transcript;  // JSON Lines; "": none
  std::filesystem::path spend;       // JSON, rewritten at every billing; "": none
  std::vector<std::string> secrets;  // never in a transcript or a choice
  std::stop_token stop;
  Clock* clock = nullptr;  // the machine's by default
};

PlanChoice ChoosePlan(const PlanQuestion& question, const ChoosePlanSpec& spec);

// What the model is shown.
std::string QuestionText(const PlanQuestion& question);

// `crucible plan FOLDER`: reads question.json, asks, writes choice.json. An Error only when the
// files cannot be used; a missing key or model is a choice with that cause.
Result<PlanChoice> RunPlanner(const std::filesystem::path& folder, std::stop_token stop);

}  // namespace crucible
