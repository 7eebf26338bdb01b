#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/counted.h"
#include "base/json.h"

namespace crucible {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(Printable("n32 2.9 -> 1.0 ms\n\t– é 世界"), "n32 2.9 -> 1.0 ms\n\t– é 世界");
  EXPECT_EQ(Printable(""), "");
}

TEST(Printable, ReplacesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("\x1b[2Jgone\r\x07"), "?[2Jgone??");
  EXPECT_EQ(Printable(std::string("a\0b\x7f", 4)), "a?b?");
}

TEST(Printable, ReplacesC1ControlsWrittenInUtf8) {
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31mred"),
            "?31mred");
  EXPECT_EQ(Printable("\xc2\xa0"), "\xc2\xa0") << "a space that does not break is text";
  EXPECT_EQ(Printable("\xc2"), "\xc2") << "a cut character is no control";
}

TEST(ValidUtf8, ReplacesWhatIsNoCharacterAndCutsBetweenCharacters) {
  const std::string kUnknown = "\xef\xbf\xbd";
  EXPECT_EQ(ValidUtf8("caf\xe9!"), "caf" + kUnknown + "!");
  EXPECT_EQ(ValidUtf8("n32 – é 世界 \xf0\x9f\x94\xa5"), "n32 – é 世界 \xf0\x9f\x94\xa5");
  for (const char* bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_EQ(ValidUtf8(bad).substr(0, 3), kUnknown) << "overlong, surrogate, too large, alone";
  EXPECT_EQ(ValidUtf8("\xe4\xb8"), kUnknown + kUnknown) << "cut off";
  EXPECT_EQ(ValidUtf8("ab世", 4), "ab") << "a whole character or none of it";
  EXPECT_EQ(ValidUtf8("ab世", 5), "ab世");
}

TEST(JsonText, TakesAnyBytes) {
  EXPECT_EQ(JsonText({{"a", "caf\xe9"}}), "{\"a\":\"caf\xef\xbf\xbd\"}");
  EXPECT_EQ(JsonText(nlohmann::json::array({1}), 2), "[\n  1\n]");
}

TEST(Counted, SaysOneThingInTheSingular) {
  EXPECT_EQ(Counted(1, "mission"), "1 mission");
  EXPECT_EQ(Counted(0, "mission"), "0 missions");
  EXPECT_EQ(Counted(12u, "entry", "entries"), "12 entries");
  EXPECT_EQ(Counted(1, "turn is", "turns are"), "1 turn is");
}

}  // namespace
}  // namespace crucible
