// build_arm.h: builds a target in a checkout, through the runner where the target asks for it.
//
// The build's output goes to a log file; a failure quotes the compiler's first error lines and
// names that file. Builds of commits of main are cached by source hash with a marker that is
// written last, so a folder that a killed build left half done is built again.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/target.h"

namespace crucible {

struct BuildRequest {
  const Target* target = nullptr;
  Arm arm;                         // name, source, build, main; source_hash is filled in
  std::filesystem::path programs;  // crucible's own build/bin, for {bin} and {lib}
  std::vector<std::string> runner;  // argv prefix of each command ("…/gpu_run … --"); may be empty
  std::filesystem::path log;        // appended to
  std::map<std::string, std::string> environment;
};

// Runs the target's build commands in order, each under target.build_limit_ms. kTimeout at the
// limit, kUnavailable when a command fails. The arm's source_hash is a content hash of the files at
// the target's editable paths in arm.source.
Result<Arm> BuildArm(const BuildRequest& request);

// The same, skipped when `request.arm.build` already holds a finished build of that source hash.
Result<Arm> BuildArmOnce(const BuildRequest& request);

// Content hash of the files at the target's editable paths below `source` (build outputs and
// ignored files elsewhere do not count).
Result<std::string> SourceHash(const Target& target, const std::filesystem::path& source);

// The first lines of a build's output that say what is wrong, at most `most`.
std::string FirstErrorLines(const std::string& output, int most = 6);

}  // namespace crucible
