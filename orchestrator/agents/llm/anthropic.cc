// The Anthropic Messages format, version 2023-06-01.
#include <algorithm>

#include "orchestrator/agents/llm/wire.h"
#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

const Json kCacheMark = {{"type", "ephemeral"}};

std::string Root(std::string base_url) {
  while (base_url.ends_with('/')) base_url.pop_back();
  if (base_url.ends_with("/v1")) base_url.resize(base_url.size() - 3);
  return base_url;
}

std::string Url(const std::string& base_url) { return Root(base_url) + "/v1/messages"; }
std::string ModelsUrl(const std::string& base_url) { return Root(base_url) + "/v1/models"; }

std::vector<std::string> Headers(const std::string& key) {
  std::vector<std::string> headers = {"content-type: application/json",
                                      "anthropic-version: 2023-06-01"};
  if (!key.empty()) headers.push_back("x-api-key: " + key);
  return headers;
}

Json BlockJson(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kText:
      return {{"type", "text"}, {"text", block.text}};
    case Block::Kind::kToolCall:
      return {{"type", "tool_use"},
              {"id", block.id},
              {"name", block.name},
              {"input", ArgumentsObject(block.arguments)}};
    case Block::Kind::kToolResult:
      return {{"type", "tool_result"},
              {"tool_use_id", block.id},
              {"content", block.text},
              {"is_error", block.is_error}};
    case Block::Kind::kOpaque:
      break;
  }
  return ParseJson(block.text);
}

Json Content(const Message& message) {
  Json content = Json::array();
  // Tool results have to stand before any text of the same message.
  for (const bool results : {true, false})
    for (const Block& block : message.blocks) {
      if ((block.kind == Block::Kind::kToolResult) != results) continue;
      if (block.kind == Block::Kind::kText && block.text.empty()) continue;
      Json item = BlockJson(block);
      if (item.is_object()) content.push_back(std::move(item));
    }
  return content;
}

// The last block of a message that may carry a mark, which thinking may not.
void MarkMessage(Json* message) {
  Json& content = (*message)["content"];
  for (auto it = content.rbegin(); it != content.rend(); ++it) {
    const std::string type = StringOf(*it, "type");
    if (type != "text" && type != "tool_result" && type != "tool_use") continue;
    (*it)["cache_control"] = kCacheMark;
    return;
  }
}

// Four marks at most: tools, system, and the last two user messages, so that this request reads
// what the one before it wrote and writes what the next one will read.
void MarkForCache(Json* body) {
  if (body->contains("tools")) (*body)["tools"].back()["cache_control"] = kCacheMark;
  if (body->contains("system")) (*body)["system"].back()["cache_control"] = kCacheMark;
  int left = 2;
  Json& messages = (*body)["messages"];
  for (auto it = messages.rbegin(); it != messages.rend() && left > 0; ++it) {
    if (StringOf(*it, "role") != "user") continue;
    MarkMessage(&*it);
    --left;
  }
}

Result<std::string> Request(const std::string& model, bool stream, const WireDialect&,
                            const CompletionRequest& request) {
  Json body = {{"model", model}, {"max_tokens", request.max_tokens}};
  if (stream) body["stream"] = true;
  if (!request.system.empty())
    body["system"] = Json::array({{{"type", "text"}, {"text", request.system}}});
  for (const ToolDescription& tool : request.tools) {
    Json schema = ParseJson(tool.schema);
    if (!schema.is_object())
      return Fail(ErrorKind::kUsage, "describe tool", tool.name, "its schema is no JSON object",
                  "correct the tool's description");
    body["tools"].push_back({{"name", tool.name},
                             {"description", tool.description},
                             {"input_schema", std::move(schema)}});
  }
  body["messages"] = Json::array();
  for (const Message& message : request.messages) {
    Json content = Content(message);
    if (content.empty()) continue;
    body["messages"].push_back({{"role", message.role == Role::kUser ? "user" : "assistant"},
                                {"content", std::move(content)}});
  }
  MarkForCache(&body);
  return Dump(body);
}

std::optional<StopReason> StopOf(const std::string& word) {
  if (word == "end_turn" || word == "stop_sequence") return StopReason::kEnd;
  if (word == "tool_use") return StopReason::kToolUse;
  if (word == "max_tokens") return StopReason::kMaxTokens;
  if (word == "pause_turn") return StopReason::kPaused;
  if (word == "refusal") return StopReason::kRefused;
  if (word == "model_context_window_exceeded") return StopReason::kContextFull;
  return std::nullopt;
}

