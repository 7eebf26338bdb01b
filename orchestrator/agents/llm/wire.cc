#include "orchestrator/agents/llm/wire.h"

#include <algorithm>

#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

// The end of the JSON object that begins at `start`, or npos.
std::size_t ObjectEnd(const std::string& text, std::size_t start) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string::npos;
}

Block Finished(WireReply::Part part) {
  if (part.thinking) {
    Json thinking = {{"type", "thinking"}, {"thinking", part.block.text}};
    thinking["signature"] = part.signature;
    part.block.kind = Block::Kind::kOpaque;
    part.block.text = Dump(thinking);
  }
  return std::move(part.block);
}

}  // namespace

bool ReadUsage(const Json& usage, Usage* into) {
  if (!usage.is_object()) return false;
  bool any = false;
  const auto take = [&](const char* name, std::int64_t* field) {
    const auto count = CountOf(usage, name);
    if (!count) return;
    *field = *count;
    any = true;
  };
  // Messages: the four are apart.
  take("input_tokens", &into->input);
  take("output_tokens", &into->output);
  take("cache_read_input_tokens", &into->cache_read);
  take("cache_creation_input_tokens", &into->cache_write);
  // Chat Completions: the cached tokens are among the prompt's.
  take("completion_tokens", &into->output);
  if (const auto prompt = CountOf(usage, "prompt_tokens")) {
    const auto cached = CountOf(Member(usage, "prompt_tokens_details"), "cached_tokens");
    into->cache_read = std::min(cached.value_or(0), *prompt);
    into->input = *prompt - into->cache_read;
    any = true;
  }
  return any;
}

WireError ReadWireError(const std::string& body) {
  const Json parsed = ParseJson(body);
  const Json& inner = Member(parsed, "error");
  const Json& error = inner.is_object() ? inner : parsed;
  WireError result;
  result.type = StringOf(error, "code");  // the more exact of the two, where it is a word
  if (result.type.empty()) result.type = StringOf(error, "type");
  result.message = StringOf(error, "message");
  if (inner.is_string()) result.message = inner.get<std::string>();
  if (result.message.empty()) result.message = StringOf(parsed, "detail");
  if (result.message.empty() && parsed.is_discarded()) result.message = body;
  constexpr std::size_t kLongest = 400;
  if (result.message.size() > kLongest) result.message.resize(kLongest);
  std::replace_if(
      result.message.begin(), result.message.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return result;
}

std::optional<Usage> FindUsage(const std::string& body) {
  for (std::size_t at = body.rfind("\"usage\""); at != std::string::npos;
       at = at == 0 ? std::string::npos : body.rfind("\"usage\"", at - 1)) {
    const std::size_t start = body.find('{', at);
    if (start == std::string::npos) continue;
    const std::size_t end = ObjectEnd(body, start);
    if (end == std::string::npos) continue;
    Usage usage;
    if (ReadUsage(ParseJson(body.substr(start, end - start)), &usage)) return usage;
  }
  return std::nullopt;
}

Message TakeMessage(WireReply* reply, std::size_t conversation) {
  Message message{Role::kAssistant, {}};
  bool calls = false;
  for (auto& [index, part] : reply->parts) {
    Block block = Finished(std::move(part));
    if (block.kind == Block::Kind::kText && block.text.empty()) continue;
    if (block.kind == Block::Kind::kToolCall) {
      calls = true;
      if (block.id.empty())
        block.id = "call_" + std::to_string(conversation) + "_" + std::to_string(index);
      if (block.arguments.empty()) block.arguments = "{}";
    }
    message.blocks.push_back(std::move(block));
  }
  reply->parts.clear();
  // Servers say "stop" after a tool call, or "tool_calls" after none.
  if (calls && reply->stop == StopReason::kEnd) reply->stop = StopReason::kToolUse;
  if (!calls && reply->stop == StopReason::kToolUse) reply->stop = StopReason::kEnd;
  return message;
}

}  // namespace crucible
