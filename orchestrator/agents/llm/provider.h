// provider.h: one model behind one wire format: a request in, a whole reply out.
//
// A provider owns every retry (nobody above it retries a request), under the request's outer
// deadline. It is used from one thread at a time. No error text, log line or transcript ever holds
// the key.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  std::int64_t deadline_ms = 0;    // Unix ms: the end of all attempts together
};

struct Completion {
  Message message;                 // of the assistant
  StopReason stop = StopReason::kEnd;
  Usage usage;                     // summed over every attempt that was billed
  double usd = 0;                  // by the price table; 0 when the model has no price
  bool usage_known = true;         // false: the server sent none
  int attempts = 1;
  std::string model;
};

// Called with pieces of text as they stream in, and with a word on each retry ("429, waiting 2 s").
struct CompletionEvents {
  std::function<void(const std::string& text)> on_text;
  std::function<void(const std::string& what)> on_retry;
  std::function<void(const Usage& usage, double usd)> on_billed;  // also for a reply that was unusable
};

class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string model() const = 0;
  // kUsage: the request or the key is wrong, trying again is no use; kTimeout: the deadline;
  // kUnavailable: no answer worth having within it.
  virtual Result<Completion> Complete(const CompletionRequest& request,
                                      const CompletionEvents& events) = 0;
};

}  // namespace crucible
