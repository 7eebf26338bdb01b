#include "tests/support/scripted_server/scenario.h"

#include <algorithm>
#include <regex>
#include <set>

#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

const std::set<std::string> kFaults = {
    "status", "insufficient_quota", "context_full", "not_json", "cut_json", "drop", "hang",
    "silent", "error_event",        "empty"};
const std::set<std::string> kQuirks = {"no_done", "no_ids", "no_index", "no_models", "no_stream"};
const std::set<std::string> kStops = {"", "max_tokens", "refusal", "paused", "context_full"};

tl::unexpected<Error> Wrong(const std::string& where, const std::string& cause) {
  return Fail(ErrorKind::kUsage, "read scenario,", where, cause, "see docs/llm.md");
}

Result<> OnlyFields(const Json& object, const std::string& where,
                    const std::set<std::string>& known) {
  if (!object.is_object()) return Wrong(where, "it is no object");
  for (const auto& [name, value] : object.items())
    if (!known.contains(name)) return Wrong(where, "there is no field \"" + name + "\"");
  return {};
}

Result<std::vector<std::string>> Strings(const Json& value, const std::string& where) {
  std::vector<std::string> result;
  if (value.is_null()) return result;
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  if (!value.is_array()) return Wrong(where, "it is no list of strings");
  for (const Json& item : value) {
    if (!item.is_string()) return Wrong(where, "it is no list of strings");
    result.push_back(item.get<std::string>());
  }
  return result;
}

Result<std::map<std::string, std::string>> StringMap(const Json& value, const std::string& where) {
  std::map<std::string, std::string> result;
  if (value.is_null()) return result;
  if (!value.is_object()) return Wrong(where, "it is no object of strings");
  for (const auto& [name, item] : value.items()) {
    if (!item.is_string()) return Wrong(where, name + " is no string");
    result[name] = item.get<std::string>();
  }
  return result;
}

Result<std::map<std::string, std::string>> Captures(const Json& value, const std::string& where) {
  CRUCIBLE_ASSIGN(auto result, StringMap(value, where + ", captures"));
  for (const auto& [name, pattern] : result) try {
      const std::regex compiled(pattern);
    } catch (const std::regex_error& error) {
      return Wrong(where, "capture " + name + " is no regular expression: " + error.what());
    }
  return result;
}

Result<ScriptStep> ReadFault(const Json& json, const std::string& where) {
  CRUCIBLE_TRY(OnlyFields(json, where,
                          {"fault", "status", "times", "error_type", "message", "headers",
                           "retry_after", "retry_after_ms"}));
  ScriptStep step;
  const Json& fault = json["fault"];
  if (fault.is_number_integer()) {
    step.fault = "status";
    step.status = fault.get<int>();
  } else if (fault.is_string()) {
    step.fault = fault.get<std::string>();
    step.status = static_cast<int>(CountOf(json, "status").value_or(0));
  }
  if (!kFaults.contains(step.fault)) return Wrong(where, "there is no such fault");
  if (step.fault == "status" && (step.status < 200 || step.status > 599))
    return Wrong(where, "a status lies between 200 and 599");
  step.times = static_cast<int>(CountOf(json, "times").value_or(1));
  step.error_type = StringOf(json, "error_type");
  step.message = StringOf(json, "message");
  CRUCIBLE_ASSIGN(step.headers, StringMap(Member(json, "headers"), where + ", headers"));
  if (json.contains("retry_after")) step.headers["retry-after"] = StringOf(json, "retry_after");
  if (json.contains("retry_after_ms"))
    step.headers["retry-after-ms"] = StringOf(json, "retry_after_ms");
  return step;
}

