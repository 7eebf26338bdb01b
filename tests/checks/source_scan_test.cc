// Words that a target file refuses in a kernel's source: where they are found, and where they are
// none.
#include "checks/judge/source_scan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/json.h"
#include "tests/checks/judge_fixture.h"

namespace crucible::judge {
namespace {

namespace fs = std::filesystem;
using decide::Verdict;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRules[] =
    "[[integrity.refuse]]\nwords = [\"asm\", \"/proc\", \"sys/\"]\nexcept = ['asm(\"\" :']\n"
    "why = \"a kernel only computes\"\n";

class SourceScan : public Judge {
 protected:
  void SetUp() override {
    Judge::SetUp();
    auto target = ParseTarget(std::string(kFakeTarget) + kRules, folder_ / "t.toml");
    ASSERT_TRUE(target) << target.error().text;
    request_.target = *target;
    request_.target.editable = {"kernel/", "one.h"};
    request_.target.protected_ = {"kernel/given/"};
  }
  void Write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / file, text));
  }
  // "kernel/a.h:2 asm", …
  std::vector<std::string> Found() {
    const auto findings = ScanSource(request_.target, folder_);
    EXPECT_TRUE(findings) << findings.error().text;
    std::vector<std::string> lines;
    for (const Finding& finding : *findings)
      lines.push_back(fmt::format("{}:{} {}", finding.file, finding.line, finding.word));
    return lines;
  }
};

TEST_F(SourceScan, NamesFileLineAndWordInEveryFileThatMayBeChanged) {
  Write("kernel/a.h", "int x;\n  asm volatile(\"nop\");\n");
  Write("kernel/deep/b.txt", "#include <sys/mman.h>\n// reads \"/proc\" too\n");
  Write("one.h", "int y;\n");
  EXPECT_THAT(Found(), ::testing::ElementsAre("kernel/a.h:2 asm", "kernel/deep/b.txt:1 sys/",
                                              "kernel/deep/b.txt:2 /proc"));
}

TEST_F(SourceScan, IsAboutWholeWordsAndLeavesOutWhatIsExceptedOrProtected) {
  Write("kernel/a.h", "int plasma, asm_count, _asm; asm(\"\" : \"+x\"(v)); /processor my_sys/x\n");
  Write("kernel/given/main.cc", "asm(\"nop\");\n");
  Write("two.h", "asm(\"nop\");\n");  // not editable: nobody could have changed it
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(SourceScan, SeesAWordThatGoesOverALineEnd) {
  Write("kernel/a.h", "int x;\na\\\ns\\\r\nm(\"nop\");\nint y; asm(1)\n");
  EXPECT_THAT(Found(), ::testing::ElementsAre("kernel/a.h:2 asm", "kernel/a.h:5 asm"));
}

TEST_F(SourceScan, ALinkIsRefusedBecauseItsTargetIsNotSearched) {
  Write("elsewhere", "asm\n");
  fs::create_directories(folder_ / "kernel");
  fs::create_symlink(folder_ / "elsewhere", folder_ / "kernel/a.h");
  const CheckRow row = SourceRow(request_.target, folder_);
  EXPECT_FALSE(row.result.pass);
  EXPECT_THAT(row.result.reason, HasSubstr("kernel/a.h: it is no ordinary file"));
}

TEST_F(SourceScan, IsARowOfTheQuickAndTheFullCheckAndFailsTheGateBeforeAnythingIsTimed) {
  Write("kernel/a.h", "int x;\n");
  Request request = With("time_us 97\n");
  for (const CheckLevel level : {CheckLevel::kQuick, CheckLevel::kFull}) {
    request.level = level;
    const auto report = RunCheck(request);
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(report->verdict, Verdict::kAccepted) << report->reason;
    EXPECT_EQ(report->checks.front().name, "source");
  }
  Write("kernel/a.h", "asm(\"nop\");\n");
  request.claims = {"small"};
  const auto report = RunGate(request);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_EQ(report->verdict, Verdict::kCheckFailed);
  EXPECT_TRUE(report->cases.empty());
  EXPECT_THAT(report->reason, HasSubstr("first source: kernel/a.h:1 has 'asm': a kernel only "
                                        "computes; write it without"));
}

TEST_F(SourceScan, ATargetFileWithoutAReasonIsRefused) {
  std::string text = std::string(kFakeTarget) + kRules;
  text.resize(text.find("why"));
  const auto refused = ParseTarget(text, folder_ / "t.toml");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("'why' is missing"));
}

// The kernels as they are hold none of the words that their targets refuse, and each of the words
// is found where it is written.
TEST_F(SourceScan, TheKernelsPassTheirTargetsRulesAndEveryWordOfThemIsFound) {
  for (const char* name : {"eigh_cpu", "eigh_h200"}) {
    const auto target =
        LoadTarget(std::string(CRUCIBLE_SOURCE_DIR "/missions/targets/") + name + ".toml");
    ASSERT_TRUE(target) << target.error().text;
    const CheckRow row = SourceRow(*target, CRUCIBLE_SOURCE_DIR);
    EXPECT_TRUE(row.result.pass) << row.result.reason;
    ASSERT_FALSE(target->integrity.refused.empty()) << name;
    request_.target.integrity = target->integrity;
    for (const RefusedWords& rule : target->integrity.refused)
      for (const std::string& word : rule.words) {
        Write("kernel/a.h", "int x;\n#define USE(y) " + word + " y\n");
        EXPECT_THAT(Found(), ::testing::Contains("kernel/a.h:2 " + word)) << name;
      }
  }
}

}  // namespace
}  // namespace crucible::judge
