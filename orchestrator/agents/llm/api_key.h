// api_key.h: finds a provider's key and keeps it out of everything that is written.
//
// A key comes from the environment, else from the file that $CRUCIBLE_KEY_FILE names (lines
// NAME=value, as in an environment), which only its owner may read. Never from a command line or a
// campaign file. An ApiKey cannot be printed by accident: only Reveal gives it out, for a header.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crucible {

class ApiKey {
 public:
  ApiKey() = default;
  explicit ApiKey(std::string text) : text_(std::move(text)) {}

  bool empty() const { return text_.empty(); }
  const std::string& Reveal() const { return text_; }
  // `text` with every occurrence of the key replaced by "[key]".
  std::string Scrub(std::string text) const;

 private:
  std::string text_;
};

// The key that `variable` names; empty when neither place has it. kUsage: a key file that others
// can read, that is malformed or missing, or a key with a character that no header may hold.
Result<ApiKey> FindKey(const std::string& variable);

// The same from one file, as FindKey reads $CRUCIBLE_KEY_FILE.
Result<ApiKey> ReadKeyFile(const std::filesystem::path& path, const std::string& variable);

// `text` with each of `secrets` replaced by "[key]". Secrets shorter than eight characters are
// left: they would blot out ordinary words.
std::string ScrubAll(std::string text, const std::vector<std::string>& secrets);

// Variables known to hold a provider's key, to be kept from every child that does not need them.
const std::vector<std::string>& KeyVariables();

}  // namespace crucible
