// The judge against harnesses that behave, misbehave and make their times up.
#include "checks/judge/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "checks/report.h"
#include "tests/checks/judge_fixture.h"

namespace crucible::judge {
namespace {

using decide::Verdict;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST_F(Judge, AcceptsAFasterArmAndSaysByHowMuch) {
  Request request = With("time_us 97\n");
  request.cases = {"small"};
  const auto report = RunCompare(request);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_EQ(report->verdict, Verdict::kAccepted) << report->reason;
  EXPECT_EQ(report->ExitCode(), 0);
  const nlohmann::json json = ToJson(*report);
  const auto& row = json["cases"].at(0);
  EXPECT_NEAR(row["ratio"].get<double>(), 0.97, 0.005);
  EXPECT_LT(row["ratio_high"].get<double>(), 1);
  EXPECT_EQ(row["role"], "claim");
  EXPECT_EQ(row["units"], 11);
  EXPECT_EQ(json["conditions"]["compiler"], "none");
  EXPECT_EQ(json["conditions"]["clock"], "unlocked");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["baseline"]["source_hash"], "hash of main");
  EXPECT_EQ(json["candidate"]["source_hash"], "hash of m1");
}

TEST_F(Judge, KeepsTheRangeOfTheGpusClockAmongTheConditions) {
  request_.baseline = MakeArm("main", "time_us 100\nsm_mhz 1965\n");
  Request request = With("time_us 97\nsm_mhz 1980\n");
  request.cases = {"small"};
  const auto report = RunCompare(request);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_EQ(ToJson(*report)["conditions"]["sm_mhz"], "1965 to 1980");
  EXPECT_FALSE(ToJson(*RunCheck(With("time_us 97\n")))["conditions"].contains("sm_mhz"));
}

TEST_F(Judge, DoesNotAcceptAnArmOfTheSameSpeed) {
  Request request = With("time_us 100\ntime_us.large 4000\nbuilt again\n");
  for (const char* rule : {"claim", "screen", "confirm"}) {
    request.rule = rule;
    const auto report = RunCompare(request);
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_NE(report->verdict, Verdict::kAccepted) << rule << ": " << report->reason;
    EXPECT_EQ(report->ExitCode(), 1);
  }
}

TEST_F(Judge, MeasuresNothingWhenBothArmsAreTheSameBytes) {
  Request request = With("time_us 90\nsha same\n");
  request.baseline = MakeArm("twin", "time_us 100\nsha same\n");
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kNoDifference);
  EXPECT_THAT(report->reason, HasSubstr("byte for byte"));
}

TEST_F(Judge, RejectsASlowerArm) {
  Request request = With("time_us 103\n");
  request.cases = {"small"};
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_NE(report->verdict, Verdict::kAccepted);
  EXPECT_EQ(report->verdict, Verdict::kRejected) << report->reason;
}

TEST_F(Judge, AClaimHoldsOnlyWhenEveryClaimedCaseIsFaster) {
  Request request = With("time_us 95\ntime_us.large 4000\n");
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_NE(report->verdict, Verdict::kAccepted);
  EXPECT_EQ(report->cases.at(0).verdict, Verdict::kAccepted);
  EXPECT_THAT(report->reason, HasSubstr("large"));
}

TEST_F(Judge, FlagsAGainThatIsTooGood) {
  Request request = With("time_us 5\n");
  request.cases = {"small"};
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kFlagged) << report->reason;
  EXPECT_EQ(report->ExitCode(), 1);
}

TEST_F(Judge, TheGateFlagsAnUnclaimedCaseThatIsTooGood) {
  Request request = With("time_us 97\ntime_us.large 100\n");
  request.claims = {"small"};
  const auto report = RunGate(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kFlagged) << report->reason;
  EXPECT_EQ(report->ExitCode(), 1);
  EXPECT_THAT(report->reason, HasSubstr("ratchet large: 4"));
  EXPECT_THAT(report->reason, HasSubstr("a person looks first"));
  Request slower = With("time_us 120\ntime_us.large 100\n");
  const auto rejected = RunRatchet(slower);
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->verdict, Verdict::kRejected) << rejected->reason;
}

