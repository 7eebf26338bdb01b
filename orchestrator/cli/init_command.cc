// init_command.cc: crucible init: prepares a repository for campaigns.
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "base/json.h"
#include "base/paths.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/repository.h"
#include "results_log/store.h"

namespace crucible {
namespace {

Result<std::filesystem::path> Init(const std::string& branch) {
  CRUCIBLE_ASSIGN(const std::filesystem::path here, CurrentFolder());
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(here, branch));
  CRUCIBLE_TRY(repository.MainTip());
  CRUCIBLE_ASSIGN(const Workspace workspace, FindWorkspace());
  CRUCIBLE_TRY(PrepareHome(workspace));
  CRUCIBLE_TRY(Store::Open(workspace.LogFile()));
  return workspace.home;
}

}  // namespace

int InitCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Prepare this repository: its state folder and an empty results log",
               "crucible init");
  bool as_json = false;
  std::string branch;
  AddBranchOption(&app, &branch);
  app.add_flag("--json", as_json, "Print the result as JSON");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const auto home = Init(branch);
  if (!home) return Report(home.error(), err);
  if (as_json) {
    out << JsonText({{"home", home->string()}}, 2) << "\n";
    return 0;
  }
  fmt::print(out,
             "state is in {}\nnext: write a target file (docs/target_protocol.md) and a campaign "
             "file, then `crucible campaign launch FILE`\n",
             home->string());
  return 0;
}

}  // namespace crucible
