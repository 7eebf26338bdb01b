// speak.h: one reply of a model in either wire format, whole or as the events of a stream. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/agents/llm/message.h"
#include "tests/support/scripted_server/scenario.h"

namespace crucible {

struct Spoken {
  std::string id, model, text, stop;  // stop as in ScriptStep
  std::vector<ScriptStep::Call> calls;
  bool malformed_arguments = false;
  std::optional<Usage> usage;  // empty: none is told
};

std::string AnthropicBody(const Spoken& spoken);
std::string OpenAiBody(const Spoken& spoken, const Scenario& quirks);
// Each element is one whole event, blank line included.
std::vector<std::string> AnthropicEvents(const Spoken& spoken, const Scenario& quirks);
std::vector<std::string> OpenAiEvents(const Spoken& spoken, const Scenario& quirks);

// An error's body; Messages and Chat Completions differ.
std::string ErrorBody(bool anthropic, const std::string& type, const std::string& message);

}  // namespace crucible
