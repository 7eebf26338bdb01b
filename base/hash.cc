#include "base/hash.h"

#include <openssl/sha.h>

#include "base/files.h"

namespace crucible {

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return HexOf(digest, sizeof digest);
}

Result<std::string> Sha256HexOfFile(const std::filesystem::path& path) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(path));
  return Sha256Hex(text);
}

}  // namespace crucible
