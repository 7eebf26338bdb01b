// conversation.h: the messages so far, how much of the model's context they fill, and what a
// restart begins with. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "orchestrator/agents/llm/provider.h"

namespace crucible {

class Conversation {
 public:
  explicit Conversation(std::int64_t context_tokens, int reply_tokens, std::size_t fixed_bytes)
      : context_tokens_(context_tokens), reply_tokens_(reply_tokens), fixed_bytes_(fixed_bytes) {}

  // Forgets all but the last calls, which the first message then tells.
  void Restart(const std::string& first_message);

  void AddReply(const Completion& completion);
  void AddAnswer(const Block& call, const std::string& text, bool is_error);
  void AddText(const std::string& text);  // of the user, after the answers

  const std::vector<Message>& messages() const { return messages_; }
  bool fresh() const { return messages_.size() <= 1; }
  // Tokens of the next request: by the last reply's usage where that is known, else 4 bytes each.
  std::int64_t Estimate() const;
  bool Full() const;        // the next reply may not fit: restart
  bool NearlyFull() const;  // time to write notes
  // "compare {…} -> verdict: accepted", oldest first: what the notes may not hold yet.
  std::string LastCalls() const;

 private:
  Message* UserMessage();

  std::int64_t context_tokens_;
  int reply_tokens_;
  std::size_t fixed_bytes_;  // system text and tools
  std::vector<Message> messages_;
  std::int64_t known_tokens_ = 0;  // of the messages up to known_bytes_
  std::size_t bytes_ = 0, known_bytes_ = 0;
  std::deque<std::string> last_calls_;
};

}  // namespace crucible
