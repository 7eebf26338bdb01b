#include "orchestrator/agents/planner/plan_question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "missions/json_fields.h"

namespace crucible {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

Result<json> ReadObject(const fs::path& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  json object = json::parse(text, nullptr, false);
  if (object.is_object()) return object;
  return Fail(ErrorKind::kUsage, "read", file.string(), "it is no JSON object", "");
}

Result<> WriteObject(const fs::path& file, const json& object) {
  return WriteFileAtomically(file, JsonText(object, 2) + "\n");
}

template <class Plan, class Field>
void EachField(Plan& plan, Field field) {
  field("flavour", plan.flavour);
  field("cases", plan.cases);
  field("goal", plan.goal);
  field("why", plan.why);
  field("retry", plan.retry);
  field("added_mission", plan.added_mission);
}

std::string Named(const MissionPlan& plan) {
  return fmt::format("{}, {}", fmt::join(plan.cases, " "), plan.flavour);
}

}  // namespace

json ToJson(const MissionPlan& plan) {
  json object;
  EachField(plan, PutInto(object));
  return object;
}

Result<MissionPlan> MissionPlanFromJson(const json& object) {
  return ReadFields("a candidate", "", [&]() -> Result<MissionPlan> {
    MissionPlan plan;
    EachField(plan, GetFrom(object));
    return plan;
  });
}

Result<> WritePlanQuestion(const fs::path& folder, const PlanQuestion& question) {
  json candidates = json::array();
  for (const MissionPlan& plan : question.candidates) candidates.push_back(ToJson(plan));
  CRUCIBLE_TRY(MakeDirectories(folder));
  return WriteObject(folder / "question.json", {{"planner", ToJson(question.planner)},
                                                {"candidates", std::move(candidates)},
                                                {"context", question.context},
                                                {"usd_spent", question.usd_spent},
                                                {"tokens_spent", question.tokens_spent}});
}

Result<PlanQuestion> ReadPlanQuestion(const fs::path& folder) {
  const fs::path file = folder / "question.json";
  CRUCIBLE_ASSIGN(const json object, ReadObject(file));
  return ReadFields(file.string(), "", [&]() -> Result<PlanQuestion> {
    PlanQuestion question;
    CRUCIBLE_ASSIGN(question.planner, PlannerSettingsFromJson(object.at("planner")));
    for (const json& item : object.at("candidates")) {
      CRUCIBLE_ASSIGN(MissionPlan plan, MissionPlanFromJson(item));
      question.candidates.push_back(std::move(plan));
    }
    object.at("context").get_to(question.context);
    object.at("usd_spent").get_to(question.usd_spent);
    object.at("tokens_spent").get_to(question.tokens_spent);
    if (!question.candidates.empty()) return question;
    return Fail(ErrorKind::kUsage, "read", file.string(), "it lists no candidate", "");
  });
}

Result<> WritePlanChoice(const fs::path& folder, const PlanChoice& choice) {
  return WriteObject(folder / "choice.json", {{"index", choice.index},
                                              {"model", choice.model},
                                              {"why", choice.why},
                                              {"fallback", choice.fallback},
                                              {"spend", json::parse(choice.spend)}});
}

Result<PlanChoice> ReadPlanChoice(const fs::path& folder, std::size_t candidates) {
  const fs::path file = folder / "choice.json";
  CRUCIBLE_ASSIGN(const json object, ReadObject(file));
  return ReadFields(file.string(), "", [&]() -> Result<PlanChoice> {
    PlanChoice choice;
    object.at("index").get_to(choice.index);
    object.at("model").get_to(choice.model);
    object.at("why").get_to(choice.why);
    object.at("fallback").get_to(choice.fallback);
    choice.spend = object.at("spend").dump();
    if (choice.index < candidates) return choice;
    return Fail(ErrorKind::kUsage, "read", file.string(),
                fmt::format("it names candidate {} of {}", choice.index + 1, candidates), "");
  });
}

std::string ToText(const PlanChoice& choice, const std::vector<MissionPlan>& candidates) {
  const std::string named = Named(candidates.at(choice.index));
  if (choice.by_model())
    return fmt::format("{} chose {} of {} candidates ({}): {}", choice.model, choice.index + 1,
                       candidates.size(), named, choice.why);
  return fmt::format("the policy's first of {} candidates ({}): {}", candidates.size(), named,
                     choice.fallback);
}

}  // namespace crucible
