// printable.h: text of others (an agent's words, a tool's output) made fit for a person's terminal.
#pragma once

#include <string>
#include <string_view>

namespace crucible {

// Without what a terminal would obey: each C0 control except newline and tab, DEL, and each C1
// control in UTF-8 becomes a '?'. Pure.
std::string Printable(const std::string& text);

// Whole UTF-8 characters of `text`, at most `most_bytes` of them together; each byte that belongs to
// none becomes U+FFFD. Pure.
std::string ValidUtf8(std::string_view text, std::size_t most_bytes = std::string_view::npos);

}  // namespace crucible