TEST_F(Judge, ACheckThatChecksNothingIsAUsageErrorAndPassesNothing) {
  Request request = With("time_us 97\n");
  request.level = CheckLevel::kQuick;
  request.cases = {"wide n=3"};  // a full one
  auto report = RunCheck(request);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(report.error().text, HasSubstr("no such check of level quick"));
  request.level = CheckLevel::kFull;
  report = RunCheck(request);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_EQ(report->checks.size(), 1u);
  request.cases.clear();
  request.target.checks.clear();
  EXPECT_FALSE(RunCheck(request));
}

TEST_F(Judge, AFlaggedClaimIsRatchetedBecauseAPersonMayLetItIn) {
  Request holds = With("time_us 5\ntime_us.large 4000\n");
  holds.claims = {"small"};
  const auto held = RunGate(holds);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->verdict, Verdict::kFlagged) << held->reason;
  EXPECT_EQ(held->ExitCode(), 1);
  ASSERT_EQ(held->cases.size(), 2u);
  EXPECT_EQ(held->cases[1].role, "ratchet");
  Request slower = With("time_us 5\ntime_us.large 4400\n");
  slower.claims = {"small"};
  const auto rejected = RunGate(slower);
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->verdict, Verdict::kRejected) << rejected->reason;
  EXPECT_THAT(rejected->reason, HasSubstr("ratchet large"));
}

TEST_F(Judge, RefusesWhenTheBaselineDriftsAgainstItself) {
  Request request = With("time_us 90\ndrift 0.06\n");
  request.baseline = MakeArm("drifting", "time_us 100\ndrift 0.06\n");
  request.cases = {"small"};
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kRefused) << report->reason;
  EXPECT_THAT(report->reason, HasSubstr("drifted"));
}

TEST_F(Judge, RefusesOnADeviceThatIsHeldBack) {
  Request request = With("time_us 90\nmode throttled\n");
  request.cases = {"small"};
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_NE(report->verdict, Verdict::kAccepted);
  EXPECT_EQ(report->verdict, Verdict::kRefused) << report->reason;
}

struct Mischief {
  std::string mode;
  Verdict verdict;
  std::string says;
};

TEST_F(Judge, NamesWhatTheCandidateDidWrong) {
  const std::vector<Mischief> list = {
      {"crash_hello", Verdict::kCrashed, "signal 6"},
      {"crash_slot", Verdict::kCrashed, "signal 6"},
      {"hang_slot", Verdict::kCrashed, "no reply in 0.3 s"},
      {"malformed_slot", Verdict::kCrashed, "calls 31, median"},
      {"unverified", Verdict::kCheckFailed, "output 5 holds NaN"},
      {"refuse_prepare", Verdict::kCheckFailed, "input 3: orthogonality 512"},
      {"old_protocol", Verdict::kCrashed, "protocol"},
      {"no_target", Verdict::kCrashed, "'other', not 'fake'"},
  };
  for (const Mischief& mischief : list) {
    Request request = With("time_us 90\nmode " + mischief.mode + "\n");
    request.cases = {"small"};
    request.quick_check = false;
    request.target.limits.request_limit_ms = 300;
    const auto report = RunCompare(request);
    ASSERT_TRUE(report) << mischief.mode << report.error().text;
    EXPECT_EQ(report->verdict, mischief.verdict) << mischief.mode << ": " << report->reason;
    EXPECT_THAT(report->reason, HasSubstr(mischief.says)) << mischief.mode;
    EXPECT_THAT(report->reason, HasSubstr("candidate m1")) << mischief.mode;
    EXPECT_EQ(report->ExitCode(), 1) << mischief.mode;
  }
}

TEST_F(Judge, ABrokenBaselineIsNoVerdictOnTheCandidate) {
  Request request = With("time_us 90\n");
  request.baseline = MakeArm("broken", "time_us 100\nmode crash_slot\n");
  const auto report = RunCompare(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ExitCode(), 3);
  EXPECT_THAT(report->error, HasSubstr("baseline broken"));
  EXPECT_FALSE(ToJson(*report)["pass"].get<bool>());
}

TEST_F(Judge, AMissingHarnessIsTheMachinesFault) {
  Request request = With("time_us 90\n");
  request.target.harness = {"/no/such/harness"};
  const auto report = RunCheck(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ExitCode(), 3);
  EXPECT_THAT(report->error, HasSubstr("/no/such/harness"));
}

