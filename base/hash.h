// hash.h: content hashes (SHA-256, through OpenSSL) and random identifiers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crucible {

std::string Sha256Hex(std::string_view bytes);
Result<std::string> Sha256HexOfFile(const std::filesystem::path& path);

std::string HexOf(const unsigned char* bytes, std::size_t count);  // lower case

// `bytes` random bytes from the kernel, as lower-case hex.
std::string RandomHex(int bytes);

}  // namespace crucible
