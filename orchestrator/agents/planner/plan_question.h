// plan_question.h: which of the policy's candidates a planner model is asked about, and its answer,
// as files of campaigns/NAME/planner/N/: question.json from the campaign, choice.json and
// transcript.jsonl from `crucible plan`, the campaign's child that asks.
//
// A choice is one of the candidates, whatever came: an answer that cannot be used is the policy's
// first candidate, with the cause. What the asking cost is in it either way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "missions/agent_settings.h"
#include "missions/planner.h"

namespace crucible {

struct PlanQuestion {
  PlannerSettings planner;
  std::vector<MissionPlan> candidates;  // at least one
  std::string context;                  // what the log says: missions so far, heads of briefs
  double usd_spent = 0;                 // on earlier choices of the campaign
  std::int64_t tokens_spent = 0;
};

struct PlanChoice {
  std::size_t index = 0;     // of the candidates
  std::string model;         // who was asked; "": nobody
  std::string why;           // the model's sentence; "" when the policy chose
  std::string fallback;      // why the policy's first candidate was taken; "": the model chose
  std::string spend = "{}";  // JSON, as a mission's

  bool by_model() const { return fallback.empty() && !model.empty(); }
};

nlohmann::json ToJson(const MissionPlan& plan);
Result<MissionPlan> MissionPlanFromJson(const nlohmann::json& json);

Result<> WritePlanQuestion(const std::filesystem::path& folder, const PlanQuestion& question);
Result<PlanQuestion> ReadPlanQuestion(const std::filesystem::path& folder);
Result<> WritePlanChoice(const std::filesystem::path& folder, const PlanChoice& choice);
// kUsage also where it names none of `candidates`.
Result<PlanChoice> ReadPlanChoice(const std::filesystem::path& folder, std::size_t candidates);

// "scripted-1 chose 2 of 5 (n160, explorer): why" or "the policy's first of 5 (n128, kernel):
// scripted-1 gave no usable answer: cause"; for the events and the mission's row.
std::string ToText(const PlanChoice& choice, const std::vector<MissionPlan>& candidates);

}  // namespace crucible
