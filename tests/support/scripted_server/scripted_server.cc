#include "tests/support/scripted_server/scripted_server.h"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "orchestrator/agents/llm/wire_json.h"
#include "tests/support/scripted_server/script.h"
#include "tests/support/scripted_server/speak.h"

namespace crucible {
namespace {

constexpr int kThreads = 32;                      // a reply that hangs holds one
constexpr std::chrono::seconds kLongestHang{60};  // for a client that never leaves

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string Joined(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += event;
  return text;
}

std::vector<std::string> Cut(const std::string& text, std::size_t size) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size(); at += size) pieces.push_back(text.substr(at, size));
  return pieces;
}

// How a reply leaves the server.
struct Delivery {
  std::vector<std::string> pieces;
  bool drops = false;  // the connection breaks after the pieces
  bool hangs = false;  // nothing comes after the pieces
};

}  // namespace

struct ScriptedServer::Impl {
  explicit Impl(Scenario scenario) : script(std::move(scenario)) {}

  Script script;
  httplib::Server server;
  std::thread thread;
  int port = 0;
  mutable std::mutex mutex;
  std::condition_variable ended;
  bool ending = false;
  std::atomic<bool> over = false;  // the thread is about to end
  std::vector<RecordedRequest> recorded;

  void Record(const httplib::Request& request, const std::string& step);
  // Until the server ends, the client leaves or it has been long enough.
  void Hang(const std::function<bool()>& client_is_there);
  bool KeyIsRight(const httplib::Request& request, bool anthropic) const;
  void Answer(const httplib::Request& request, httplib::Response& response, bool anthropic);
  void AnswerTurn(const Asked& asked, const Script::Due& due, httplib::Response& response);
  void AnswerFault(const Asked& asked, const Script::Due& due, const std::string& key,
                   httplib::Response& response);
  void Deliver(bool stream, Delivery delivery, httplib::Response& response);
  void ListModels(const httplib::Request& request, httplib::Response& response);
  void ShowRequests(httplib::Response& response) const;
};

void ScriptedServer::Impl::Record(const httplib::Request& request, const std::string& step) {
  RecordedRequest record{request.method, request.path, request.body, {}, step};
  for (const auto& [name, value] : request.headers) record.headers[Lower(name)] = value;
  const std::lock_guard lock(mutex);
  recorded.push_back(std::move(record));
}

void ScriptedServer::Impl::Hang(const std::function<bool()>& client_is_there) {
  const auto limit = std::chrono::steady_clock::now() + kLongestHang;
  std::unique_lock lock(mutex);
  while (!ending && std::chrono::steady_clock::now() < limit && client_is_there())
    ended.wait_for(lock, std::chrono::milliseconds(20));
}

namespace {

std::string KeyOf(const httplib::Request& request, bool anthropic) {
  if (anthropic) return request.get_header_value("x-api-key");
  const std::string header = request.get_header_value("authorization");
  constexpr std::string_view kBearer = "Bearer ";
  return header.starts_with(kBearer) ? header.substr(kBearer.size()) : "";
}

void Refuse(httplib::Response& response, bool anthropic, int status, const std::string& type,
            const std::string& message) {
  response.status = status;
  response.set_content(ErrorBody(anthropic, type, message), "application/json");
}

Spoken Say(const Asked& asked, const Script::Due& due) {
  Spoken spoken;
  spoken.id = due.id;
  spoken.model = asked.model;
  spoken.text = due.step.text;
  spoken.stop = due.step.stop;
  spoken.calls = due.step.calls;
  spoken.malformed_arguments = due.step.malformed_arguments;
  if (!due.step.tells_usage) return spoken;
  std::size_t bytes = spoken.text.size();
  for (const ScriptStep::Call& call : spoken.calls) bytes += call.arguments.size();
  spoken.usage = due.step.usage.value_or(Usage{static_cast<std::int64_t>(asked.bytes / 4),
                                               static_cast<std::int64_t>(bytes / 4 + 1), 0, 0});
  return spoken;
}

}  // namespace

bool ScriptedServer::Impl::KeyIsRight(const httplib::Request& request, bool anthropic) const {
  const std::string& required = script.scenario().require_key;
  return required.empty() || KeyOf(request, anthropic) == required;
}

