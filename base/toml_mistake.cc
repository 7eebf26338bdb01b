#include "base/toml_mistake.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace crucible {
namespace {

constexpr std::size_t kMostShown = 60;  // bytes of a line
constexpr char kAValue[] = "a text in quotes, a number, true, false, a [list] or a {table}";

bool Has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

std::string_view Line(std::string_view text, std::size_t number) {
  for (; number > 1; --number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string_view Bare(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string Shown(std::string_view text) {
  std::string shown = Printable(ValidUtf8(Bare(text), kMostShown));
  return shown + (Bare(text).size() > kMostShown ? "…" : "");
}

// The word between the first quotes of the parser's words.
std::string Quoted(std::string_view said) {
  const std::size_t first = said.find('\'');
  const std::size_t end = said.find('\'', first + 1);
  if (first == std::string_view::npos || end == std::string_view::npos) return "";
  return std::string(said.substr(first + 1, end - first - 1));
}

std::string ExpectedValue(std::string_view line, std::size_t column, std::string_view said) {
  const std::size_t equals = line.find('=');
  // Not after this line's '=': the parser is in a list that a line above begins.
  if (equals == std::string_view::npos || column <= equals + 1)
    return "expected another value or the ] of the list that a line above begins";
  if (Bare(line.substr(equals + 1)).empty()) return fmt::format("expected {} after '='", kAValue);
  if (Has(said, "representable")) return "expected a number of at most 64 bits";
  return fmt::format("expected {} after '='", kAValue);
}

// What the parser was reading: "Error while parsing WHAT: …".
std::string Expected(std::string_view line, std::size_t column, std::string_view said) {
  constexpr std::string_view kWhile = "while parsing ";
  const std::size_t at = said.find(kWhile);
  const std::string_view rest = at == std::string_view::npos ? "" : said.substr(at + kWhile.size());
  const std::string_view what = rest.substr(0, rest.find(':'));
  const bool ended = Has(rest, "end-of-file");
  if (Has(said, "utf-8")) return "expected UTF-8 text";
  if (Has(rest, "cannot redefine"))
    return fmt::format("expected '{}' once, and it is there already", Quoted(rest));
  if (Has(what, "string"))
    return Has(rest, "escape") ? "expected a known escape after \\ (\\\\ for the \\ itself)"
                               : "expected the text's closing quote on the same line";
  if (what == "table header") return "expected [NAME] or [[NAME]] on a line of its own";
  if (what == "array")
    return ended ? "expected the ] of a list before the file ends"
                 : "expected a comma or ] in a list";
  if (what == "inline table")
    return ended ? "expected the } of a table on the same line"
                 : "expected a comma or } in a table";
  if (what == "key" || what == "root table" || Has(rest, "expected '='"))
    return "expected KEY = VALUE or [NAME]";
  if (what == "key-value pair" && ended && !Has(line, "=")) return "expected KEY = VALUE or [NAME]";
  return ExpectedValue(line, column, said);
}

}  // namespace

std::string TomlMistakeAt(std::string_view text, std::size_t line, std::size_t column,
                          std::string_view said) {
  const std::string_view whole = Line(text, line);
  const std::string shown = Shown(whole);
  return Expected(whole, column, said) + (shown.empty() ? "" : fmt::format(", not `{}`", shown));
}

}  // namespace crucible
