// What a library is refused for before a line of it runs.
#include "checks/eigh/symbol_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace crucible::eigh {
namespace {

using ::testing::HasSubstr;

constexpr char kExploits[] = CRUCIBLE_LIB_DIR "/exploits/eigh_cpu/";
constexpr char kPeer[] = CRUCIBLE_LIB_DIR "/libeigh_peer_lapack.so";

TEST(SymbolPolicy, AKernelThatDoesItsOwnWorkIsAdmitted) {
  const auto symbols = CheckSymbols(std::string(kExploits) + "honest.so");
  EXPECT_TRUE(symbols) << symbols.error().text;
  EXPECT_TRUE(CheckNeeded(std::string(kExploits) + "honest.so"));
}

// A CUDA library is judged by the second rule alone; the file need not hold CUDA code for it.
TEST(SymbolPolicy, ALibraryThatLeavesTheWorkToAnotherIsRefusedByNameUnderBothRules) {
  for (const auto& refused : {CheckSymbols(kPeer), CheckNeeded(kPeer)}) {
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("admit libeigh_peer_lapack.so: it needs lib"));
  }
}

TEST(SymbolPolicy, AForbiddenCallIsNamed) {
  const auto refused = CheckSymbols(std::string(kExploits) + "loads_code.so");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("it calls dlsym"));
}

TEST(SymbolPolicy, WhatIsNoSharedLibraryIsRefusedAndNotRead) {
  const auto folder = MakeTemporaryDirectory("symbol-policy-test");
  ASSERT_TRUE(folder);
  for (const std::string& content : {std::string(),
                                     std::string("\x7f"
                                                 "ELF"),
                                     std::string(5000, 'x')}) {
    ASSERT_TRUE(WriteFileAtomically(*folder / "k.so", content));
    EXPECT_FALSE(CheckSymbols(*folder / "k.so"));
    EXPECT_FALSE(CheckNeeded(*folder / "k.so"));
  }
  EXPECT_FALSE(CheckNeeded(*folder / "none.so"));
  (void)RemoveTree(*folder);
}

}  // namespace
}  // namespace crucible::eigh
