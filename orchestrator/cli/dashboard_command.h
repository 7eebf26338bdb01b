// dashboard_command.h: `crucible dashboard`: writes the progress page.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace crucible {

int DashboardCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace crucible
