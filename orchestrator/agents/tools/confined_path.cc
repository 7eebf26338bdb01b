#include "orchestrator/agents/tools/confined_path.h"

#include <fmt/format.h>

#include <algorithm>

namespace crucible {
namespace {

namespace fs = std::filesystem;

bool IsBelow(const fs::path& root, const fs::path& path) {
  const auto [at_root, at_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return at_root == root.end() || (std::next(at_root) == root.end() && at_root->empty());
}

Result<fs::path> Resolved(const fs::path& path, const std::string& shown) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  if (error)
    return Fail(ErrorKind::kUsage, "resolve", shown, error.message(),
                "give a path relative to the worktree");
  return resolved;
}

bool IsGit(const fs::path& worktree, const fs::path& file) {
  const fs::path relative = file.lexically_relative(worktree);
  return !relative.empty() && *relative.begin() == ".git";
}

Result<> IsPath(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos)
    return Fail(ErrorKind::kUsage, "resolve", "the path", "it is empty or holds a zero byte",
                "give a path relative to the worktree");
  return {};
}

}  // namespace

std::string EditableText(const Target& target) {
  std::string text = fmt::format("{}", fmt::join(target.editable, ", "));
  if (!target.protected_.empty())
    text += fmt::format(" (except {})", fmt::join(target.protected_, ", "));
  return text;
}

Result<ConfinedPath> PathToRead(const std::vector<fs::path>& roots, const std::string& path) {
  CRUCIBLE_TRY(IsPath(path));
  const fs::path worktree = fs::weakly_canonical(roots.front());
  CRUCIBLE_ASSIGN(const fs::path file, Resolved(worktree / path, path));
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const fs::path root = i == 0 ? worktree : fs::weakly_canonical(roots[i]);
    if (!IsBelow(root, file)) continue;
    if (i == 0 && IsGit(worktree, file)) break;
    std::error_code ignored;
    if (!fs::exists(file, ignored))
      return Fail(ErrorKind::kNotFound, "find", path, "there is no such file",
                  "list_files shows what there is");
    return ConfinedPath{file, i == 0 ? file.lexically_relative(worktree).string() : file.string()};
  }
  return Fail(ErrorKind::kUsage, "open", path, "it lies outside the worktree (links are followed)",
              "give a path relative to the worktree");
}

Result<ConfinedPath> PathToWrite(const fs::path& worktree_given, const Target& target,
                                 const std::string& path) {
  CRUCIBLE_TRY(IsPath(path));
  const fs::path worktree = fs::weakly_canonical(worktree_given);
  const fs::path asked = (worktree / path).lexically_normal();
  std::error_code ignored;
  if (!asked.has_filename() || fs::is_directory(asked, ignored))
    return Fail(ErrorKind::kUsage, "write", path, "it is a folder", "name a file");
  if (fs::is_symlink(asked, ignored))
    return Fail(ErrorKind::kUsage, "write", path, "it is a symbolic link",
                "write the file that it leads to, by its own path");
  CRUCIBLE_ASSIGN(const fs::path file, Resolved(asked, path));
  const std::string relative = file.lexically_relative(worktree).generic_string();
  if (!IsBelow(worktree, file) || IsGit(worktree, file) || !IsEditable(target, relative))
    return Fail(ErrorKind::kUsage, "write", path, "the mission may not change it",
                "it may change " + EditableText(target));
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored))
    return Fail(ErrorKind::kUsage, "write", path, "it is not an ordinary file", "name another");
  return ConfinedPath{file, relative};
}

}  // namespace crucible