Result<ScriptStep> ReadTurn(const Json& json, const std::string& where) {
  CRUCIBLE_TRY(OnlyFields(json, where,
                          {"text", "tools", "stop", "usage", "malformed_arguments", "captures"}));
  ScriptStep step;
  step.text = StringOf(json, "text");
  for (const Json& call : Member(json, "tools")) {
    CRUCIBLE_TRY(OnlyFields(call, where + ", tools", {"name", "arguments"}));
    const Json& arguments = Member(call, "arguments");
    step.calls.push_back({StringOf(call, "name"), arguments.is_null() ? "{}" : Dump(arguments)});
    if (step.calls.back().name.empty()) return Wrong(where, "a tool has no name");
  }
  step.stop = StringOf(json, "stop");
  if (!kStops.contains(step.stop)) return Wrong(where, "there is no such stop");
  const Json& usage = Member(json, "usage");
  if (usage.is_boolean()) step.tells_usage = usage.get<bool>();
  if (usage.is_object()) {
    CRUCIBLE_TRY(
        OnlyFields(usage, where + ", usage", {"input", "output", "cache_read", "cache_write"}));
    step.usage =
        Usage{CountOf(usage, "input").value_or(0), CountOf(usage, "output").value_or(0),
              CountOf(usage, "cache_read").value_or(0), CountOf(usage, "cache_write").value_or(0)};
  }
  step.malformed_arguments = Member(json, "malformed_arguments") == Json(true);
  CRUCIBLE_ASSIGN(step.captures, Captures(Member(json, "captures"), where));
  return step;
}

Result<ScriptConversation> ReadConversation(const Json& json, const std::string& where) {
  CRUCIBLE_TRY(OnlyFields(json, where, {"match", "limit", "sequential", "captures", "steps"}));
  ScriptConversation result;
  CRUCIBLE_ASSIGN(result.match, Strings(Member(json, "match"), where + ", match"));
  result.limit = static_cast<int>(CountOf(json, "limit").value_or(0));
  result.sequential = Member(json, "sequential") == Json(true);
  CRUCIBLE_ASSIGN(result.captures, Captures(Member(json, "captures"), where));
  const Json& steps = Member(json, "steps");
  if (!steps.is_array() || steps.empty()) return Wrong(where, "it has no steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string at = where + ", step " + std::to_string(i);
    if (!steps[i].is_object()) return Wrong(at, "it is no object");
    CRUCIBLE_ASSIGN(ScriptStep step,
                    steps[i].contains("fault") ? ReadFault(steps[i], at) : ReadTurn(steps[i], at));
    result.steps.push_back(std::move(step));
  }
  return result;
}

}  // namespace

bool Scenario::HasQuirk(const std::string& name) const {
  return std::find(quirks.begin(), quirks.end(), name) != quirks.end();
}

Result<Scenario> ParseScenario(const std::string& text) {
  const Json json = ParseJson(text);
  if (json.is_discarded()) return Wrong("the file", "it is no JSON");
  CRUCIBLE_TRY(
      OnlyFields(json, "the file",
                 {"require_key", "models", "reject", "quirks", "piece_bytes", "conversations"}));
  Scenario scenario;
  scenario.require_key = StringOf(json, "require_key");
  CRUCIBLE_ASSIGN(scenario.models, Strings(Member(json, "models"), "models"));
  CRUCIBLE_ASSIGN(scenario.reject, Strings(Member(json, "reject"), "reject"));
  CRUCIBLE_ASSIGN(scenario.quirks, Strings(Member(json, "quirks"), "quirks"));
  for (const std::string& quirk : scenario.quirks)
    if (!kQuirks.contains(quirk)) return Wrong("quirks", "there is no quirk \"" + quirk + "\"");
  scenario.piece_bytes = static_cast<std::size_t>(CountOf(json, "piece_bytes").value_or(0));
  const Json& conversations = Member(json, "conversations");
  if (!conversations.is_array()) return Wrong("the file", "it has no conversations");
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    CRUCIBLE_ASSIGN(ScriptConversation conversation,
                    ReadConversation(conversations[i], "conversation " + std::to_string(i)));
    scenario.conversations.push_back(std::move(conversation));
  }
  return scenario;
}

}  // namespace crucible
