#include "checks/judge/source_scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "base/files.h"

namespace crucible::judge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTold = 4;

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// A word ends where the next character cannot be a part of it; "sys/" may go on.
bool StandsAlone(const std::string& text, std::size_t at, const std::string& word) {
  const bool before = at > 0 && IsWordCharacter(word.front()) && IsWordCharacter(text[at - 1]);
  const std::size_t end = at + word.size();
  const bool after =
      end < text.size() && IsWordCharacter(word.back()) && IsWordCharacter(text[end]);
  return !before && !after;
}

bool IsExcepted(const std::string& text, std::size_t at, const RefusedWords& rule) {
  return std::any_of(rule.except.begin(), rule.except.end(), [&](const std::string& except) {
    return text.compare(at, except.size(), except) == 0;
  });
}

void ScanLine(const Integrity& rules, const std::string& text, const std::string& file, int line,
              std::vector<Finding>* findings) {
  for (const RefusedWords& rule : rules.refused)
    for (const std::string& word : rule.words)
      for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
        if (!StandsAlone(text, at, word) || IsExcepted(text, at, rule)) continue;
        findings->push_back({file, line, word, rule.why});
        break;
      }
}

void ScanText(const Integrity& rules, const std::string& text, const std::string& file,
              std::vector<Finding>* findings) {
  std::string joined;
  int line = 1, first = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string piece = text.substr(at, end - at);
    if (piece.ends_with('\r')) piece.pop_back();
    const bool goes_on = piece.ends_with('\\');
    if (goes_on) piece.pop_back();
    joined += piece;
    at = end + 1;
    ++line;
    if (goes_on && at < text.size()) continue;
    ScanLine(rules, joined, file, first, findings);
    joined.clear();
    first = line;
  }
}

Result<> ScanPath(const Target& target, const fs::path& root, const fs::path& path,
                  std::vector<Finding>* findings) {
  const std::string name = path.lexically_relative(root).generic_string();
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::is_directory(status)) {
    std::vector<fs::path> inside;
    for (fs::directory_iterator item(path, error), end; !error && item != end;
         item.increment(error))
      inside.push_back(item->path());
    if (error) return Fail(ErrorKind::kIo, "list", path.string(), error.message());
    std::sort(inside.begin(), inside.end());
    for (const fs::path& item : inside) CRUCIBLE_TRY(ScanPath(target, root, item, findings));
    return {};
  }
  if (!fs::exists(status) || !IsEditable(target, name)) return {};
  if (!fs::is_regular_file(status)) {
    findings->push_back(
        {name, 0, "", "it is no ordinary file, so what it holds cannot be searched"});
    return {};
  }
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(path));
  ScanText(target.integrity, text, name, findings);
  return {};
}

std::string Told(const Finding& finding) {
  if (finding.word.empty()) return fmt::format("{}: {}", finding.file, finding.why);
  return fmt::format("{}:{} has '{}': {}", finding.file, finding.line, finding.word, finding.why);
}

}  // namespace

Result<std::vector<Finding>> ScanSource(const Target& target, const fs::path& source) {
  std::vector<Finding> findings;
  if (target.integrity.refused.empty()) return findings;
  for (const std::string& path : target.editable)
    CRUCIBLE_TRY(ScanPath(target, source, (source / path).lexically_normal(), &findings));
  return findings;
}

CheckRow SourceRow(const Target& target, const fs::path& source) {
  CheckRow row{.name = "source"};
  const auto findings = ScanSource(target, source);
  if (!findings) {
    row.result.reason = findings.error().text;
    return row;
  }
  row.result.pass = findings->empty();
  if (row.result.pass) return row;
  std::vector<std::string> told;
  for (std::size_t i = 0; i < std::min(findings->size(), kMostTold); ++i)
    told.push_back(Told((*findings)[i]));
  row.result.reason = fmt::format(
      "{}{}; write it without (a comment counts as well), or have a person change [integrity] of "
      "the "
      "target file",
      fmt::join(told, ", "),
      findings->size() > kMostTold ? fmt::format(" and {} more", findings->size() - kMostTold)
                                   : "");
  return row;
}

}  // namespace crucible::judge
