#include "orchestrator/agents/llm/http_provider.h"

#include <fmt/format.h>

#include <algorithm>

namespace crucible {
namespace {

constexpr std::int64_t kDefaultDeadlineMs = 3'600'000;
constexpr std::int64_t kWaitSliceMs = 200;  // how soon a stop request is noticed
constexpr std::int64_t kBytesPerToken = 4;  // where a server tells no usage

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool SaysContextFull(int status, const WireError& error) {
  if (status == 413) return true;
  if (status != 400) return false;
  for (const std::string_view sign :
       {"context_length_exceeded", "prompt is too long", "maximum context length",
        "exceed_context_size", "exceeds the available context", "exceed context limit"})
    if (Contains(error.type, sign) || Contains(error.message, sign)) return true;
  return false;
}

// An error event inside a stream carries no status.
bool IsPassing(const WireError& error) {
  return !Contains(error.type, "invalid_request") && !Contains(error.type, "authentication") &&
         !Contains(error.type, "permission") && !Contains(error.type, "not_found") &&
         error.type != "insufficient_quota";
}

std::string Seconds(std::int64_t ms) {
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1e3);
}

}  // namespace

HttpProvider::HttpProvider(ModelSettings settings, ApiKey key, ProviderSeams seams)
    : settings_(std::move(settings)),
      key_(std::move(key)),
      base_url_(BaseUrl(settings_)),
      format_(settings_.kind == ProviderKind::kAnthropic ? AnthropicFormat() : OpenAiFormat()),
      seams_(std::move(seams)),
      dice_(seams_.seed) {
  // The author's own server refuses the old word for newer models; many others know only that one.
  dialect_.old_max_tokens = Origin(base_url_) != "https://api.openai.com";
}

tl::unexpected<Error> HttpProvider::Failure(ErrorKind kind, const std::string& cause,
                                            const std::string& next) const {
  return Fail(kind, "ask", settings_.name + " at " + Origin(base_url_), cause, next);
}

tl::unexpected<Error> HttpProvider::Late(int attempts, const std::string& cause) const {
  return Failure(ErrorKind::kTimeout,
                 fmt::format("no answer by the deadline in {} attempts; last: {}", attempts, cause),
                 "allow more time, or look at the provider's status");
}

Result<Completion> HttpProvider::Complete(const CompletionRequest& request,
                                          const CompletionEvents& events) {
  const std::int64_t deadline_ms =
      request.deadline_ms > 0 ? request.deadline_ms : seams_.clock->UnixMs() + kDefaultDeadlineMs;
  Completion total;
  total.attempts = 0;
  std::string cause = "the deadline had passed before the first attempt";
  for (int unusable = 0;;) {
    if (request.stop.stop_requested()) return Failure(ErrorKind::kInterrupted, "asked to stop", "");
    const std::int64_t left_ms = deadline_ms - seams_.clock->UnixMs();
    if (left_ms <= 0) return Late(total.attempts, cause);
    CRUCIBLE_ASSIGN(const std::string body,
                    format_.request(settings_.name, settings_.stream, dialect_, request));
    ++total.attempts;
    Attempt attempt = Try(body, request, left_ms, events, &total);
    cause = attempt.cause;
    switch (attempt.verdict) {
      case Verdict::kGood:
      case Verdict::kContextFull:
        Finish(std::move(attempt), request.messages.size(), &total);
        return total;
      case Verdict::kFatal:
        return Failure(ErrorKind::kUsage, cause, attempt.next);
      case Verdict::kStopped:
        return Failure(ErrorKind::kInterrupted, "asked to stop", "");
      case Verdict::kLate:
        return Late(total.attempts, cause);
      case Verdict::kAdapted:
        if (events.on_retry) events.on_retry(cause + ", asking in other words");
        continue;
      case Verdict::kUnusable:
        ++unusable;
        break;
      case Verdict::kAgain:
        break;
    }
    if (unusable >= seams_.retry.max_unusable || total.attempts >= seams_.retry.max_attempts)
      return Failure(ErrorKind::kUnavailable,
                     fmt::format("gave up after {} attempts; last: {}", total.attempts, cause),
                     "try later, or look at the provider's status");
    CRUCIBLE_TRY(WaitBefore(attempt, total.attempts, deadline_ms, request.stop, events));
  }
}

void HttpProvider::Finish(Attempt attempt, std::size_t conversation, Completion* total) const {
  total->message.role = Role::kAssistant;
  total->model = settings_.name;
  if (attempt.verdict == Verdict::kContextFull) {
    total->stop = StopReason::kContextFull;
    return;
  }
  total->message = TakeMessage(&attempt.reply, conversation);
  total->stop = *attempt.reply.stop;
  if (!attempt.reply.model.empty()) total->model = attempt.reply.model;
}

