// take_keys.h: takes the keys out of a process that starts other people's code.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace crucible {

// Removes KeyVariables() and `more` from this process's environment, so that no build, judge or
// harness inherits one, and returns what was there, for the children that reach a provider. Not
// while other threads run.
std::map<std::string, std::string> TakeKeysFromEnvironment(const std::vector<std::string>& more);

}  // namespace crucible
