// provider.h: one model behind one wire format: a request in, a whole reply out.
//
// A provider owns every retry (nobody above it retries a request), under the request's outer
// deadline. It is used from one thread at a time. No error text, log line or transcript ever holds
// the key.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/agents/llm/message.h"

namespace crucible {

struct CompletionRequest {
  std::string system;
  std::vector<ToolDescription> tools;
  std::vector<Message> messages;
  int max_tokens = 8192;
  std::int64_t deadline_ms = 0;  // Unix ms: the end of all attempts together; 0: in one hour
  std::stop_token stop;          // asked to stop: ends within a second with kInterrupted
};

struct Completion {
  Message message;  // of the assistant
  StopReason stop = StopReason::kEnd;
  Usage usage;              // summed over every attempt that was billed
  double usd = 0;           // by the price table; 0 when the model has no price
  bool usage_known = true;  // false: a server sent none, so four bytes counted as a token
  int attempts = 1;
  std::string model;
};

struct CompletionEvents {
  // Pieces of text as they stream in. After on_retry the reply starts anew.
  std::function<void(const std::string& text)> on_text;
  // "429 rate_limit_error, waiting 2 s". Never holds the key.
  std::function<void(const std::string& what)> on_retry;
  // Once for each attempt that was billed, also for a reply that was unusable and for a Complete
  // that fails in the end. Completion::usage holds the same tokens summed: count one of the two.
  std::function<void(const Usage& usage, double usd)> on_billed;
};

class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string model() const = 0;
  // A conversation too long for the model is no error but StopReason::kContextFull, without blocks.
  // kUsage: the request, the key or the account is wrong, trying again is no use; kTimeout: the
  // deadline; kUnavailable: no answer worth having within it; kInterrupted: asked to stop.
  virtual Result<Completion> Complete(const CompletionRequest& request,
                                      const CompletionEvents& events) = 0;
};

}  // namespace crucible
