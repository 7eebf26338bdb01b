// sse.h: splits a server-sent event stream into events, however its bytes were cut.
//
// Pure and passive: the caller feeds the bytes of each read; an event is given out when its blank
// line has come. Knows all three line ends, comments and multi-line data; not the `id` and `retry`
// fields, because a model's stream is never resumed. Bounded: an event above `max_bytes` is an
// error, since a broken server may send a line without end.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crucible {

struct SseEvent {
  std::string name;  // of the `event` field, or empty
  std::string data;  // the `data` lines, joined by '\n'
};

class SseParser {
 public:
  explicit SseParser(std::size_t max_bytes = 8u << 20) : max_bytes_(max_bytes) {}

  // Calls `on_event` for each event that ended in these bytes.
  Result<> Feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event);

  // Bytes of an event that has not ended: the stream broke off if it ends so.
  bool mid_event() const { return !line_.empty() || has_data_; }

 private:
  void EndLine(const std::function<void(const SseEvent&)>& on_event);

  std::size_t max_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a '\n' that follows belongs to the same line end
  bool at_start_ = true;   // a byte-order mark may come
};

}  // namespace crucible
