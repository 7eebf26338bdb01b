// scenario.h: what a scripted model says, read from a JSON file. Plain data.
//
// The file's form is in docs/llm.md. Reading is strict: a field that does not exist is an error,
// because a script with a typo would otherwise test nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/agents/llm/message.h"

namespace crucible {

struct ScriptStep {
  // A turn: what the model says.
  std::string text;
  struct Call {
    std::string name, arguments;  // JSON text
  };
  std::vector<Call> calls;
  std::string stop;            // "max_tokens", "refusal", "paused", "context_full"; empty: by calls
  std::optional<Usage> usage;  // empty: counted from the bytes
  bool tells_usage = true;
  bool malformed_arguments = false;
  std::map<std::string, std::string> captures;  // name -> regular expression

  // Or a fault: what goes wrong before the turn that follows.
  std::string fault;  // empty: a turn
  int status = 0;     // for fault "status"
  int times = 1;
  std::string error_type, message;
  std::map<std::string, std::string> headers;
};

struct ScriptConversation {
  std::vector<std::string> match;  // all of them occur in the first user message
  int limit = 0;                   // how many missions may hold this conversation; 0: any number
  bool sequential = false;         // steps in the order of requests, whatever the history says
  std::map<std::string, std::string> captures;
  std::vector<ScriptStep> steps;
};

struct Scenario {
  std::string require_key;          // 401 for any other
  std::vector<std::string> models;  // 404 for any other; empty: any model
  std::vector<std::string> reject;  // parameters that are answered by 400
  std::vector<std::string> quirks;  // "no_done", "no_ids", "no_index", "no_models", "no_stream"
  std::size_t piece_bytes = 0;      // a stream is cut into pieces this long; 0: by events
  std::vector<ScriptConversation> conversations;

  bool HasQuirk(const std::string& name) const;
};

Result<Scenario> ParseScenario(const std::string& text);

}  // namespace crucible
