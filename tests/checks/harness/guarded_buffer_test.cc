#include "checks/harness/guarded_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace crucible {
namespace {

using ::testing::HasSubstr;

TEST(GuardedBuffer, IsWholeWhenOnlyItsOwnBytesAreWritten) {
  for (const std::size_t bytes : {0, 1, 63, 64, 5000}) {
    GuardedBuffer buffer("the output", bytes, 42);
    if (bytes > 0) std::memset(buffer.data(), 0xab, bytes);
    EXPECT_EQ(buffer.Damage(), "") << bytes;
  }
}

TEST(GuardedBuffer, NamesTheFirstByteWrittenOutside) {
  GuardedBuffer buffer("the output", 100, 42);
  buffer.data()[100] ^= std::byte{1};
  EXPECT_THAT(buffer.Damage(), HasSubstr("past the end of the output (100 bytes): byte 0 behind"));
  buffer.Place();
  EXPECT_EQ(buffer.Damage(), "");
  buffer.data()[-1] ^= std::byte{1};
  EXPECT_THAT(buffer.Damage(), HasSubstr("before the start of the output"));
  buffer.Place();
  buffer.data()[100 + 4095] ^= std::byte{0x80};  // the last byte that is watched
  EXPECT_THAT(buffer.Damage(), HasSubstr("byte 4095 behind"));
}

TEST(GuardedBuffer, MovesToAlignedAddressesThatSeldomRepeat) {
  GuardedBuffer buffer("the input", 1000, 7);
  std::set<std::byte*> places;
  for (int i = 0; i < 200; ++i) {
    buffer.Place();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    places.insert(buffer.data());
  }
  EXPECT_GT(places.size(), 150u);
}

TEST(GuardedBuffer, CanariesDifferFromBufferToBuffer) {
  GuardedBuffer one("a", 64, 1), two("b", 64, 2);
  EXPECT_NE(std::memcmp(one.data() + 64, two.data() + 64, 64), 0);
}

}  // namespace
}  // namespace crucible
