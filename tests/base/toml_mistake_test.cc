// What a person is told of a TOML file that does not parse.
#include "base/toml_mistake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

namespace crucible {
namespace {

std::string Told(const std::string& text) {
  try {
    (void)toml::parse(text, std::string_view("f.toml"));
  } catch (const toml::parse_error& error) {
    return TomlMistake("read campaign", "f.toml", text, error, "see demo.toml").value().text;
  }
  return "it parses";
}

TEST(TomlMistake, SaysWhereWhatIsExpectedAndTheNextStep) {
  EXPECT_EQ(Told("name = \"a\"\nagents = two\n"),
            "read campaign f.toml:2:11: expected a text in quotes, a number, true, false, a [list] "
            "or a {table} after '=', not `agents = two`; see demo.toml");
}

TEST(TomlMistake, NamesWhatEachConstructNeeds) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"wall = 90s", "after '=', not `wall = 90s`"},
      {"a = yes", "expected a text in quotes"},
      {"a =", "expected a text in quotes"},
      {"a = 1 2", "expected a text in quotes"},
      {"x = 99999999999999999999", "expected a number of at most 64 bits"},
      {"[mission", "expected [NAME] or [[NAME]] on a line of its own, not `[mission`"},
      {"[mission]]", "expected [NAME]"},
      {"agents", "expected KEY = VALUE or [NAME], not `agents`"},
      {"agents: 2", "expected KEY = VALUE"},
      {"= 3", "expected KEY = VALUE"},
      {"a = \"x", "expected the text's closing quote"},
      {"a = 'x\n'", "expected the text's closing quote"},
      {"a = \"\\q\"", "expected a known escape"},
      {"a = [1 2]", "expected a comma or ] in a list"},
      {"a = [1,", "expected the ] of a list before the file ends"},
      {"a = {b = 1 c = 2}", "expected a comma or } in a table"},
      {"name = [\ntarget = \"t\"", "2:2: expected another value or the ] of the list that a line"},
      {"a = 1\na = 2", "2:5: expected 'a' once, and it is there already"},
      {"[a]\n[a]", "expected 'a' once"},
      {"a = \xff", "expected UTF-8 text"},
  };
  for (const auto& [text, wanted] : mistakes) {
    const std::string told = Told(text);
    EXPECT_NE(told.find(wanted), std::string::npos) << text << "\n" << told;
    EXPECT_EQ(told.find("saw"), std::string::npos) << told;
    EXPECT_EQ(told.find("parsing"), std::string::npos) << told;
  }
}

TEST(TomlMistake, ShowsNoMoreOfALineThanATerminalTakes) {
  const std::string told = Told("a = \x1b" + std::string(200, 'x') + "\n");
  EXPECT_EQ(told.find('\x1b'), std::string::npos);
  EXPECT_LT(told.size(), 260u) << told;
}

}  // namespace
}  // namespace crucible
