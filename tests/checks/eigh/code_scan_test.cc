// Machine code that a kernel is refused for, and the same bytes where they are something else.
#include "checks/eigh/code_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "checks/eigh/elf_file.h"

namespace crucible::eigh {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path Exploit(const std::string& name) {
  return fs::path(CRUCIBLE_LIB_DIR "/exploits/eigh_cpu") / (name + ".so");
}

TEST(CodeScan, KernelsThatComputeAreAdmitted) {
  for (const fs::path& library : {Exploit("honest"), Exploit("caches_by_pointer"),
                                  fs::path(CRUCIBLE_LIB_DIR "/libeigh_cpu.so"),
                                  fs::path(CRUCIBLE_LIB_DIR "/libcrucible_eigh.so"),
                                  fs::path(CRUCIBLE_LIB_DIR "/exploits/eigh_cuda/honest.so")}) {
    if (!fs::exists(library)) continue;  // a CUDA one, of a build without CUDA
    const auto admitted = CheckCode(library);
    EXPECT_TRUE(admitted) << admitted.error().text;
  }
}

#if defined(__x86_64__)
// As any kernel may, in displacements and constants: so bytes alone are no reason.
TEST(CodeScan, TheBytesOfASystemCallInsideAConstantAreNone) {
  const auto elf = ReadElfFile(Exploit("honest_constant"));
  ASSERT_TRUE(elf) << elf.error().text;
  std::size_t hits = 0;
  for (const ElfSegment& segment : elf->segments)
    if (segment.executable)
      for (std::size_t at = 0; (at = segment.bytes.find("\x0f\x05", at)) != std::string::npos; ++at)
        ++hits;
  EXPECT_GT(hits, 0u);
  const auto admitted = CheckCode(Exploit("honest_constant"));
  EXPECT_TRUE(admitted) << admitted.error().text;
}
#endif

struct Case {
  const char* name;
  const char* reason;
};
void PrintTo(const Case& item, std::ostream* out) { *out << item.name; }

class CodeScanRefuses : public ::testing::TestWithParam<Case> {};

TEST_P(CodeScanRefuses, ForWhatItHolds) {
  const auto refused = CheckCode(Exploit(GetParam().name));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr(GetParam().reason));
  EXPECT_THAT(refused.error().text, HasSubstr("docs/measurement.md"));
}

INSTANTIATE_TEST_SUITE_P(
    All, CodeScanRefuses,
    ::testing::Values(Case{"starts_process", "it makes a system call of its own: "},
                      Case{"signals_others", "it makes a system call of its own: "},
#if defined(__x86_64__)
                      Case{"hides_call", "it jumps into the middle of the instruction at 0x"},
#endif
                      Case{"reads_counter", "it reads the processor's counter: "},
                      Case{"chooses_at_load", "its own code runs while it is loaded"},
                      Case{"writable_code", "memory that is both written and executed"},
                      Case{"relocates_code", "its code is written to while it is loaded"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace crucible::eigh
