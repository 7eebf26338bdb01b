// probe.h: asks whether a model's endpoint answers, for `crucible doctor`. Costs no tokens: it
// reads the server's list of models once, without retries, and ends within a few seconds.
#pragma once

#include <cstdint>
#include <string>

#include "orchestrator/agents/llm/http.h"
#include "orchestrator/agents/llm/settings.h"

namespace crucible {

struct EndpointReport {
  enum class State {
    kReady,   // it answers, takes the key and knows the model
    kUnsure,  // it answers, but something could not be looked at
    kUnusable,
  };
  State state = State::kUnusable;
  std::string found;  // "api.example.com answers; it has model-1": never holds the key
  std::string next;   // what to do about it; empty when ready
};

EndpointReport ProbeEndpoint(const ModelSettings& settings, HttpClient& http,
                             std::int64_t timeout_ms = 8'000);
// The same over the network.
EndpointReport ProbeEndpoint(const ModelSettings& settings);

}  // namespace crucible
