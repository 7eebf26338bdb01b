#include "base/printable.h"

namespace crucible {

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
