#include "base/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "base/files.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

bool LooksBare(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "HEAD", ignored) &&
         fs::is_directory(path / "objects", ignored) && fs::is_directory(path / "refs", ignored);
}

// A linked worktree's git directory names the shared one in "commondir".
fs::path CommonOf(const fs::path& git_directory) {
  const auto common = ReadFile(git_directory / "commondir");
  if (!common) return git_directory;
  return (git_directory / Trimmed(*common)).lexically_normal();
}

const char* Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

Result<fs::path> CurrentFolder() {
  std::error_code error;
  fs::path folder = fs::current_path(error);
  if (error)
    return Fail(ErrorKind::kNotFound, "find the current folder", "", error.message(),
                "it was removed: go to another one (`cd`)");
  return folder;
}

Result<fs::path> CommonGitDirectory(const fs::path& start) {
  std::error_code ignored;
  for (fs::path folder = fs::absolute(start, ignored).lexically_normal();;
       folder = folder.parent_path()) {
    const fs::path dot_git = folder / ".git";
    if (fs::is_directory(dot_git, ignored)) return CommonOf(dot_git);
    if (fs::is_regular_file(dot_git, ignored)) {
      CRUCIBLE_ASSIGN(const std::string text, ReadFile(dot_git));
      static constexpr std::string_view kPrefix = "gitdir: ";
      if (!text.starts_with(kPrefix))
        return Fail(ErrorKind::kIo, "read", dot_git.string(), "it does not start with 'gitdir: '",
                    "repair the worktree with `git worktree repair`");
      return CommonOf((folder / Trimmed(text.substr(kPrefix.size()))).lexically_normal());
    }
    if (LooksBare(folder)) return folder;
    if (!folder.has_relative_path()) break;
  }
  return Fail(ErrorKind::kNotFound, "find repository", start.string(),
              "neither it nor a folder above it is a git repository",
              "run the command inside one, or `git init` first");
}

Result<fs::path> CrucibleHome(const fs::path& start) {
  if (const char* home = Environment("CRUCIBLE_HOME")) return fs::absolute(home);
  CRUCIBLE_ASSIGN(fs::path git, CommonGitDirectory(start));
  if (!git.has_filename()) git = git.parent_path();
  return git.parent_path() / ".crucible";
}

Result<fs::path> LockDirectory() {
  if (const char* chosen = Environment("CRUCIBLE_LOCK_DIR")) {
    CRUCIBLE_TRY(MakeDirectories(chosen));
    return fs::absolute(chosen);
  }
  const fs::path shared = "/run/lock/crucible";
  std::error_code error;
  if (fs::create_directories(shared, error); !error) ::chmod(shared.c_str(), 01777);
  if (::access(shared.c_str(), W_OK | X_OK) == 0) return shared;
  // The same for a user's login and for his cron jobs, so not his login's runtime directory.
  const fs::path own = "/tmp/crucible-" + std::to_string(::getuid());
  CRUCIBLE_TRY(MakeDirectories(own));
  return own;
}

fs::path ProgramDirectory() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace crucible