TEST_F(Judge, RunsAllChecksAndReportsEachFailure) {
  Request request = With("mode wrong_check\n");
  const auto report = RunCheck(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kCheckFailed);
  ASSERT_EQ(report->checks.size(), 4u);
  for (const CheckRow& row : report->checks) {
    EXPECT_FALSE(row.result.pass);
    EXPECT_THAT(row.result.reason, HasSubstr("812"));
  }
  EXPECT_EQ(ToJson(*report)["checks"][0]["margins"]["eigen"], 812);
  request.level = CheckLevel::kQuick;
  EXPECT_EQ(RunCheck(request)->checks.size(), 2u);
}

TEST_F(Judge, OneCrashingCheckDoesNotHideTheOthers) {
  Request request = With("mode crash_check\nonly zero n=8\n");
  request.candidate = MakeArm("m2", "mode crash_check\nonly zero\n");
  request.target.checks[1].name = "zero";
  const auto report = RunCheck(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kCrashed);
  ASSERT_EQ(report->checks.size(), 4u);
  EXPECT_TRUE(report->checks[0].result.pass);
  EXPECT_FALSE(report->checks[1].result.pass);
  EXPECT_THAT(report->checks[1].result.reason, HasSubstr("about to read past the end"));
  EXPECT_TRUE(report->checks[3].result.pass);
}

TEST_F(Judge, PassingChecksKeepTheirMargins) {
  const auto report = RunCheck(With("time_us 90\n"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ExitCode(), 0) << report->reason;
  EXPECT_EQ(ToJson(*report)["checks"][3]["limits"]["eigen"], 200);
}

TEST_F(Judge, QuickChecksComeBeforeAnyMeasurement) {
  const auto report = RunCompare(With("time_us 50\nmode wrong_check\n"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kCheckFailed);
  EXPECT_EQ(report->checks.size(), 2u);
  EXPECT_TRUE(report->cases.empty());
}

TEST_F(Judge, TheRatchetCatchesOneSlowCase) {
  const auto report = RunRatchet(With("time_us 90\ntime_us.large 4200\n"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kRejected) << report->reason;
  EXPECT_EQ(report->cases.at(0).verdict, Verdict::kAccepted);
  EXPECT_EQ(report->cases.at(1).verdict, Verdict::kRejected);
  EXPECT_DOUBLE_EQ(report->cases.at(0).limit, 0.04) << "short cases get the short limit";
  EXPECT_DOUBLE_EQ(report->cases.at(1).limit, 0.02);
}

TEST_F(Judge, TheGatePassesAClaimWhoseOtherCasesHold) {
  Request request = With("time_us 95\ntime_us.large 4010\n");
  request.claims = {"small"};
  const auto report = RunGate(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kAccepted) << report->reason;
  EXPECT_EQ(report->checks.size(), 4u);
  ASSERT_EQ(report->cases.size(), 2u);
  EXPECT_EQ(report->cases[0].role, "claim");
  EXPECT_EQ(report->cases[1].role, "ratchet");
}

TEST_F(Judge, TheGateFailsAClaimThatSlowsAnotherCase) {
  Request request = With("time_us 95\ntime_us.large 4200\n");
  request.claims = {"small"};
  const auto report = RunGate(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kRejected) << report->reason;
  EXPECT_THAT(report->reason, HasSubstr("large"));
}

TEST_F(Judge, TheGateWithoutClaimsIsCheckAndRatchet) {
  const auto report = RunGate(With("time_us 100\ntime_us.large 4000\nsimpler\n"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->verdict, Verdict::kAccepted) << report->reason;
  EXPECT_EQ(report->cases.size(), 2u);
}

TEST_F(Judge, MeasuresEveryCaseAndItsPeers) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "peer_plan", "time_us 130\n"));
  Request request = With("time_us 90\n");
  request.with_peers = true;
  const auto report = RunMeasure(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ExitCode(), 0) << report->reason;
  ASSERT_EQ(report->cases.size(), 2u);
  EXPECT_NEAR(report->cases[0].median_us, 90, 1);
  EXPECT_LE(report->cases[0].low_us, report->cases[0].median_us);
  ASSERT_EQ(report->peers.size(), 2u);
  EXPECT_NEAR(report->peers[0].median_us, 130, 2);
  const std::string table = RenderReport(ToJson(*report));
  EXPECT_THAT(table, HasSubstr("library"));
  EXPECT_THAT(table, HasSubstr("small"));
}

TEST_F(Judge, APeerThatFailsIsNotedAndHarmsNobody) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "peer_plan", "mode crash_slot\n"));
  Request request = With("time_us 90\n");
  request.with_peers = true;
  const auto report = RunMeasure(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ExitCode(), 0) << report->reason;
  EXPECT_THAT(report->peers.at(0).error, HasSubstr("peer library"));
}

