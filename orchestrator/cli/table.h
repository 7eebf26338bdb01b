// table.h: columns for people. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace crucible {

// One line a row, each column as wide as its longest text and two spaces from the next, nothing
// behind the last; `indent` spaces in front. The first row is the heading. Without any other row: "".
std::string TableText(const std::vector<std::vector<std::string>>& rows, int indent = 0);

}  // namespace crucible
