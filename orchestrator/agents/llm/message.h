// message.h: a conversation with a model, in the words both wire formats share. Plain data.
//
// A conversation alternates user and assistant messages. What a tool answered goes back in the next
// user message, one kToolResult block for each kToolCall of the assistant's before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crucible {

enum class Role { kUser, kAssistant };

struct Block {
  // kOpaque: something of the provider's own (a thinking block). A reader skips it; it goes back to
  // the provider unchanged and in its place, because some formats refuse a history without it.
  enum class Kind { kText, kToolCall, kToolResult, kOpaque };
  Kind kind = Kind::kText;
  std::string text;       // kText: the words; kToolResult: what the tool answered; kOpaque: JSON
  std::string id;         // kToolCall, kToolResult: the call's id
  std::string name;       // kToolCall: the tool
  std::string arguments;  // kToolCall: JSON object text as the model wrote it, perhaps malformed
  bool is_error = false;  // kToolResult
};

struct Message {
  Role role = Role::kUser;
  std::vector<Block> blocks;
};

// What a model is told about a tool.
struct ToolDescription {
  std::string name, description;
  std::string schema;  // JSON Schema of the arguments, as JSON text
};

// Tokens of one reply. `input` excludes what was read from or written to the provider's cache.
struct Usage {
  std::int64_t input = 0, output = 0, cache_read = 0, cache_write = 0;
  Usage& operator+=(const Usage& other) {
    input += other.input;
    output += other.output;
    cache_read += other.cache_read;
    cache_write += other.cache_write;
    return *this;
  }
};

// kToolUse: call the tools and go on. kMaxTokens: the reply was cut, its last tool call perhaps
// too. kContextFull: the conversation is too long: compact it. kPaused: send the conversation again
// as it is. kRefused: the model would not answer.
enum class StopReason { kEnd, kToolUse, kMaxTokens, kContextFull, kRefused, kPaused };

}  // namespace crucible
