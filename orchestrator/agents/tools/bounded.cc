#include "orchestrator/agents/tools/bounded.h"

#include <fmt/format.h>

namespace crucible {
namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Length of the valid sequence at `at`, 0 when it is not UTF-8.
std::size_t SequenceAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!Continues(text[at + i])) return 0;
  const unsigned char second = byte(at + 1);
  if (lead == 0xe0 && second < 0xa0) return 0;  // overlong
  if (lead == 0xed && second > 0x9f) return 0;  // a surrogate
  if (lead == 0xf0 && second < 0x90) return 0;
  if (lead == 0xf4 && second > 0x8f) return 0;
  return length;
}

// The largest end <= `most` that is not within a character.
std::size_t CutAt(std::string_view text, std::size_t most) {
  if (most >= text.size()) return text.size();
  std::size_t end = most;
  while (end > 0 && most - end < 4 && Continues(text[end])) --end;
  return end;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = SequenceAt(text, at);
    if (length == 0) {
      valid += "\xef\xbf\xbd";
      ++at;
      continue;
    }
    valid += text.substr(at, length);
    at += length;
  }
  return valid;
}

std::string Shorten(std::string_view text, std::size_t most) {
  if (text.size() <= most) return ValidUtf8(text);
  return ValidUtf8(text.substr(0, CutAt(text, most))) + "…";
}

std::string Head(std::string_view text, std::size_t most, const std::string& where) {
  if (text.size() <= most) return ValidUtf8(text);
  std::size_t end = CutAt(text, most);
  if (const std::size_t line = text.rfind('\n', end);
      line != std::string_view::npos && line > end / 2)
    end = line + 1;  // whole lines where they are not too long
  return fmt::format("{}{}[{} more bytes in {}]\n", ValidUtf8(text.substr(0, end)),
                     end > 0 && text[end - 1] == '\n' ? "" : "\n", text.size() - end, where);
}

std::string HeadAndTail(std::string_view text, std::size_t most, const std::string& where) {
  if (text.size() <= most) return ValidUtf8(text);
  const std::size_t head = CutAt(text, most / 3);
  const std::size_t tail = CutAt(text, text.size() - (most - most / 3));
  return fmt::format("{}\n[… {} more bytes in {} …]\n{}", ValidUtf8(text.substr(0, head)),
                     tail - head, where, ValidUtf8(text.substr(tail)));
}

}  // namespace crucible
