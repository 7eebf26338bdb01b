#include "tests/support/scripted_server/script.h"

#include <optional>
#include <regex>
#include <sstream>

#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

constexpr std::size_t kLongestLine = 4096;  // std::regex recurses for each character

// Group 1 of the first match, or the whole match; line by line.
std::optional<std::string> Search(const std::regex& pattern, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kLongestLine) line.resize(kLongestLine);
    std::smatch match;
    if (std::regex_search(line, match, pattern)) return match.size() > 1 ? match[1] : match[0];
  }
  return std::nullopt;
}

Result<std::string> Captured(const std::string& name,
                             const std::map<std::string, std::string>& captures,
                             const Asked& asked) {
  const auto capture = captures.find(name);
  if (capture == captures.end())
    return Fail(ErrorKind::kUsage, "fill in", "${" + name + "}", "no capture has this name");
  const std::regex pattern(capture->second);
  for (auto it = asked.tool_results.rbegin(); it != asked.tool_results.rend(); ++it)
    if (auto found = Search(pattern, *it)) return *found;
  if (auto found = Search(pattern, asked.first_user_text)) return *found;
  return Fail(ErrorKind::kUsage, "fill in", "${" + name + "}",
              "nothing that the model was told matches " + capture->second);
}

Result<> FillInJson(Json* value, const std::map<std::string, std::string>& captures,
                    const Asked& asked) {
  if (value->is_string()) {
    CRUCIBLE_ASSIGN(*value, FillIn(value->get<std::string>(), captures, asked));
  } else if (value->is_structured()) {
    for (Json& item : *value) CRUCIBLE_TRY(FillInJson(&item, captures, asked));
  }
  return {};
}

Result<> FillInStep(ScriptStep* step, std::map<std::string, std::string> captures,
                    const Asked& asked) {
  for (const auto& [name, pattern] : step->captures) captures[name] = pattern;
  CRUCIBLE_ASSIGN(step->text, FillIn(step->text, captures, asked));
  for (ScriptStep::Call& call : step->calls) {
    Json arguments = ParseJson(call.arguments);
    CRUCIBLE_TRY(FillInJson(&arguments, captures, asked));
    call.arguments = Dump(arguments);
  }
  return {};
}

}  // namespace

Result<std::string> FillIn(const std::string& text,
                           const std::map<std::string, std::string>& captures, const Asked& asked) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 3, "$${") == 0) {
      result += "${";
      at += 3;
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (text.compare(at, 2, "${") != 0 || end == std::string::npos) {
      result.push_back(text[at++]);
      continue;
    }
    CRUCIBLE_ASSIGN(const std::string value,
                    Captured(text.substr(at + 2, end - at - 2), captures, asked));
    result += value;
    at = end + 1;
  }
  return result;
}

Result<Script::Mission*> Script::Find(const Asked& asked) {
  const auto known = missions_.find(asked.first_user_text);
  if (known != missions_.end()) return &known->second;
  for (std::size_t i = 0; i < scenario_.conversations.size(); ++i) {
    const ScriptConversation& conversation = scenario_.conversations[i];
    bool matches = true;
    for (const std::string& word : conversation.match)
      matches = matches && asked.first_user_text.find(word) != std::string::npos;
    if (!matches) continue;
    if (conversation.limit > 0 && holders_[i] >= static_cast<std::size_t>(conversation.limit))
      continue;
    Mission mission;
    mission.conversation = i;
    mission.number = holders_[i]++;
    return &missions_.emplace(asked.first_user_text, mission).first->second;
  }
  return Fail(
      ErrorKind::kNotFound, "find", "a conversation",
      "no match is left for a mission that begins \"" + asked.first_user_text.substr(0, 80) + "\"");
}

Result<Script::Due> Script::Next(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  CRUCIBLE_ASSIGN(Mission * mission, Find(asked));
  const ScriptConversation& conversation = scenario_.conversations[mission->conversation];
  const int place = conversation.sequential ? mission->turns : asked.assistant_messages;
  const std::string id = "c" + std::to_string(mission->conversation) + "m" +
                         std::to_string(mission->number) + "t" + std::to_string(place);
  int turns_before = 0;
  for (std::size_t i = 0; i < conversation.steps.size(); ++i) {
    const ScriptStep& step = conversation.steps[i];
    const bool is_turn = step.fault.empty();
    if (turns_before == place && !is_turn && mission->faults[i] < step.times) {
      ++mission->faults[i];
      return Due{step, id + "f" + std::to_string(i)};
    }
    if (!is_turn) continue;
    if (turns_before++ < place) continue;
    Due due{step, id};
    CRUCIBLE_TRY(FillInStep(&due.step, conversation.captures, asked));
    ++mission->turns;
    return due;
  }
  return Fail(ErrorKind::kNotFound, "find", "turn " + std::to_string(place),
              "the script of conversation " + std::to_string(mission->conversation) + " is over");
}

}  // namespace crucible
