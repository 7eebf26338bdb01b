// printable.h: text of others (an agent's words, a tool's output) made fit for a person's terminal.
#pragma once

#include <string>

namespace crucible {

// Without what a terminal would obey: each C0 control except newline and tab, DEL, and each C1
// control in UTF-8 becomes a '?'. Pure.
std::string Printable(const std::string& text);

}  // namespace crucible
