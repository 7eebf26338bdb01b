#include "orchestrator/agents/llm/probe.h"

#include <algorithm>
#include <vector>

#include "orchestrator/agents/llm/make_provider.h"
#include "orchestrator/agents/llm/wire.h"
#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

using State = EndpointReport::State;

EndpointReport JudgeSilence(const HttpReply& reply, const std::string& origin,
                            const std::string& variable) {
  EndpointReport report{State::kUnusable, origin + ": " + reply.cause, ""};
  switch (reply.failure) {
    case HttpFailure::kDns:
      report.next = "check the host's name in " + variable + ", and this machine's name service";
      break;
    case HttpFailure::kRefused:
      report.next = "start the server, or correct host and port in " + variable;
      break;
    case HttpFailure::kTls:
      report.next = "check " + variable + ", the certificates installed here and the clock";
      break;
    case HttpFailure::kTimeout:
    case HttpFailure::kIdle:
      report.next = "check the network and a proxy (https_proxy), or whether the server is stuck";
      break;
    case HttpFailure::kUrl:
      report.next = "correct " + variable + ": it begins with https:// or http://";
      break;
    default:
      report.next = "check whether " + variable + " names a server of that kind";
      break;
  }
  return report;
}

EndpointReport JudgeStatus(const HttpReply& reply, const std::string& origin,
                           const ModelSettings& settings, const ApiKey& key) {
  const WireError error = ReadWireError(reply.body);
  EndpointReport report{State::kUnusable, origin + " answers " + std::to_string(reply.status), ""};
  if (reply.status == 401 || reply.status == 403) {
    report.next = key.empty() ? "it wants a key: set " + KeyVariable(settings)
                              : "it refuses the key: check " + KeyVariable(settings);
    return report;  // such a message may show a part of the key
  }
  if (!error.message.empty()) report.found += ": " + key.Scrub(error.message.substr(0, 120));
  if (reply.status == 404) {
    report.state = State::kUnsure;
    report.next = "it lists no models, so the model's name was not checked; where " +
                  AddressVariable(settings) + " is wrong, the first request will say so";
  } else if (reply.status == 429 || reply.status >= 500) {
    report.state = State::kUnsure;
    report.next = "it is busy or failing: try again later";
  } else if (reply.status / 100 == 3) {
    report.next = "it points to another address: correct " + AddressVariable(settings);
  } else {
    report.next = "check " + AddressVariable(settings) + " and the provider";
  }
  return report;
}

EndpointReport JudgeModels(const HttpReply& reply, const std::string& origin,
                           const ModelSettings& settings) {
  const Json list = ParseJson(reply.body);
  const Json& data = Member(list, "data");
  if (!data.is_array())
    return {State::kUnsure, origin + " answers, but lists no models",
            "the model's name was not checked; check " + AddressVariable(settings) +
                " and the provider"};
  std::vector<std::string> names;
  for (const Json& item : data) names.push_back(StringOf(item, "id"));
  if (std::find(names.begin(), names.end(), settings.name) != names.end())
    return {State::kReady, origin + " answers and has " + settings.name, ""};
  std::string offered;
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i)
    offered += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) offered += ", ...";
  // A list may be cut into pages or leave out other names for a model: not proof.
  const bool cut = Member(list, "has_more") == Json(true);
  return {cut ? State::kUnsure : State::kUnusable,
          origin + " answers, but does not list " + settings.name,
          names.empty() ? "it has no model: load one" : "name one of its models: " + offered};
}

}  // namespace

EndpointReport ProbeEndpoint(const ModelSettings& settings, HttpClient& http,
                             std::int64_t timeout_ms) {
  const auto key = KeyFor(settings);
  if (!key) return {State::kUnusable, key.error().text, "set the key"};
  const std::string base_url = BaseUrl(settings);
  const WireFormat& format =
      settings.kind == ProviderKind::kAnthropic ? AnthropicFormat() : OpenAiFormat();
  HttpRequest request;
  request.method = "GET";
  request.url = format.models_url(base_url);
  if (settings.kind == ProviderKind::kAnthropic) request.url += "?limit=1000";
  request.headers = format.headers(key->Reveal());
  request.connect_timeout_ms = request.total_timeout_ms = timeout_ms;
  const HttpReply reply = http.Send(request, {});
  const std::string origin = Origin(base_url);
  EndpointReport report = reply.failure != HttpFailure::kNone
                              ? JudgeSilence(reply, origin, AddressVariable(settings))
                          : reply.status != 200 ? JudgeStatus(reply, origin, settings, *key)
                                                : JudgeModels(reply, origin, settings);
  if (report.state == State::kReady && !key->empty() && base_url.starts_with("http://") &&
      !IsLoopback(base_url)) {
    report.state = State::kUnsure;
    report.found += "; the key travels unencrypted";
    report.next = "use https";
  }
  return report;
}

EndpointReport ProbeEndpoint(const ModelSettings& settings) {
  return ProbeEndpoint(settings, *MakeCurlHttp());
}

}  // namespace crucible
