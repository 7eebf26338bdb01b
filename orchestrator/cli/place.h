// place.h: the repository a command was called in, with the target it means.
#pragma once

#include <string>

#include "base/result.h"
#include "checks/target.h"
#include "orchestrator/repository.h"
#include "orchestrator/workspace.h"

namespace crucible {

struct Place {
  Workspace workspace;
  Target target;
  Repository repository;
};

// `target`: a name or a file, see FindTargetFile; `branch`: see Repository::Open.
Result<Place> OpenPlace(const std::string& target, const std::string& branch);

// A folder as it stands or a revision, built (through the runner where the target asks for it), or a
// library that is built already (NAME.so).
Result<Arm> ArmOf(Place* place, const std::string& what);

}  // namespace crucible
