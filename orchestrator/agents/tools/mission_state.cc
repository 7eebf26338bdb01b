#include "orchestrator/agents/tools/mission_state.h"

#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

using nlohmann::json;

json ToJson(const TreeVerdict& verdict) {
  return {{"tree", verdict.tree},
          {"against", verdict.against},
          {"rule", verdict.rule},
          {"verdict", verdict.verdict},
          {"pass", verdict.pass}};
}

TreeVerdict VerdictFrom(const json& object) {
  return {object.at("tree"), object.at("against"), object.at("rule"), object.at("verdict"),
          object.at("pass")};
}

}  // namespace

Result<MissionState> LoadMissionState(const std::filesystem::path& file, const Arm& baseline) {
  MissionState state;
  state.held = baseline;
  const auto text = ReadFile(file);
  if (!text && text.error().kind == ErrorKind::kNotFound) return state;
  if (!text) return tl::unexpected(text.error());
  try {
    const json object = json::parse(*text);
    object.at("number").get_to(state.number);
    object.at("judged").get_to(state.judged);
    CRUCIBLE_ASSIGN(state.held, ArmFromJson(object.at("held")));
    object.at("held_slot").get_to(state.held_slot);
    if (object.contains("built")) {
      CRUCIBLE_ASSIGN(state.built, ArmFromJson(object["built"]));
    }
    if (object.contains("checked")) state.checked = VerdictFrom(object["checked"]);
    if (object.contains("compared")) state.compared = VerdictFrom(object["compared"]);
    object.at("measured").get_to(state.measured);
    if (object.contains("pending")) {
      CRUCIBLE_ASSIGN(state.pending, EntryFromJson(object["pending"]));
    }
    object.at("pending_known").get_to(state.pending_known);
    object.at("last_logged").get_to(state.last_logged);
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kUsage, "read the tools' state", file.string(), error.what(),
                "remove the file to begin the mission anew");
  }
  return state;
}

Result<> SaveMissionState(const std::filesystem::path& file, const MissionState& state) {
  json object = {{"number", state.number},
                 {"judged", state.judged},
                 {"held", ToJson(state.held)},
                 {"held_slot", state.held_slot},
                 {"measured", state.measured},
                 {"last_logged", state.last_logged},
                 {"pending_known", state.pending_known}};
  if (state.built) object["built"] = ToJson(*state.built);
  if (state.checked) object["checked"] = ToJson(*state.checked);
  if (state.compared) object["compared"] = ToJson(*state.compared);
  if (state.pending) object["pending"] = ToJson(*state.pending);
  return WriteFileAtomically(file, JsonText(object, 2) + "\n");
}

}  // namespace crucible