Result<> HttpProvider::WaitBefore(const Attempt& failed, int attempts, std::int64_t deadline_ms,
                                  const std::stop_token& stop, const CompletionEvents& events) {
  const double dice = std::uniform_real_distribution<double>(0, 1)(dice_);
  const std::int64_t wait_ms =
      failed.asked_wait_ms.value_or(BackoffMs(seams_.retry, attempts, dice));
  // A wait that the deadline would cut short ends in nothing: say so now.
  if (seams_.clock->UnixMs() + wait_ms >= deadline_ms)
    return Failure(ErrorKind::kTimeout,
                   fmt::format("the deadline comes before the next attempt, in {}; last: {}",
                               Seconds(wait_ms), failed.cause),
                   "allow more time, or look at the provider's status");
  if (events.on_retry) events.on_retry(failed.cause + ", waiting " + Seconds(wait_ms));
  for (std::int64_t left_ms = wait_ms; left_ms > 0 && !stop.stop_requested();) {
    const std::int64_t slice_ms = std::min(left_ms, kWaitSliceMs);
    seams_.clock->SleepFor(std::chrono::milliseconds(slice_ms));
    left_ms -= slice_ms;
  }
  return {};
}

HttpProvider::Attempt HttpProvider::Try(const std::string& body, const CompletionRequest& request,
                                        std::int64_t left_ms, const CompletionEvents& events,
                                        Completion* total) {
  HttpRequest http_request;
  http_request.url = format_.url(base_url_);
  http_request.headers = format_.headers(key_.Reveal());
  http_request.body = body;
  http_request.connect_timeout_ms = std::min(http_request.connect_timeout_ms, left_ms);
  http_request.idle_timeout_ms = settings_.stream ? settings_.idle_timeout_ms : 0;
  http_request.total_timeout_ms = std::min(settings_.attempt_timeout_ms, left_ms);
  http_request.stop = request.stop;

  WireReply reply;
  SseParser parser;
  Result<> read;
  const auto on_event = [&](const SseEvent& event) {
    if (!read || reply.whole || reply.error) return;
    std::string text;
    read = format_.read_event(event, &reply, &text);
    if (!text.empty() && events.on_text) events.on_text(text);
  };
  const auto on_body = [&](std::string_view bytes) {
    if (!settings_.stream) return true;
    if (auto fed = parser.Feed(bytes, on_event); !fed && read) read = std::move(fed);
    return read.has_value() && !reply.whole && !reply.error;
  };
  const HttpReply http = seams_.http->Send(http_request, on_body);
  const bool accepted = http.status / 100 == 2;
  // Some servers answer whole where they were asked for a stream.
  const bool came_whole = !settings_.stream || http.body.starts_with('{');
  if (accepted && came_whole && http.failure == HttpFailure::kNone)
    read = format_.read_body(http.body, &reply);
  if (accepted) Bill(body, http, &reply, events, total);
  // A stream that is whole is good, whatever became of the connection after it.
  if (accepted && read && (http.failure == HttpFailure::kNone || reply.whole)) {
    Attempt attempt = JudgeReply(http, read, std::move(reply));
    if (attempt.verdict == Verdict::kGood && came_whole && events.on_text)
      for (const auto& [index, part] : attempt.reply.parts)
        if (part.block.kind == Block::Kind::kText && !part.thinking && !part.block.text.empty())
          events.on_text(part.block.text);
    return attempt;
  }
  if (accepted && !read) return JudgeReply(http, read, std::move(reply));
  if (http.failure == HttpFailure::kNone) return JudgeRefusal(http);
  return JudgeFailure(http, left_ms <= settings_.attempt_timeout_ms);
}

void HttpProvider::Bill(const std::string& body, const HttpReply& http, WireReply* reply,
                        const CompletionEvents& events, Completion* total) const {
  std::optional<Usage> told = reply->usage;
  if (!told) told = FindUsage(http.body);
  Usage usage = told.value_or(Usage{});
  if (!told) {
    usage.input = static_cast<std::int64_t>(body.size()) / kBytesPerToken;
    usage.output = static_cast<std::int64_t>(http.body.size()) / kBytesPerToken;
    total->usage_known = false;
  } else if (settings_.stream && !reply->whole) {
    // Broken off before the last word on its output, of which at least this much came.
    std::size_t bytes = 0;
    for (const auto& [index, part] : reply->parts)
      bytes += part.block.text.size() + part.block.arguments.size();
    const auto output = static_cast<std::int64_t>(bytes) / kBytesPerToken;
    if (output > usage.output) {
      usage.output = output;
      total->usage_known = false;
    }
  }
  const double usd = PriceUsd(settings_.prices, usage);
  total->usage += usage;
  total->usd += usd;
  if (events.on_billed) events.on_billed(usage, usd);
}

