#include "orchestrator/agents/llm/api_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"

namespace crucible {
namespace {

constexpr std::size_t kShortestSecret = 8;
constexpr std::size_t kLargestKeyFile = 64 << 10;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Result<ApiKey> Checked(std::string_view text, const std::string& where) {
  text = Trim(text);
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!printable)
    return Fail(ErrorKind::kUsage, "read", where, "the key holds a space or a control character",
                "set it to the key alone");
  return ApiKey(std::string(text));
}

tl::unexpected<Error> FileFailure(const std::filesystem::path& path, std::string_view cause,
                                  std::string_view next) {
  return Fail(ErrorKind::kUsage, "read key file", path.string(), cause, next);
}

Result<std::string> ReadPrivateFile(const std::filesystem::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid())
    return FileFailure(path, std::strerror(errno), "correct or unset CRUCIBLE_KEY_FILE");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return FileFailure(path, "it is not a regular file", "correct CRUCIBLE_KEY_FILE");
  if (status.st_uid != ::geteuid())
    return FileFailure(path, "it belongs to another user", "use a file of your own");
  if ((status.st_mode & 077) != 0)
    return FileFailure(path, "others can read or change it", "chmod 600 it, and renew the key");
  std::string text(kLargestKeyFile + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileFailure(path, std::strerror(errno), "check the disk");
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kLargestKeyFile) return FileFailure(path, "it is too large", "keep only keys in it");
  text.resize(size);
  return text;
}

}  // namespace

std::string ApiKey::Scrub(std::string text) const { return ScrubAll(std::move(text), {text_}); }

std::string ScrubAll(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 5)
      text.replace(at, secret.size(), "[key]");
  }
  return text;
}

Result<ApiKey> ReadKeyFile(const std::filesystem::path& path, const std::string& variable) {
  CRUCIBLE_ASSIGN(const std::string text, ReadPrivateFile(path));
  std::string_view rest = text;
  int number = 0;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = Trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos)  // the line itself may be a key: not shown
      return FileFailure(path, "line " + std::to_string(number) + " is not NAME=value",
                         "write " + variable + "=KEY");
    if (Trim(line.substr(0, equals)) == variable)
      return Checked(line.substr(equals + 1), path.string() + ", " + variable);
  }
  return ApiKey();
}

Result<ApiKey> FindKey(const std::string& variable) {
  if (const char* value = std::getenv(variable.c_str()); value != nullptr && *value != '\0')
    return Checked(value, variable);
  const char* file = std::getenv("CRUCIBLE_KEY_FILE");
  if (file == nullptr || *file == '\0') return ApiKey();
  return ReadKeyFile(file, variable);
}

const std::vector<std::string>& KeyVariables() {
  static const std::vector<std::string> names = {
      "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
      "OPENAI_API_KEY",    "CODEX_API_KEY",        "GEMINI_API_KEY",
      "GOOGLE_API_KEY",    "OPENROUTER_API_KEY",   "MISTRAL_API_KEY",
      "GROQ_API_KEY",      "DEEPSEEK_API_KEY",     "XAI_API_KEY",
      "AZURE_API_KEY",     "AZURE_OPENAI_API_KEY", "HF_TOKEN",
      "CRUCIBLE_KEY_FILE"};
  return names;
}

}  // namespace crucible
