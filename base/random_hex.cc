// Apart from hash.cc, so that a program that only draws names does not load the crypto library.
#include <sys/random.h>

#include <cerrno>

#include "base/hash.h"

namespace crucible {

std::string HexOf(const unsigned char* bytes, std::size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    text.push_back(kDigits[bytes[i] >> 4]);
    text.push_back(kDigits[bytes[i] & 15]);
  }
  return text;
}

std::string RandomHex(int bytes) {
  std::string raw(static_cast<std::size_t>(bytes), '\0');
  std::size_t filled = 0;
  while (filled < raw.size()) {
    const ssize_t count = ::getrandom(raw.data() + filled, raw.size() - filled, 0);
    CRUCIBLE_CHECK(count > 0 || errno == EINTR, "the kernel gives random bytes");
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  return HexOf(reinterpret_cast<const unsigned char*>(raw.data()), raw.size());
}

}  // namespace crucible
