// brief_command.h: `crucible brief [CASE…]`: prints what the log knows about cases.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace crucible {

int BriefCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace crucible
