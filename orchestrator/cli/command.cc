#include "orchestrator/cli/command.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "base/paths.h"

namespace crucible {

void AddBranchOption(CLI::App* app, std::string* branch) {
  app->add_option("--branch", *branch,
                  "The branch that merges move (default: main, else the one that HEAD names)");
}

int Report(const Error& error, std::ostream& err) {
  err << "crucible: " << error.text << "\n";
  return ExitCode(error);
}

Result<Workspace> FindWorkspace() {
  CRUCIBLE_ASSIGN(const std::filesystem::path here, CurrentFolder());
  CRUCIBLE_ASSIGN(const std::filesystem::path home, CrucibleHome(here));
  return Workspace{home, ProgramDirectory()};
}

std::string UserAuthor() {
  const passwd* user = ::getpwuid(::getuid());
  return fmt::format("user:{}", user != nullptr ? user->pw_name : std::to_string(::getuid()));
}

Result<std::filesystem::path> FindTargetFile(const std::string& name_or_file) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name_or_file, ignored))
    return std::filesystem::absolute(name_or_file);
  CRUCIBLE_ASSIGN(std::filesystem::path folder, CurrentFolder());
  for (;; folder = folder.parent_path()) {
    const std::filesystem::path file = folder / "missions" / "targets" / (name_or_file + ".toml");
    if (std::filesystem::is_regular_file(file, ignored)) return file;
    if (!folder.has_relative_path()) break;
  }
  return Fail(ErrorKind::kUsage, "find target", name_or_file,
              "it is neither a file nor a missions/targets/NAME.toml above this folder",
              "give the target file's path");
}

}  // namespace crucible
