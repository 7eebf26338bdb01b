// bounded.h: text for a model, cut to a size, the cut said and the whole kept where it can be read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace crucible {

// At most `most` bytes of text plus a line that says what is missing and where it is. Never cuts
// within a UTF-8 character, and bytes that are not UTF-8 become U+FFFD.
std::string Head(std::string_view text, std::size_t most, const std::string& where);

// The same with the middle left out: how an output ends says most about why.
std::string HeadAndTail(std::string_view text, std::size_t most, const std::string& where);

// Bytes that are not UTF-8 replaced: what goes into JSON must be text.
std::string ValidUtf8(std::string_view text);

// Cut to `most` bytes at a character, with "…" when something was cut.
std::string Shorten(std::string_view text, std::size_t most);

}  // namespace crucible
