// wire.h: what the two wire formats have in common. Private to this folder.
//
// A format is a table of pure functions: the request as JSON text, and a reply read into a
// WireReply either from a whole body or event by event. Both ways end in the same WireReply, so
// streaming cannot mean something else than not streaming.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/agents/llm/provider.h"
#include "orchestrator/agents/llm/sse.h"

namespace crucible {

// What a server may turn out not to know; learnt from its refusals.
struct WireDialect {
  bool old_max_tokens = false;  // Chat Completions: max_tokens, not max_completion_tokens
  bool stream_options = true;   // Chat Completions: ask for the usage of a stream
};

struct WireError {
  std::string type;  // "overloaded_error", "insufficient_quota"
  std::string message;
};

struct WireReply {
  struct Part {
    Block block;
    std::string signature;  // of a thinking block, while it streams
    bool thinking = false;
  };
  std::map<int, Part> parts;  // by the format's index
  std::optional<StopReason> stop;
  std::optional<Usage> usage;
  std::string model;
  bool whole = false;              // the end mark came
  std::optional<WireError> error;  // one that came inside a stream
};

struct WireFormat {
  std::string (*url)(const std::string& base_url);
  std::string (*models_url)(const std::string& base_url);
  std::vector<std::string> (*headers)(const std::string& key);
  Result<std::string> (*request)(const std::string& model, bool stream, const WireDialect& dialect,
                                 const CompletionRequest& request);
  Result<> (*read_body)(const std::string& body, WireReply* reply);
  // `text` gets what the event adds to the words of the reply.
  Result<> (*read_event)(const SseEvent& event, WireReply* reply, std::string* text);
};

const WireFormat& AnthropicFormat();
const WireFormat& OpenAiFormat();

// The type and message of an error body in any of the shapes that servers use; never fails.
WireError ReadWireError(const std::string& body);

// The usage of a body that is no JSON as a whole: what its last "usage" object says.
std::optional<Usage> FindUsage(const std::string& body);

// The message and stop reason of a reply that has one: blocks in order, ids and arguments made
// whole, the stop reason made to agree with the tool calls. `conversation` makes ids that a server
// left out unlike those of earlier replies.
Message TakeMessage(WireReply* reply, std::size_t conversation);

}  // namespace crucible
