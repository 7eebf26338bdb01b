#include "orchestrator/cli/place.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/hash.h"
#include "base/paths.h"
#include "orchestrator/baseline.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/judge.h"

namespace crucible {

Result<Place> OpenPlace(const std::string& target_name, const std::string& branch) {
  CRUCIBLE_ASSIGN(const Workspace workspace, FindWorkspace());
  CRUCIBLE_ASSIGN(const std::filesystem::path file, FindTargetFile(target_name));
  CRUCIBLE_ASSIGN(Target target, LoadTarget(file));
  CRUCIBLE_ASSIGN(const std::filesystem::path here, CurrentFolder());
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(here, branch));
  CRUCIBLE_TRY(PrepareHome(workspace));
  return Place{workspace, std::move(target), std::move(repository)};
}

namespace {

// A library that somebody built: it goes where the target's harness looks for its own.
Result<Arm> ArmOfLibrary(Place* place, const BaselineContext& context,
                         const std::filesystem::path& library) {
  constexpr std::string_view kBuild = "{build}/";
  std::string name;
  for (const std::string& word : place->target.harness)
    if (name.empty() && word.starts_with(kBuild)) name = word.substr(kBuild.size());
  if (name.empty())
    return Fail(ErrorKind::kUsage, "measure library", library.string(),
                "the harness of target " + place->target.name + " takes no file of {build}",
                "give a folder or a revision");
  CRUCIBLE_ASSIGN(const std::string hash, Sha256HexOfFile(library));
  CRUCIBLE_ASSIGN(const std::string tip, place->repository.MainTip());
  CRUCIBLE_ASSIGN(const Arm main, BaselineArm(context, tip));
  Arm arm;
  arm.name = library.filename().string();
  arm.source = arm.main = main.source;
  arm.build = place->workspace.home / "folder-builds" / ("library-" + hash.substr(0, 16));
  arm.source_hash = hash;
  const std::filesystem::path copy = arm.build / name;
  if (const auto there = Sha256HexOfFile(copy); there && *there == hash) return arm;
  CRUCIBLE_TRY(MakeDirectories(copy.parent_path()));
  // Moved into place: another comparison may have a file of that name loaded.
  const std::filesystem::path whole = copy.string() + "." + RandomHex(6);
  std::error_code failed;
  std::filesystem::copy_file(library, whole, failed);
  if (!failed) std::filesystem::rename(whole, copy, failed);
  if (failed)
    return Fail(ErrorKind::kIo, "copy library", library.string(), failed.message(),
                "check its permissions and the free space of " + arm.build.string());
  return arm;
}

}  // namespace

Result<Arm> ArmOf(Place* place, const std::string& what) {
  std::error_code ignored;
  const BaselineContext context{&place->workspace, &place->target, &place->repository, ""};
  if (std::filesystem::is_regular_file(what, ignored) &&
      std::filesystem::path(what).extension() == ".so")
    return ArmOfLibrary(place, context, what);
  if (!std::filesystem::is_directory(what, ignored)) {
    const auto commit = place->repository.Resolve(what);
    if (!commit)
      return Fail(ErrorKind::kNotFound, "measure", what,
                  std::filesystem::exists(what, ignored)
                      ? "it is a file, and no built library (NAME.so)"
                      : "it is no folder, no built library (NAME.so) and no revision of this "
                        "repository",
                  "name a folder, a library or a branch, tag or commit");
    return BaselineArm(context, *commit);
  }
  const std::filesystem::path source = std::filesystem::canonical(what);
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
