// profile_command.h: `crucible profile CASE`: where a case's time goes, as evidence in the log.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace crucible {

// Builds a checkout, has its harness prepare and time the case once under `gpu_run --profile`, and
// adds a note to the log with the report and its summary as evidence. See command.h.
int ProfileCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace crucible