void ScriptedServer::Impl::Deliver(bool stream, Delivery delivery, httplib::Response& response) {
  const std::size_t cut = script.scenario().piece_bytes;
  if (cut > 0) delivery.pieces = Cut(Joined(delivery.pieces), cut);
  const auto send = [this, delivery](httplib::DataSink& sink) {
    for (const std::string& piece : delivery.pieces)
      if (!sink.write(piece.data(), piece.size())) return false;
    if (delivery.hangs) Hang([&] { return sink.is_writable(); });
    return !delivery.hangs && !delivery.drops;
  };
  if (stream) {
    response.set_chunked_content_provider("text/event-stream",
                                          [send](std::size_t, httplib::DataSink& sink) {
                                            if (!send(sink)) return false;
                                            sink.done();
                                            return true;
                                          });
    return;
  }
  // A length that is larger than what comes, where the reply is to break off.
  const std::size_t length =
      Joined(delivery.pieces).size() + (delivery.hangs || delivery.drops ? 100 : 0);
  response.set_content_provider(
      length, "application/json",
      [send](std::size_t, std::size_t, httplib::DataSink& sink) { return send(sink); });
}

void ScriptedServer::Impl::AnswerTurn(const Asked& asked, const Script::Due& due,
                                      httplib::Response& response) {
  const Spoken spoken = Say(asked, due);
  const Scenario& scenario = script.scenario();
  if (!asked.stream || scenario.HasQuirk("no_stream")) {
    response.set_content(asked.anthropic ? AnthropicBody(spoken) : OpenAiBody(spoken, scenario),
                         "application/json");
    return;
  }
  Deliver(true,
          {asked.anthropic ? AnthropicEvents(spoken, scenario) : OpenAiEvents(spoken, scenario)},
          response);
}

void ScriptedServer::Impl::AnswerFault(const Asked& asked, const Script::Due& due,
                                       const std::string& key, httplib::Response& response) {
  const ScriptStep& step = due.step;
  const std::string& fault = step.fault;
  for (const auto& [name, value] : step.headers) response.set_header(name, value);
  std::string message = step.message.empty() ? "scripted" : step.message;
  if (const std::size_t at = message.find("${key}"); at != std::string::npos)
    message.replace(at, 6, key);
  if (fault == "status") {
    std::string type = step.error_type;
    if (type.empty()) type = step.status == 529 ? "overloaded_error" : "scripted_error";
    return Refuse(response, asked.anthropic, step.status, type, message);
  }
  if (fault == "insufficient_quota")
    return Refuse(response, asked.anthropic, 429, "insufficient_quota", "no quota is left");
  if (fault == "context_full")
    return asked.anthropic
               ? Refuse(response, true, 400, "invalid_request_error", "prompt is too long: 9 > 8")
               : Refuse(response, false, 400, "context_length_exceeded", "too many tokens");
  if (fault == "not_json") return response.set_content("<html>not a model</html>", "text/html");
  if (fault == "silent") return Hang([] { return true; });

  // The rest break a reply that began well.
  const Spoken spoken = [&] {
    Script::Due words = due;
    words.step.text = "These words are never finished, because the reply breaks off.";
    words.step.tells_usage = true;
    words.step.usage = Usage{100, 50, 0, 0};
    return Say(asked, words);
  }();
  const Scenario& scenario = script.scenario();
  std::vector<std::string> events =
      asked.anthropic ? AnthropicEvents(spoken, scenario) : OpenAiEvents(spoken, scenario);
  const std::string body = asked.anthropic ? AnthropicBody(spoken) : OpenAiBody(spoken, scenario);
  if (fault == "empty") return response.set_content("", "application/json");
  if (fault == "cut_json") {
    if (!asked.stream)
      return response.set_content(body.substr(0, body.size() - 1), "application/json");
    events[events.size() / 2] = "data: {\"cut\": \n\n";
    return Deliver(true, {events}, response);
  }
  events.resize(events.size() / 2);
  if (fault == "error_event") {
    if (!asked.stream) return Refuse(response, asked.anthropic, 529, "overloaded_error", message);
    const std::string type = step.error_type.empty() ? "overloaded_error" : step.error_type;
    events.push_back("event: error\ndata: " + ErrorBody(asked.anthropic, type, message) + "\n\n");
    return Deliver(true, {events}, response);
  }
  Delivery delivery{events, fault == "drop", fault == "hang"};
  if (!asked.stream) delivery.pieces = {body.substr(0, body.size() / 2)};
  Deliver(asked.stream, delivery, response);
}

