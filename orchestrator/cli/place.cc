#include "orchestrator/cli/place.h"

#include <filesystem>
#include <system_error>

#include "base/hash.h"
#include "orchestrator/baseline.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/judge.h"

namespace crucible {

Result<Place> OpenPlace(const std::string& target_name) {
  CRUCIBLE_ASSIGN(const Workspace workspace, FindWorkspace());
  CRUCIBLE_ASSIGN(const std::filesystem::path file, FindTargetFile(target_name));
  CRUCIBLE_ASSIGN(Target target, LoadTarget(file));
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(std::filesystem::current_path()));
  CRUCIBLE_TRY(PrepareHome(workspace));
  return Place{workspace, std::move(target), std::move(repository)};
}

Result<Arm> ArmOf(Place* place, const std::string& folder_or_revision) {
  std::error_code ignored;
  const BaselineContext context{&place->workspace, &place->target, &place->repository, ""};
  if (!std::filesystem::is_directory(folder_or_revision, ignored)) {
    CRUCIBLE_ASSIGN(const std::string commit, place->repository.Resolve(folder_or_revision));
    return BaselineArm(context, commit);
  }
  const std::filesystem::path source = std::filesystem::canonical(folder_or_revision);
  CRUCIBLE_ASSIGN(const std::string tip, place->repository.MainTip());
  CRUCIBLE_ASSIGN(const Arm main, BaselineArm(context, tip));
  BuildRequest request;
  request.target = &place->target;
  request.arm.name = source.filename().string();
  request.arm.source = source;
  request.arm.main = main.source;
  request.arm.build =
      place->workspace.home / "folder-builds" / Sha256Hex(source.string()).substr(0, 16);
  request.programs = place->workspace.programs;
  request.log = place->workspace.home / "folder-builds" / "build.log";
  if (place->target.build_on_device)
    request.runner = RunnerPrefix(place->workspace, place->target.device,
                                  place->target.build_limit_ms, "normal");
  CRUCIBLE_TRY(MakeDirectories(request.arm.build.parent_path()));
  return BuildArm(request);
}

}  // namespace crucible