// A block as it begins in a stream, or as it is in a whole body.
WireReply::Part ReadBlock(const Json& content, bool streaming) {
  WireReply::Part part;
  const std::string type = StringOf(content, "type");
  if (type == "text") {
    part.block.text = StringOf(content, "text");
  } else if (type == "tool_use") {
    part.block.kind = Block::Kind::kToolCall;
    part.block.id = StringOf(content, "id");
    part.block.name = StringOf(content, "name");
    const Json& input = Member(content, "input");
    // In a stream an empty object stands for the pieces to come.
    if (!streaming || (input.is_object() && !input.empty()))
      part.block.arguments = input.is_null() ? "" : Dump(input);
  } else if (type == "thinking") {
    part.thinking = true;
    part.block.text = StringOf(content, "thinking");
    part.signature = StringOf(content, "signature");
  } else {
    part.block.kind = Block::Kind::kOpaque;
    part.block.text = Dump(content);
  }
  return part;
}

void TakeUsage(const Json& holder, WireReply* reply) {
  Usage usage = reply->usage.value_or(Usage{});
  if (ReadUsage(Member(holder, "usage"), &usage)) reply->usage = usage;
}

tl::unexpected<Error> Malformed(const std::string& cause) {
  return Fail(ErrorKind::kInternal, "read", "the model's reply", cause);
}

Result<> ReadBody(const std::string& body, WireReply* reply) {
  const Json parsed = ParseJson(body);
  if (!parsed.is_object()) return Malformed("it is no JSON object");
  if (!Member(parsed, "error").is_null()) {  // gateways send errors with status 200
    reply->error = ReadWireError(body);
    return {};
  }
  TakeUsage(parsed, reply);
  reply->model = StringOf(parsed, "model");
  const Json& content = Member(parsed, "content");
  if (!content.is_array()) return Malformed("it has no content");
  int index = 0;
  for (const Json& item : content) {
    if (!item.is_object()) return Malformed("a content block is no object");
    reply->parts[index++] = ReadBlock(item, false);
  }
  reply->stop = StopOf(StringOf(parsed, "stop_reason"));
  if (!reply->stop) return Malformed("it has no stop_reason that is known");
  reply->whole = true;
  return {};
}

void ReadDelta(const Json& delta, WireReply::Part* part, std::string* text) {
  const std::string type = StringOf(delta, "type");
  if (type == "text_delta") {
    const std::string piece = StringOf(delta, "text");
    part->block.text += piece;
    *text += piece;
  } else if (type == "input_json_delta") {
    part->block.arguments += StringOf(delta, "partial_json");
  } else if (type == "thinking_delta") {
    part->block.text += StringOf(delta, "thinking");
  } else if (type == "signature_delta") {
    part->signature += StringOf(delta, "signature");
  }
}

Result<> ReadEvent(const SseEvent& event, WireReply* reply, std::string* text) {
  const Json data = ParseJson(event.data);
  if (!data.is_object()) return Malformed("an event of the stream is no JSON object");
  const std::string type = StringOf(data, "type");
  if (type == "message_start") {
    reply->model = StringOf(Member(data, "message"), "model");
    TakeUsage(Member(data, "message"), reply);
  } else if (type == "content_block_start" || type == "content_block_delta") {
    const auto index = CountOf(data, "index");
    if (!index || *index > 100'000) return Malformed("a content block has no index");
    const int at = static_cast<int>(*index);
    if (type == "content_block_start")
      reply->parts[at] = ReadBlock(Member(data, "content_block"), true);
    else if (const auto it = reply->parts.find(at); it != reply->parts.end())
      ReadDelta(Member(data, "delta"), &it->second, text);
    else
      return Malformed("a piece came for a content block that never began");
  } else if (type == "message_delta") {
    TakeUsage(data, reply);
    if (const auto stop = StopOf(StringOf(Member(data, "delta"), "stop_reason")))
      reply->stop = stop;
  } else if (type == "message_stop") {
    if (!reply->stop) return Malformed("the stream ended without a stop_reason that is known");
    reply->whole = true;
  } else if (type == "error") {
    reply->error = ReadWireError(event.data);
  }  // ping, content_block_stop, and whatever is added to the format
  return {};
}

}  // namespace

const WireFormat& AnthropicFormat() {
  static const WireFormat format{Url, ModelsUrl, Headers, Request, ReadBody, ReadEvent};
  return format;
}

}  // namespace crucible
