#include "base/printable.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace crucible
