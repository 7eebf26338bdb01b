#include "orchestrator/agents/mission_folder.h"

#include <set>

#include "base/files.h"
#include "missions/json_fields.h"

namespace crucible {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

template <class Order, class Field>
void EachField(Order& order, Field field) {
  field("id", order.id);
  field("campaign", order.campaign);
  field("flavour", order.flavour);
  field("key_prefix", order.key_prefix);
  field("cases", order.cases);
  field("branch", order.branch);
  field("base_commit", order.base_commit);
  field("main_branch", order.main_branch);
  field("run_nonce", order.run_nonce);
  field("experiments", order.experiments);
  field("deadline_ms", order.deadline_ms);
  field("seed", order.seed);
  field("retry", order.retry);
  field("now", order.now);
}

template <class Order, class Field>
void EachPath(Order& order, Field field) {
  field("home", order.workspace.home);
  field("programs", order.workspace.programs);
  field("target_file", order.target_file);
  field("worktree", order.worktree);
}

}  // namespace

Result<> WriteMissionOrder(const MissionOrder& order) {
  json object;
  EachField(order, PutInto(object));
  EachPath(order, [&](const char* name, const fs::path& path) { object[name] = path.string(); });
  object["baseline"] = ToJson(order.baseline);
  object["agent"] = ToJson(order.agent);
  return WriteFileAtomically(order.workspace.Mission(order.id) / "mission.json",
                             JsonText(object, 2) + "\n");
}

Result<MissionOrder> ReadMissionOrder(const fs::path& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  return ReadFields(file.string(),
                    "it is written by the orchestrator; run the mission through a campaign",
                    [&]() -> Result<MissionOrder> {
                      const json object = json::parse(text);
                      MissionOrder order;
                      EachField(order, GetFrom(object));
                      EachPath(order, [&](const char* name, fs::path& path) {
                        path = object.at(name).get<std::string>();
                      });
                      CRUCIBLE_ASSIGN(order.baseline, ArmFromJson(object.at("baseline")));
                      if (object.contains("agent")) {
                        CRUCIBLE_ASSIGN(order.agent, AgentSettingsFromJson(object["agent"]));
                      }
                      return order;
                    });
}

Result<> WriteMissionResult(const std::filesystem::path& folder, const MissionResult& result) {
  const json object = {{"outcome", result.outcome}, {"report", result.report}};
  return WriteFileAtomically(folder / "result.json", JsonText(object, 2) + "\n");
}

Result<MissionResult> ReadMissionResult(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "result.json";
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  const json object = json::parse(text, nullptr, false);
  static const std::set<std::string> kOutcomes = {"candidate", "no_change", "pivot", "blocked",
                                                  "budget"};
  if (!object.is_object() || !object.contains("outcome") || !object["outcome"].is_string() ||
      !kOutcomes.contains(object["outcome"].get<std::string>()))
    return Fail(ErrorKind::kUsage, "read result", file.string(),
                "it is no JSON object with an outcome",
                "outcomes: candidate, no_change, pivot, blocked, budget");
  MissionResult result;
  result.outcome = object["outcome"].get<std::string>();
  if (object.contains("report") && object["report"].is_string())
    result.report = object["report"].get<std::string>();
  return result;
}

}  // namespace crucible