void ScriptedServer::Impl::Answer(const httplib::Request& request, httplib::Response& response,
                                  bool anthropic) {
  const Scenario& scenario = script.scenario();
  const auto refuse = [&](int status, const std::string& type, const std::string& message) {
    Record(request, message);
    Refuse(response, anthropic, status, type, message);
  };
  if (!KeyIsRight(request, anthropic))
    return refuse(401, "authentication_error",
                  "invalid key " + KeyOf(request, anthropic).substr(0, 12) + "...");
  const auto asked = ReadAsked(anthropic, request.body);
  if (!asked) return refuse(400, "invalid_request_error", asked.error().text);
  const auto& models = scenario.models;
  if (!models.empty() && std::find(models.begin(), models.end(), asked->model) == models.end())
    return refuse(404, "not_found_error", "model: " + asked->model);
  for (const std::string& parameter : asked->parameters)
    if (std::find(scenario.reject.begin(), scenario.reject.end(), parameter) !=
        scenario.reject.end())
      return refuse(400, "invalid_request_error", "Unsupported parameter: '" + parameter + "'");
  const auto due = script.Next(*asked);
  if (!due) return refuse(400, "scenario_error", due.error().text);
  Record(request, due->id);
  if (due->step.fault.empty())
    AnswerTurn(*asked, *due, response);
  else
    AnswerFault(*asked, *due, KeyOf(request, anthropic), response);
}

void ScriptedServer::Impl::ListModels(const httplib::Request& request,
                                      httplib::Response& response) {
  const bool anthropic = request.has_header("anthropic-version");
  if (script.scenario().HasQuirk("no_models"))
    return Refuse(response, anthropic, 404, "not_found_error", "no such path");
  if (!KeyIsRight(request, anthropic))
    return Refuse(response, anthropic, 401, "authentication_error", "invalid key");
  Json list = {{"data", Json::array()}};
  for (const std::string& model : script.scenario().models) list["data"].push_back({{"id", model}});
  response.set_content(Dump(list), "application/json");
}

void ScriptedServer::Impl::ShowRequests(httplib::Response& response) const {
  const std::lock_guard lock(mutex);
  Json list = Json::array();
  for (const RecordedRequest& record : recorded) {
    Json body = ParseJson(record.body);
    if (body.is_discarded()) body = record.body;
    list.push_back({{"method", record.method},
                    {"path", record.path},
                    {"headers", record.headers},
                    {"body", std::move(body)},
                    {"step", record.step}});
  }
  response.set_content(Dump({{"requests", std::move(list)}}), "application/json");
}

ScriptedServer::ScriptedServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<ScriptedServer>> ScriptedServer::Start(const std::string& scenario_json,
                                                              int port) {
  CRUCIBLE_ASSIGN(Scenario scenario, ParseScenario(scenario_json));
  return Start(std::move(scenario), port);
}

Result<std::unique_ptr<ScriptedServer>> ScriptedServer::Start(Scenario scenario, int port) {
  auto impl = std::make_unique<Impl>(std::move(scenario));
  Impl* self = impl.get();
  self->server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  self->server.set_tcp_nodelay(true);
  self->server.set_keep_alive_timeout(1);
  self->server.Post("/v1/messages", [self](const auto& request, auto& response) {
    self->Answer(request, response, true);
  });
  self->server.Post("/v1/chat/completions", [self](const auto& request, auto& response) {
    self->Answer(request, response, false);
  });
  self->server.Get("/v1/models", [self](const auto& request, auto& response) {
    self->Record(request, "models");
    self->ListModels(request, response);
  });
  self->server.Get("/requests",
                   [self](const auto&, auto& response) { self->ShowRequests(response); });
  if (port == 0)
    port = self->server.bind_to_any_port("127.0.0.1");
  else if (!self->server.bind_to_port("127.0.0.1", port))
    port = -1;
  if (port < 0)
    return Fail(ErrorKind::kIo, "listen on", "127.0.0.1", "the port is taken", "use port 0");
  self->port = port;
  self->thread = std::thread([self] {
    self->server.listen_after_bind();
    self->over = true;
  });
  return std::unique_ptr<ScriptedServer>(new ScriptedServer(std::move(impl)));
}

ScriptedServer::~ScriptedServer() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->ended.notify_all();
  // stop() does nothing before the thread has begun to listen.
  while (!impl_->server.is_running() && !impl_->over) std::this_thread::yield();
  impl_->server.stop();
  impl_->thread.join();
}

int ScriptedServer::port() const { return impl_->port; }

std::string ScriptedServer::base_url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port);
}

std::vector<RecordedRequest> ScriptedServer::requests() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->recorded;
}

}  // namespace crucible
