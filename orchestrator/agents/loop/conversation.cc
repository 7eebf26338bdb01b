#include "orchestrator/agents/loop/conversation.h"

#include <fmt/format.h>

#include "orchestrator/agents/tools/bounded.h"

namespace crucible {
namespace {

constexpr std::size_t kBytesPerToken = 4;
constexpr std::size_t kCallsTold = 10;
constexpr std::size_t kToldBytes = 160;
constexpr double kFullShare = 0.9, kNearlyShare = 0.7;

std::size_t Bytes(const Block& block) {
  return block.text.size() + block.name.size() + block.arguments.size() + 16;
}

}  // namespace

void Conversation::Restart(const std::string& first_message) {
  messages_.clear();
  bytes_ = fixed_bytes_;
  known_tokens_ = 0;
  known_bytes_ = 0;
  AddText(first_message);
}

Message* Conversation::UserMessage() {
  if (messages_.empty() || messages_.back().role != Role::kUser)
    messages_.push_back({Role::kUser, {}});
  return &messages_.back();
}

void Conversation::AddReply(const Completion& completion) {
  for (const Block& block : completion.message.blocks) bytes_ += Bytes(block);
  // A reply that took several billed attempts counts its prompt more than once.
  const Usage& usage = completion.usage;
  if (completion.usage_known && completion.attempts <= 1) {
    known_tokens_ = usage.input + usage.cache_read + usage.cache_write + usage.output;
    known_bytes_ = bytes_;
  }
  // An empty reply is not sent back: no wire format takes it.
  if (!completion.message.blocks.empty()) messages_.push_back(completion.message);
}

void Conversation::AddAnswer(const Block& call, const std::string& text, bool is_error) {
  Block block{.kind = Block::Kind::kToolResult,
              .text = text,
              .id = call.id,
              .name = call.name,
              .is_error = is_error};
  bytes_ += Bytes(block);
  UserMessage()->blocks.push_back(std::move(block));
  last_calls_.push_back(fmt::format("{} {} -> {}", call.name, Shorten(call.arguments, kToldBytes),
                                    Shorten(text.substr(0, text.find('\n', 1)), kToldBytes)));
  if (last_calls_.size() > kCallsTold) last_calls_.pop_front();
}

void Conversation::AddText(const std::string& text) {
  Block block{.kind = Block::Kind::kText, .text = text};
  bytes_ += Bytes(block);
  UserMessage()->blocks.push_back(std::move(block));
}

std::int64_t Conversation::Estimate() const {
  return known_tokens_ + static_cast<std::int64_t>((bytes_ - known_bytes_) / kBytesPerToken);
}

bool Conversation::Full() const {
  return context_tokens_ > 0 && static_cast<double>(Estimate() + reply_tokens_) >
                                    kFullShare * static_cast<double>(context_tokens_);
}

bool Conversation::NearlyFull() const {
  return context_tokens_ > 0 && static_cast<double>(Estimate() + reply_tokens_) >
                                    kNearlyShare * static_cast<double>(context_tokens_);
}

std::string Conversation::LastCalls() const {
  std::string text;
  for (const std::string& call : last_calls_) text += "- " + call + "\n";
  return text;
}

}  // namespace crucible
