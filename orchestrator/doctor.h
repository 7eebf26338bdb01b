// doctor.h: looks at the machine and the repository and says what is ready, and what to do about
// the rest. Changes nothing; environment variables are told by name, never by value.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/workspace.h"

namespace crucible {

enum class Health { kOk, kWarn, kFail };

struct Finding {
  Health health = Health::kOk;
  std::string what;   // "compiler"
  std::string found;  // "c++ (Debian 12.2.0) 12.2.0"
  std::string next;   // what to do about it; empty when ok
};

// kFail: no campaign can run here; kWarn: something is less than it could be.
// `branch`: see Repository::Open.
std::vector<Finding> Examine(const std::filesystem::path& start, const std::string& branch,
                             const std::filesystem::path& programs);

}  // namespace crucible
