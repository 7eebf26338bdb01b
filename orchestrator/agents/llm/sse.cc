#include "orchestrator/agents/llm/sse.h"

namespace crucible {

Result<> SseParser::Feed(std::string_view bytes,
                         const std::function<void(const SseEvent&)>& on_event) {
  for (const char c : bytes) {
    if (after_cr_ && c == '\n') {
      after_cr_ = false;
      continue;
    }
    after_cr_ = c == '\r';
    if (c == '\r' || c == '\n') {
      EndLine(on_event);
      continue;
    }
    if (line_.size() + event_.data.size() >= max_bytes_)
      return Fail(ErrorKind::kInternal, "read", "the event stream",
                  "one event has more than " + std::to_string(max_bytes_) + " bytes");
    line_.push_back(c);
  }
  return {};
}

void SseParser::EndLine(const std::function<void(const SseEvent&)>& on_event) {
  std::string_view line = line_;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (at_start_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  at_start_ = false;
  if (line.empty()) {
    if (has_data_) on_event(event_);
    event_ = {};
    has_data_ = false;
  } else if (line.front() != ':') {
    const std::size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "data") {
      if (has_data_) event_.data.push_back('\n');
      event_.data.append(value);
      has_data_ = true;
    } else if (field == "event") {
      event_.name.assign(value);
    }
  }
  line_.clear();
}

}  // namespace crucible
