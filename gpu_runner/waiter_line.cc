#include "gpu_runner/waiter_line.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace crucible {

std::string ShellWords(const std::vector<std::string>& argv, std::size_t max_length) {
  std::string text;
  for (const std::string& word : argv) {
    if (!text.empty()) text.push_back(' ');
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$`*?;&|<>()") == word.npos;
    if (plain) {
      text += word;
      continue;
    }
    text.push_back('\'');
    for (const char c : word)
      c == '\'' ? text.append("'\\''") : text.append(1, c == '\n' ? ' ' : c);
    text.push_back('\'');
  }
  if (text.size() > max_length) text = text.substr(0, max_length - 3) + "...";
  return text;
}

std::string DescribeHolder(const std::optional<HolderRecord>& record, std::int64_t now_ms) {
  if (!record) return "a job that has just taken it";
  std::string text = fmt::format("pid {} `{}` in {}", record->runner.pid, ShellWords(record->argv),
                                 record->directory);
  if (!record->mission.empty()) text += ", mission " + record->mission;
  text += ", for " + FormatDuration(now_ms - record->started_ms);
  if (record->limit_ms > 0) text += " of " + FormatDuration(record->limit_ms);
  return text;
}

}  // namespace crucible
