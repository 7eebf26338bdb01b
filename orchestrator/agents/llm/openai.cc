// The OpenAI Chat Completions format, as its author and as local servers speak it.
#include <algorithm>

#include "orchestrator/agents/llm/wire.h"
#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

// Text comes first; tool calls follow by their own index.
constexpr int kTextIndex = 0;
constexpr int kFirstCallIndex = 1;
constexpr int kMaxCalls = 1000;

// A base without a path gets /v1, which people leave out and servers insist on.
std::string Root(std::string base_url) {
  while (base_url.ends_with('/')) base_url.pop_back();
  const std::size_t scheme = base_url.find("://");
  if (scheme != std::string::npos && base_url.find('/', scheme + 3) == std::string::npos)
    base_url += "/v1";
  return base_url;
}

std::string Url(const std::string& base_url) { return Root(base_url) + "/chat/completions"; }
std::string ModelsUrl(const std::string& base_url) { return Root(base_url) + "/models"; }

std::vector<std::string> Headers(const std::string& key) {
  std::vector<std::string> headers = {"content-type: application/json"};
  if (!key.empty()) headers.push_back("authorization: Bearer " + key);
  return headers;
}

void AppendAssistant(const Message& message, Json* messages) {
  std::string text;
  Json calls = Json::array();
  for (const Block& block : message.blocks) {
    if (block.kind == Block::Kind::kText) text += block.text;
    if (block.kind != Block::Kind::kToolCall) continue;
    calls.push_back(
        {{"id", block.id},
         {"type", "function"},
         {"function",
          {{"name", block.name}, {"arguments", Dump(ArgumentsObject(block.arguments))}}}});
  }
  if (text.empty() && calls.empty()) return;
  Json item = {{"role", "assistant"}};
  item["content"] = text.empty() ? Json() : Json(text);
  if (!calls.empty()) item["tool_calls"] = std::move(calls);
  messages->push_back(std::move(item));
}

void AppendUser(const Message& message, Json* messages) {
  std::string text;
  for (const Block& block : message.blocks) {
    if (block.kind == Block::Kind::kToolResult)  // the format has no field for a failed call
      messages->push_back({{"role", "tool"},
                           {"tool_call_id", block.id},
                           {"content", (block.is_error ? "[error] " : "") + block.text}});
    else if (block.kind == Block::Kind::kText && !block.text.empty())
      text += (text.empty() ? "" : "\n\n") + block.text;
  }
  if (!text.empty()) messages->push_back({{"role", "user"}, {"content", text}});
}

Result<std::string> Request(const std::string& model, bool stream, const WireDialect& dialect,
                            const CompletionRequest& request) {
  Json body = {{"model", model}};
  body[dialect.old_max_tokens ? "max_tokens" : "max_completion_tokens"] = request.max_tokens;
  if (stream) {
    body["stream"] = true;
    if (dialect.stream_options) body["stream_options"] = {{"include_usage", true}};
  }
  for (const ToolDescription& tool : request.tools) {
    Json schema = ParseJson(tool.schema);
    if (!schema.is_object())
      return Fail(ErrorKind::kUsage, "describe tool", tool.name, "its schema is no JSON object",
                  "correct the tool's description");
    body["tools"].push_back({{"type", "function"},
                             {"function",
                              {{"name", tool.name},
                               {"description", tool.description},
                               {"parameters", std::move(schema)}}}});
  }
  Json messages = Json::array();
  if (!request.system.empty())
    messages.push_back({{"role", "system"}, {"content", request.system}});
  for (const Message& message : request.messages) {
    if (message.role == Role::kUser)
      AppendUser(message, &messages);
    else
      AppendAssistant(message, &messages);
  }
  body["messages"] = std::move(messages);
  return Dump(body);
}

std::optional<StopReason> StopOf(const std::string& word) {
  if (word == "stop" || word == "eos" || word == "end_turn") return StopReason::kEnd;
  if (word == "tool_calls" || word == "function_call") return StopReason::kToolUse;
  if (word == "length") return StopReason::kMaxTokens;
  if (word == "content_filter") return StopReason::kRefused;
  return std::nullopt;
}

tl::unexpected<Error> Malformed(const std::string& cause) {
  return Fail(ErrorKind::kInternal, "read", "the model's reply", cause);
}

// Words, or a list of parts with words.
std::string TextOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (content.is_array())
    for (const Json& part : content) text += StringOf(part, "text");
  return text;
}

