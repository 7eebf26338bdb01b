// http_provider.h: asks one model over HTTP, again and again where that helps. Private to this
// folder.
//
// Complete is a loop of attempts; each attempt is judged to be good, worth another, or fatal. Three
// bounds hold over the loop: attempts, replies that were paid for but unusable, and the deadline.
// What an attempt cost is counted before anything is made of its reply.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "orchestrator/agents/llm/make_provider.h"
#include "orchestrator/agents/llm/wire.h"

namespace crucible {

class HttpProvider final : public Provider {
 public:
  HttpProvider(ModelSettings settings, ApiKey key, ProviderSeams seams);

  std::string model() const override { return settings_.name; }
  Result<Completion> Complete(const CompletionRequest& request,
                              const CompletionEvents& events) override;

 private:
  enum class Verdict {
    kGood,
    kContextFull,
    kAgain,     // after a wait: the server was busy or away
    kUnusable,  // after a wait: a reply that broke off or made no sense
    kAdapted,   // at once: the server refused a parameter, which is now spelt otherwise
    kFatal,
    kStopped,
    kLate,  // the deadline ran out meanwhile
  };
  struct Attempt {
    Verdict verdict = Verdict::kGood;
    std::string cause;  // scrubbed
    std::string next;   // what a person does about it
    std::optional<std::int64_t> asked_wait_ms;
    WireReply reply;
  };

  Attempt Try(const std::string& body, const CompletionRequest& request, std::int64_t left_ms,
              const CompletionEvents& events, Completion* total);
  void Bill(const std::string& body, const HttpReply& http, WireReply* reply,
            const CompletionEvents& events, Completion* total) const;
  Attempt JudgeReply(const HttpReply& http, const Result<>& read, WireReply reply) const;
  Attempt JudgeRefusal(const HttpReply& http);
  Attempt JudgeFailure(const HttpReply& http, bool by_deadline) const;
  bool Adapt(const WireError& error);
  void Finish(Attempt attempt, std::size_t conversation, Completion* total) const;
  // Returns early when asked to stop; kTimeout where the deadline comes first.
  Result<> WaitBefore(const Attempt& failed, int attempts, std::int64_t deadline_ms,
                      const std::stop_token& stop, const CompletionEvents& events);
  tl::unexpected<Error> Late(int attempts, const std::string& cause) const;
  tl::unexpected<Error> Failure(ErrorKind kind, const std::string& cause,
                                const std::string& next) const;

  const ModelSettings settings_;
  const ApiKey key_;
  const std::string base_url_;
  const WireFormat& format_;
  ProviderSeams seams_;
  std::mt19937_64 dice_;
  WireDialect dialect_;
  bool adapted_max_tokens_ = false;
};

}  // namespace crucible
