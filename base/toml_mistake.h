// toml_mistake.h: a TOML file that does not parse, told for the person who wrote it.
//
// The parser's own words name what it tried to read ("boolean: expected 'true', saw 'tw'" of a text
// without quotes), so the line itself is looked at: what is expected there, where, and the line.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace crucible {

// What is expected at this place of `text`, and the line that has something else. Pure.
// `said`: the parser's own words; they tell the construct it was in.
std::string TomlMistakeAt(std::string_view text, std::size_t line, std::size_t column,
                          std::string_view said);

// "ACTION FILE:LINE:COLUMN: what is expected, not `the line`; NEXT_STEP". ParseError: toml++'s.
template <class ParseError>
tl::unexpected<Error> TomlMistake(std::string_view action, const std::string& file,
                                  std::string_view text, const ParseError& error,
                                  std::string_view next_step) {
  const auto at = error.source().begin;
  return Fail(ErrorKind::kUsage, action,
              file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column),
              TomlMistakeAt(text, at.line, at.column, error.description()), next_step);
}

}  // namespace crucible