// Which part a piece of a tool call belongs to. Some servers give every call index 0 or none: a new
// id then begins a new call.
int PartOf(const Json& call, const WireReply& reply) {
  const int last =
      reply.parts.empty() ? kTextIndex : std::max(kTextIndex, reply.parts.rbegin()->first);
  const std::string id = StringOf(call, "id");
  const auto index = CountOf(call, "index");
  int at = index && *index < kMaxCalls ? kFirstCallIndex + static_cast<int>(*index) : last;
  if (!index && (last == kTextIndex || !id.empty())) at = last + 1;
  const auto it = reply.parts.find(at);
  if (it != reply.parts.end() && !id.empty() && !it->second.block.id.empty() &&
      it->second.block.id != id)
    at = last + 1;
  return at;
}

Result<> ReadCall(const Json& call, WireReply* reply) {
  const int at = PartOf(call, *reply);
  if (at >= kFirstCallIndex + kMaxCalls) return Malformed("it has too many tool calls");
  Block& block = reply->parts[at].block;
  block.kind = Block::Kind::kToolCall;
  if (block.id.empty()) block.id = StringOf(call, "id");
  const Json& function = Member(call, "function");
  // Sent once, in pieces, or again with every piece.
  const std::string name = StringOf(function, "name");
  if (block.name != name) block.name += name;
  const Json& arguments = Member(function, "arguments");
  if (arguments.is_string()) block.arguments += arguments.get<std::string>();
  if (arguments.is_object()) block.arguments = Dump(arguments);
  return {};
}

// `message` of a body or `delta` of a stream.
Result<> ReadMessage(const Json& message, WireReply* reply, std::string* text) {
  const std::string piece = TextOf(Member(message, "content"));
  const std::string refusal = StringOf(message, "refusal");
  if (!piece.empty() || !refusal.empty()) {
    reply->parts[kTextIndex].block.text += piece + refusal;
    *text += piece + refusal;
  }
  if (!refusal.empty()) reply->stop = StopReason::kRefused;
  const Json& calls = Member(message, "tool_calls");
  if (calls.is_array())
    for (const Json& call : calls) CRUCIBLE_TRY(ReadCall(call, reply));
  return {};
}

Result<> ReadChunk(const Json& chunk, WireReply* reply, std::string* text) {
  Usage usage;
  if (ReadUsage(Member(chunk, "usage"), &usage)) reply->usage = usage;
  if (const std::string model = StringOf(chunk, "model"); !model.empty()) reply->model = model;
  const Json& choices = Member(chunk, "choices");
  if (!choices.is_array() || choices.empty()) return {};
  const Json& choice = choices.front();
  CRUCIBLE_TRY(
      ReadMessage(Member(choice, choice.contains("message") ? "message" : "delta"), reply, text));
  if (const auto stop = StopOf(StringOf(choice, "finish_reason")))
    if (reply->stop != StopReason::kRefused) reply->stop = stop;
  return {};
}

Result<> ReadBody(const std::string& body, WireReply* reply) {
  const Json parsed = ParseJson(body);
  if (!parsed.is_object()) return Malformed("it is no JSON object");
  if (!Member(parsed, "error").is_null()) {  // gateways send errors with status 200
    reply->error = ReadWireError(body);
    return {};
  }
  std::string ignored;
  CRUCIBLE_TRY(ReadChunk(parsed, reply, &ignored));
  const Json& choices = Member(parsed, "choices");
  if (!choices.is_array() || choices.empty()) return Malformed("it has no choices");
  if (!reply->stop) return Malformed("it has no finish_reason that is known");
  reply->whole = true;
  return {};
}

Result<> ReadEvent(const SseEvent& event, WireReply* reply, std::string* text) {
  if (event.data == "[DONE]") {
    if (!reply->stop) return Malformed("the stream ended without a finish_reason that is known");
    reply->whole = true;
    return {};
  }
  const Json data = ParseJson(event.data);
  if (!data.is_object()) return Malformed("an event of the stream is no JSON object");
  if (!Member(data, "error").is_null() || event.name == "error") {
    reply->error = ReadWireError(event.data);
    return {};
  }
  return ReadChunk(data, reply, text);
}

}  // namespace

const WireFormat& OpenAiFormat() {
  static const WireFormat format{Url, ModelsUrl, Headers, Request, ReadBody, ReadEvent};
  return format;
}

}  // namespace crucible
