// The part of the full check that a separate tool makes, with a shell script as the tool.
#include "checks/judge/tool_check.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "checks/report.h"
#include "tests/checks/judge_fixture.h"

namespace crucible::judge {
namespace {

using decide::Verdict;
using ::testing::HasSubstr;
using ::testing::Not;

// What compute-sanitizer prints of a write out of bounds, shortened.
constexpr char kFinding[] =
    "========= COMPUTE-SANITIZER\n"
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at sweep(float *)+0x60\n"
    "=========     Address 0x7f0 is out of bounds\n"
    "========= ERROR SUMMARY: 1 error\n";

class ToolCheckTest : public Judge {
 protected:
  // A tool that runs what it is given, and then answers as `ending` says.
  void InstallTool(const std::string& ending) {
    Script("checker", "[ \"$1\" = --quietly ] || exit 3\nshift\n\"$@\" || exit 9\n" + ending);
    request_.target.tool_checks = {
        {"memcheck n=8",
         (folder_ / "checker").string(),
         {"{tool}", "--quietly", "sh", "-c", "echo ran >>\"{build}/ran\""}}};
  }
  void Script(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / name, "#!/bin/sh\n" + text));
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  Report Check(CheckLevel level = CheckLevel::kFull) {
    Request request = With("time_us 97\n");
    request.level = level;
    const auto report = RunCheck(request);
    EXPECT_TRUE(report) << report.error().text;
    return report ? *report : Report{};
  }
  bool Ran() const { return std::filesystem::exists(folder_ / "m1" / "ran"); }
};

TEST_F(ToolCheckTest, IsARowOfTheFullCheckAndRunsOnTheCandidatesBuild) {
  InstallTool("exit 0\n");
  const Report report = Check();
  EXPECT_EQ(report.verdict, Verdict::kAccepted) << report.reason;
  EXPECT_TRUE(Ran());
  ASSERT_EQ(report.checks.size(), 5u);
  EXPECT_EQ(report.checks.back().name, "memcheck n=8");
  EXPECT_EQ(report.reason, "all 5 checks pass");
}

TEST_F(ToolCheckTest, WhatTheToolFindsFailsTheCheckInTheToolsOwnWords) {
  InstallTool("cat <<'END'\n" + std::string(kFinding) + "END\nexit 9\n");
  const Report report = Check();
  EXPECT_EQ(report.verdict, Verdict::kCheckFailed);
  EXPECT_THAT(report.reason, HasSubstr("memcheck n=8: "));
  EXPECT_THAT(report.reason, HasSubstr("Invalid __global__ write of size 4 bytes"));
  EXPECT_THAT(report.reason, HasSubstr("exit code 9"));
}

TEST_F(ToolCheckTest, FailsTheGateBeforeAnythingIsTimed) {
  InstallTool("echo 'Invalid read'; exit 9\n");
  Request request = With("time_us 97\n");
  request.claims = {"small"};
  const auto report = RunGate(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kCheckFailed);
  EXPECT_TRUE(report->cases.empty());
}

TEST_F(ToolCheckTest, AMachineWithoutTheToolSaysSoAndPassesTheRest) {
  InstallTool("exit 0\n");
  request_.target.tool_checks[0].tool = "no-such-memory-checker";
  const Report report = Check();
  EXPECT_EQ(report.verdict, Verdict::kAccepted);
  EXPECT_FALSE(Ran());
  EXPECT_EQ(report.reason,
            "all 4 checks pass; 1 not run (memcheck n=8: there is no no-such-memory-checker on "
            "this machine)");
  EXPECT_EQ(report.conditions.at("no-such-memory-checker"), "not on this machine");
  const nlohmann::json json = ToJson(report);
  EXPECT_THAT(json["checks"].back()["not_run"].get<std::string>(), HasSubstr("there is no"));
  EXPECT_THAT(RenderReport(json), HasSubstr("check: accepted — all 4 checks pass; 1 not run"));
  EXPECT_THAT(RenderReport(json), Not(HasSubstr("4 of 4"))) << "said once";
}

TEST_F(ToolCheckTest, ACandidateThatHangsUnderTheToolFails) {
  InstallTool("exec sleep 100\n");
  const CheckRow row = RunToolCheck(request_.target.tool_checks[0], MakeArm("m1", ""), 200);
  EXPECT_FALSE(row.result.pass);
  EXPECT_THAT(row.result.reason, HasSubstr("did not end within 0.2 s"));
}

TEST_F(ToolCheckTest, IsNoPartOfTheQuickCheckOrOfOneThatWasChosen) {
  InstallTool("exit 9\n");
  EXPECT_EQ(Check(CheckLevel::kQuick).verdict, Verdict::kAccepted);
  Request request = With("time_us 97\n");
  request.cases = {"wide n=3"};
  const auto report = RunCheck(request);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_EQ(report->verdict, Verdict::kAccepted) << report->reason;
  EXPECT_FALSE(Ran());
}

TEST_F(ToolCheckTest, FindingsAreTheErrorsOrElseTheLastWords) {
  EXPECT_EQ(Findings(kFinding), "Invalid __global__ write of size 4 bytes; ERROR SUMMARY: 1 error");
  EXPECT_EQ(Findings("a\nb\n\nc\nd\n"), "b; c; d");
  EXPECT_EQ(Findings(""), "");
}

TEST_F(ToolCheckTest, ATargetFileSaysWhichAndWhereTheToolGoes) {
  const std::string good = std::string(kFakeTarget) +
                           "[[tool_check]]\nname = \"memcheck\"\ntool = \"compute-sanitizer\"\n"
                           "command = [\"{tool}\", \"{build}/bench\"]\n";
  const auto target = ParseTarget(good, folder_ / "t.toml");
  ASSERT_TRUE(target) << target.error().text;
  ASSERT_EQ(target->tool_checks.size(), 1u);
  EXPECT_EQ(target->tool_checks[0].tool, "compute-sanitizer");
  std::string bad = good;
  bad.replace(bad.find("{tool}"), 6, "memcheck");
  const auto refused = ParseTarget(bad, folder_ / "t.toml");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("does not name {tool}"));
}

}  // namespace
}  // namespace crucible::judge
