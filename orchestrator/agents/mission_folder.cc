#include "orchestrator/agents/mission_folder.h"

#include <set>

#include "base/files.h"
#include "base/json.h"

namespace crucible {

using nlohmann::json;

Result<> WriteMissionOrder(const MissionOrder& order) {
  const json object = {{"id", order.id},
                       {"campaign", order.campaign},
                       {"flavour", order.flavour},
                       {"key_prefix", order.key_prefix},
                       {"cases", order.cases},
                       {"home", order.workspace.home.string()},
                       {"programs", order.workspace.programs.string()},
                       {"target_file", order.target_file.string()},
                       {"worktree", order.worktree.string()},
                       {"branch", order.branch},
                       {"base_commit", order.base_commit},
                       {"main_branch", order.main_branch},
                       {"baseline", ToJson(order.baseline)},
                       {"run_nonce", order.run_nonce},
                       {"experiments", order.experiments},
                       {"deadline_ms", order.deadline_ms},
                       {"seed", order.seed},
                       {"retry", order.retry},
                       {"now", order.now},
                       {"agent", ToJson(order.agent)}};
  return WriteFileAtomically(order.workspace.Mission(order.id) / "mission.json",
                             object.dump(2) + "\n");
}

Result<MissionOrder> ReadMissionOrder(const std::filesystem::path& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  try {
    const json object = json::parse(text);
    MissionOrder order;
    object.at("id").get_to(order.id);
    object.at("campaign").get_to(order.campaign);
    object.at("flavour").get_to(order.flavour);
    object.at("key_prefix").get_to(order.key_prefix);
    object.at("cases").get_to(order.cases);
    order.workspace.home = object.at("home").get<std::string>();
    order.workspace.programs = object.at("programs").get<std::string>();
    order.target_file = object.at("target_file").get<std::string>();
    order.worktree = object.at("worktree").get<std::string>();
    object.at("branch").get_to(order.branch);
    object.at("base_commit").get_to(order.base_commit);
    object.at("main_branch").get_to(order.main_branch);
    CRUCIBLE_ASSIGN(order.baseline, ArmFromJson(object.at("baseline")));
    object.at("run_nonce").get_to(order.run_nonce);
    object.at("experiments").get_to(order.experiments);
    object.at("deadline_ms").get_to(order.deadline_ms);
    object.at("seed").get_to(order.seed);
    object.at("retry").get_to(order.retry);
    object.at("now").get_to(order.now);
    if (object.contains("agent")) {
      CRUCIBLE_ASSIGN(order.agent, AgentSettingsFromJson(object["agent"]));
    }
    return order;
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kUsage, "read mission", file.string(), error.what(),
                "it is written by the orchestrator; run the mission through a campaign");
  }
}

Result<> WriteMissionResult(const std::filesystem::path& folder, const MissionResult& result) {
  const json object = {{"outcome", result.outcome}, {"report", result.report}};
  return WriteFileAtomically(folder / "result.json", object.dump(2) + "\n");
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
