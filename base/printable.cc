#include "base/printable.h"

namespace crucible {
namespace {

// How many bytes the character at the start of `text` has; 0 when it is none.
std::size_t CharacterAt(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 && first <= 0xdf ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  // Overlong, a surrogate, or beyond the last code point.
  const bool bad =
      length >= 3 && ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f) ||
                      (first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f));
  return bad ? 0 : length;
}

}  // namespace

std::string ValidUtf8(std::string_view text, std::size_t most_bytes) {
  constexpr std::string_view kUnknown = "\xef\xbf\xbd";
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = CharacterAt(text);
    const std::string_view next = length > 0 ? text.substr(0, length) : kUnknown;
    if (valid.size() + next.size() > most_bytes) break;
    valid += next;
    text.remove_prefix(length > 0 ? length : 1);
  }
  return valid;
}

std::string Printable(const std::string& text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 = c == 0xc2 && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (c1 || c == 0x7f || (c < 0x20 && c != '\n' && c != '\t')) {
      plain += '?';
      if (c1) ++i;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

}  // namespace crucible
