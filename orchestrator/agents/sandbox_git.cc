#include "orchestrator/agents/sandbox_git.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "base/files.h"
#include "base/paths.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCoreNames[] = {
    "repositoryformatversion", "filemode", "autocrlf", "eol", "ignorecase", "symlinks",
    "precomposeunicode"};

std::string Trimmed(std::string text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && space(text.back())) text.pop_back();
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  return text;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The commit that a ref names, loose or packed; empty when unborn.
std::string CommitOf(const fs::path& common, const std::string& ref) {
  const auto loose = ReadFile(common / ref);
  if (loose) return Trimmed(*loose);
  std::istringstream packed(ReadFile(common / "packed-refs").value_or(""));
  for (std::string line; std::getline(packed, line);) {
    const std::size_t gap = line.find(' ');
    if (gap != std::string::npos && line.substr(gap + 1) == ref) return line.substr(0, gap);
  }
  return "";
}

}  // namespace

std::string ReadableGitConfig(const std::string& text) {
  std::istringstream lines(text);
  std::string section, result;
  for (std::string line; std::getline(lines, line);) {
    line = Trimmed(line);
    if (line.starts_with('[')) {
      section = Lower(line);
      if (section == "[core]" || section == "[extensions]") result += section + "\n";
      continue;
    }
    const std::string name = Lower(Trimmed(line.substr(0, line.find('='))));
    const bool core = section == "[core]" && std::find(std::begin(kCoreNames), std::end(kCoreNames),
                                                       name) != std::end(kCoreNames);
    if (core || (section == "[extensions]" && !name.empty())) result += "\t" + line + "\n";
  }
  return result;
}

Result<SandboxGit> GitForSandbox(const fs::path& worktree) {
  SandboxGit git;
  std::error_code error;
  const fs::path mark = worktree / ".git";
  const fs::file_status status = fs::symlink_status(mark, error);
  if (!fs::exists(status)) return git;
  if (fs::is_symlink(status))
    return Fail(ErrorKind::kUsage, "bind into sandbox", mark.string(), "it is a symbolic link",
                "use a worktree made by git");
  git.read_only.push_back(mark);
  git.environment = {{"GIT_OPTIONAL_LOCKS", "0"},
                     {"GIT_CONFIG_COUNT", "1"},  // inside, the owner may have no name
                     {"GIT_CONFIG_KEY_0", "safe.directory"},
                     {"GIT_CONFIG_VALUE_0", "*"}};
  if (fs::is_directory(status)) return git;
  const auto text = ReadFile(mark);
  const auto common = CommonGitDirectory(worktree);
  if (!text || !common || !text->starts_with("gitdir: ")) return git;  // git says what is wrong
  fs::path own = Trimmed(text->substr(8));
  if (own.is_relative()) own = worktree / own;
  own = fs::canonical(own, error);
  const fs::path shared = error ? fs::path() : fs::canonical(*common, error);
  if (error) return git;
  git.read_only.push_back(own);
  git.read_only.push_back(shared / "objects");
  git.files[shared / "HEAD"] = "ref: refs/heads/none\n";
  git.files[shared / "refs" / "heads" / ".keep"] = "";
  git.files[shared / "config"] =
      ReadableGitConfig(ReadFile(shared / "config").value_or("")) + "[core]\n\tbare = false\n";
  const std::string head = Trimmed(ReadFile(own / "HEAD").value_or(""));
  if (head.starts_with("ref: ")) {
    const std::string commit = CommitOf(shared, head.substr(5));
    if (!commit.empty()) git.files[shared / "packed-refs"] = commit + " " + head.substr(5) + "\n";
  }
  return git;
}

}  // namespace crucible