HttpProvider::Attempt HttpProvider::JudgeReply(const HttpReply& http, const Result<>& read,
                                               WireReply reply) const {
  Attempt attempt;
  if (!read) {
    attempt.verdict = Verdict::kUnusable;
    attempt.cause = "malformed reply: " + key_.Scrub(read.error().text);
  } else if (reply.error) {
    attempt.cause =
        key_.Scrub("the reply is an error, " + reply.error->type + ": " + reply.error->message);
    if (IsPassing(*reply.error)) {
      attempt.verdict = Verdict::kAgain;
      attempt.asked_wait_ms = AskedWaitMs(seams_.retry, http.headers, seams_.clock->UnixMs());
    } else {
      attempt.verdict = Verdict::kFatal;
    }
  } else if (!reply.stop) {
    attempt.verdict = Verdict::kUnusable;
    attempt.cause = "the stream broke off before the reply was whole";
  } else {
    attempt.reply = std::move(reply);
  }
  return attempt;
}

bool HttpProvider::Adapt(const WireError& error) {
  if (settings_.kind != ProviderKind::kOpenAi) return false;
  if (dialect_.stream_options && settings_.stream && Contains(error.message, "stream_options")) {
    dialect_.stream_options = false;
    return true;
  }
  const bool about_limit =
      Contains(error.message, "max_tokens") || Contains(error.message, "max_completion_tokens");
  if (!about_limit || adapted_max_tokens_) return false;
  adapted_max_tokens_ = true;
  dialect_.old_max_tokens = !dialect_.old_max_tokens;
  return true;
}

HttpProvider::Attempt HttpProvider::JudgeRefusal(const HttpReply& http) {
  const WireError error = ReadWireError(http.body);
  Attempt attempt;
  attempt.cause = std::to_string(http.status);
  if (!error.type.empty()) attempt.cause += " " + key_.Scrub(error.type);
  const bool about_key = http.status == 401 || http.status == 403;
  // Such a message may show a part of the key.
  if (!about_key && !error.message.empty()) attempt.cause += ": " + key_.Scrub(error.message);

  if (SaysContextFull(http.status, error)) {
    attempt.verdict = Verdict::kContextFull;
  } else if (http.status == 429 && error.type == "insufficient_quota") {
    attempt.verdict = Verdict::kFatal;
    attempt.next = "add credit to the account, or choose another model";
  } else if (IsRetryable(http.status)) {
    attempt.verdict = Verdict::kAgain;
    attempt.asked_wait_ms = AskedWaitMs(seams_.retry, http.headers, seams_.clock->UnixMs());
  } else if (http.status == 400 && Adapt(error)) {
    attempt.verdict = Verdict::kAdapted;
  } else {
    attempt.verdict = Verdict::kFatal;
    if (about_key) attempt.next = "check " + KeyVariable(settings_);
    if (http.status == 402) attempt.next = "add credit to the account, or choose another model";
    if (http.status == 404 || http.status / 100 == 3)
      attempt.next =
          "check the model's name and " + AddressVariable(settings_) + " with `crucible doctor`";
  }
  return attempt;
}

HttpProvider::Attempt HttpProvider::JudgeFailure(const HttpReply& http, bool by_deadline) const {
  Attempt attempt;
  attempt.cause = key_.Scrub(http.cause);
  switch (http.failure) {
    case HttpFailure::kUrl:
      attempt.verdict = Verdict::kFatal;
      attempt.next =
          "correct " + AddressVariable(settings_) + ": it begins with https:// or http://";
      break;
    case HttpFailure::kStopped:
      attempt.verdict = Verdict::kStopped;
      break;
    case HttpFailure::kTimeout:
      attempt.verdict = by_deadline ? Verdict::kLate : Verdict::kUnusable;
      break;
    case HttpFailure::kTls:
      attempt.verdict = Verdict::kFatal;
      attempt.next =
          "check " + AddressVariable(settings_) + ", the certificates installed here and the clock";
      break;
    default:
      attempt.verdict = http.status == 0 ? Verdict::kAgain : Verdict::kUnusable;
      break;
  }
  return attempt;
}

}  // namespace crucible
