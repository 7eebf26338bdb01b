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

// `target`: a name or a file, see FindTargetFile.
Result<Place> OpenPlace(const std::string& target);

// Built (through the runner where the target asks for it): a folder as it stands, else a revision.
Result<Arm> ArmOf(Place* place, const std::string& folder_or_revision);

}  // namespace crucible
