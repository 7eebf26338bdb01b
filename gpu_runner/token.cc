#include "gpu_runner/token.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

namespace crucible {
namespace {

bool DescendsFrom(pid_t ancestor) {
  pid_t pid = ::getpid();
  for (int depth = 0; pid > 1 && depth < 1000; ++depth) {
    pid = ParentOf(pid);
    if (pid == ancestor) return true;
  }
  return false;
}

}  // namespace

std::string ToText(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) {
    if (!text.empty()) text.push_back(',');
    text += fmt::format("{}:{}:{}:{}", token.device, token.nonce, token.holder, token.start_ticks);
  }
  return text;
}

std::vector<Token> ParseTokens(std::string_view text) {
  std::vector<Token> tokens;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t first = item.find(':');
    const std::size_t second = first == item.npos ? item.npos : item.find(':', first + 1);
    const std::size_t third = second == item.npos ? item.npos : item.find(':', second + 1);
    if (third == item.npos || first == 0 || second == first + 1) continue;
    Token token;
    token.device = std::string(item.substr(0, first));
    token.nonce = std::string(item.substr(first + 1, second - first - 1));
    if (token.device.find('/') != std::string::npos || token.device.front() == '.') continue;
    const char* pid_end = item.data() + third;
    const char* end = item.data() + item.size();
    if (std::from_chars(item.data() + second + 1, pid_end, token.holder).ptr != pid_end) continue;
    if (std::from_chars(pid_end + 1, end, token.start_ticks).ptr != end) continue;
    if (token.holder > 1) tokens.push_back(std::move(token));
  }
  return tokens;
}

std::string WhyInvalid(const Token& token, const DeviceFolder& folder) {
  const auto record = folder.ReadHolder();
  if (!record || record->released || record->nonce != token.nonce) return "its job has ended";
  if (record->runner.pid != token.holder || record->runner.start_ticks != token.start_ticks)
    return "it names another holder than the device's record";
  if (!IsAlive(record->runner)) return "its holder is dead";
  if (!folder.IsLocked()) return "the device is not locked";
  if (!DescendsFrom(token.holder)) return "this process does not descend from the holder";
  return "";
}

}  // namespace crucible
