// scripted_turns.h: what a scripted model says, as the scenario file's JSON (docs/llm.md). Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace crucible {

using nlohmann::json;

inline json Call(const std::string& tool, json arguments = json::object()) {
  return {{"tools", {{{"name", tool}, {"arguments", std::move(arguments)}}}}};
}

inline json Edit(const std::string& path, const std::string& from, const std::string& to) {
  return Call("edit_file", {{"path", path}, {"old_text", from}, {"new_text", to}});
}

inline json Compare(const std::string& mechanism, json params) {
  return Call("compare", {{"rule", "claim"}, {"mechanism", mechanism}, {"params", params}});
}

inline json Log(const std::string& mechanism, const std::string& hypothesis, json params) {
  return Call("log_experiment",
              {{"mechanism", mechanism}, {"hypothesis", hypothesis}, {"params", params}});
}

inline json Commit(const std::string& message) { return Call("commit", {{"message", message}}); }

inline json Report(const std::string& outcome, const std::string& report) {
  return Call("report", {{"outcome", outcome}, {"report", report}});
}

inline json Fault(json what, json more = json::object()) {
  more["fault"] = std::move(what);
  return more;
}

// `turn` with arguments that are no JSON.
inline json Malformed(json turn) {
  turn["malformed_arguments"] = true;
  return turn;
}

inline json Conversation(const std::string& match, json steps) {
  return {{"match", {match}}, {"limit", 1}, {"steps", std::move(steps)}};
}

// For every mission that no other conversation is for.
inline json NothingToDo() {
  return {{"steps", {Report("no_change", "The script has nothing to say about this mission.")}}};
}

}  // namespace crucible