TEST_F(Judge, ExploitsMustBeCaughtEachForItsOwnReason) {
  Request request = With("time_us 90\n");
  const auto add = [&](const std::string& name, const std::string& plan,
                       const std::string& expects) {
    const Arm arm = MakeArm(name, plan);
    request.target.exploits.push_back({.name = name,
                                       .command = {CRUCIBLE_FAKE_HARNESS, arm.build / "plan"},
                                       .expects = {expects}});
  };
  add("leaves_nan", "mode unverified\n", "holds NaN");
  add("wrong_answer", "mode wrong_check\n", "residual 812");
  const auto caught = RunExploits(request);
  ASSERT_TRUE(caught) << caught.error().text;
  EXPECT_EQ(caught->ExitCode(), 0) << caught->reason;
  add("honest", "time_us 90\n", "anything");
  const auto through = RunExploits(request);
  EXPECT_EQ(through->ExitCode(), 1);
  EXPECT_THAT(through->reason, HasSubstr("honest: let through"));
  request.target.exploits.pop_back();
  add("other_reason", "mode crash_slot\n", "canary");
  EXPECT_THAT(RunExploits(request)->reason, HasSubstr("rejected, but not for \"canary\""));
}

TEST_F(Judge, AHarnessThatRejectsEverythingCatchesNoExploits) {
  Request request = With("mode wrong_check\n");
  const Arm arm = MakeArm("cheat", "mode wrong_check\n");
  request.target.exploits = {{.name = "cheat",
                              .command = {CRUCIBLE_FAKE_HARNESS, arm.build / "plan"},
                              .expects = {"812"}}};
  EXPECT_EQ(RunExploits(request)->verdict, Verdict::kCheckFailed);
}

TEST_F(Judge, TheSameSeedGivesTheSameDecision) {
  Request request = With("time_us 99\nnoise 0.01\n");
  request.cases = {"small"};
  request.rule = "screen";
  const auto first = RunCompare(request), second = RunCompare(request);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(ToJson(*first)["cases"], ToJson(*second)["cases"]);
}

TEST_F(Judge, AMissingBaselineOrCaseIsAUsageError) {
  Request request = With("time_us 90\n");
  request.cases = {"huge"};
  EXPECT_EQ(RunCompare(request).error().kind, ErrorKind::kUsage);
  request.cases = {};
  request.baseline.reset();
  EXPECT_EQ(RunCompare(request).error().kind, ErrorKind::kUsage);
  request.rule = "guess";
  EXPECT_EQ(RunCompare(request).error().kind, ErrorKind::kUsage);
}

TEST(Report, RendersAPairedReport) {
  const nlohmann::json json = nlohmann::json::parse(R"({"op":"compare","verdict":"accepted",
    "reason":"n32: faster","wall_ms":5300,"seed":3,"checks":[{"case":"dense n=8","pass":false,
    "reason":"eigen 812"}],"cases":[{"case":"n32","role":"claim","verdict":"accepted",
    "before_us":120.5,"after_us":110.25,"ratio":0.915,"ratio_low":0.91,"ratio_high":0.92,
    "rounds":11,"wins":11,"reason":"faster"}]})");
  const std::string table = RenderReport(json);
  for (const char* expected : {"compare: accepted", "0.9150", "0.9100 … 0.9200", "120.5",
                               "dense n=8", "eigen 812", "5.3 s", "seed 3"})
    EXPECT_THAT(table, HasSubstr(expected));
  EXPECT_THAT(RenderReport(nlohmann::json::array()), HasSubstr("not a report"));
}

}  // namespace
}  // namespace crucible::judge
