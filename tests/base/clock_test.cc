// Times as people read them.
#include "base/clock.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

TEST(FormatMicroseconds, GivesThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(FormatMicroseconds(12), "12.0 us");
  EXPECT_EQ(FormatMicroseconds(9.8), "9.80 us");
  EXPECT_EQ(FormatMicroseconds(652.3), "652 us");
  EXPECT_EQ(FormatMicroseconds(4684), "4.68 ms");
  EXPECT_EQ(FormatMicroseconds(25'800), "25.8 ms");
  EXPECT_EQ(FormatMicroseconds(1'250'000), "1250 ms");
}

TEST(FormatMicroseconds, NeverRoundsUpIntoAnExponent) {
  EXPECT_EQ(FormatMicroseconds(999.4), "999 us");
  EXPECT_EQ(FormatMicroseconds(999.7), "1.00 ms");
  EXPECT_EQ(FormatMicroseconds(999'499), "999 ms");
  EXPECT_EQ(FormatMicroseconds(999'700), "1000 ms");
}

}  // namespace
}  // namespace crucible
