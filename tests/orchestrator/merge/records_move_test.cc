// Records move by confirmed runs alone: what a merge does to the bar of its case.
#include <sys/wait.h>

#include "tests/orchestrator/merge/merge_fixture.h"

namespace crucible {
namespace {

class RecordsMove : public MergeFixture {
 protected:
  void SetUp() override {
    MergeFixture::SetUp();
    SetRecord(main_, 100);
  }
  Integration Merge(const MissionOrder& order, bool approved = false) {
    const auto merged = Integrate(order, approved);
    EXPECT_TRUE(merged) << merged.error().text;
    return merged ? *merged : Integration{};
  }
  void ExpectRecordStays() {
    const auto records = Records();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].first, main_);
    EXPECT_EQ(records[0].second, 100);
  }
};

TEST_F(RecordsMove, AConfirmedMergeMovesIt) {
  EXPECT_EQ(Merge(Ended("m1", "90", WriteTarget(""))).outcome, "landed");
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].first, Tip());
  EXPECT_NEAR(records[1].second, 90, 1);
}

TEST_F(RecordsMove, OneThatStaysInconclusiveDoesNotAndIsNoRejection) {
  EXPECT_EQ(Merge(Ended("m1", "90", WriteTarget("claim = \"1ms\"\n"))).outcome, "inconclusive");
  ExpectRecordStays();
  EXPECT_EQ(Tip(), main_);
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_EQ(Entries()[0].kind, EntryKind::kInconclusive);
}

TEST_F(RecordsMove, OneOnADeviceThatWasHeldBackDoesNot) {
  const auto target = WriteTarget("", "mode throttled\\n");
  EXPECT_EQ(Merge(Ended("m1", "90", target)).outcome, "inconclusive");
  ExpectRecordStays();
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_NE(Entries()[0].reason.find("held back"), std::string::npos) << Entries()[0].reason;
}

TEST_F(RecordsMove, OneThatIsNotFasterDoesNot) {
  EXPECT_EQ(Merge(Ended("m1", "100.01", WriteTarget(""))).outcome, "not_faster");
  ExpectRecordStays();
}

TEST_F(RecordsMove, OneWhoseCheckFailsDoesNot) {
  const auto target = WriteTarget("", "mode wrong_check\\n");
  EXPECT_EQ(Merge(Ended("m1", "90", target)).outcome, "check_failed");
  ExpectRecordStays();
}

TEST_F(RecordsMove, AGainThatAPersonMustSeeMovesItOnceThePersonHasSaidYes) {
  const MissionOrder order = Ended("m1", "5", WriteTarget(""));
  EXPECT_EQ(Merge(order).outcome, "flagged");
  ExpectRecordStays();
  EXPECT_EQ(Tip(), main_);
  EXPECT_EQ(Merge(order, true).outcome, "landed");
  ASSERT_EQ(Records().size(), 2u);
  EXPECT_NEAR(Records()[1].second, 5, 0.1);
}

TEST_F(RecordsMove, OneKilledInTheMiddleDoesNotAndItsRepetitionDoes) {
  const MissionOrder order = Ended("m1", "90", WriteTarget(""));
  ASSERT_TRUE(WriteFileAtomically(root_ / "kill", ""));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(Integrate(order, false) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  ExpectRecordStays();
  EXPECT_TRUE(Entries().empty());
  const auto finished = FinishInterruptedLanding(order);
  ASSERT_OK(finished);
  EXPECT_FALSE(*finished) << "nothing of it had reached main";
  ExpectRecordStays();
  std::filesystem::remove(root_ / "kill");
  EXPECT_EQ(Merge(order).outcome, "landed");
  EXPECT_EQ(Records().size(), 2u);
}

TEST_F(RecordsMove, OneKilledAfterMainMovedIsRecordedFromItsKeptReportsOnce) {
  const MissionOrder order = Ended("m1", "90", WriteTarget(""));
  MissionRow row = Log().FindMission("m1")->value();
  ASSERT_EQ(Merge(order).outcome, "landed");
  // The log as it was when main moved: no entry, no point, the merge commit in the mission's row.
  for (const char* end : {"", "-wal", "-shm"})
    std::filesystem::remove(workspace_.LogFile().string() + end);
  row.state = "merging";
  row.merge_commit = Tip();
  ASSERT_OK(Log().PutMission(row));
  SetRecord(main_, 100);
  const auto finished = FinishInterruptedLanding(order);
  ASSERT_OK(finished);
  EXPECT_TRUE(*finished);
  ASSERT_EQ(Records().size(), 2u);
  EXPECT_EQ(Records()[1].first, Tip());
  EXPECT_FALSE(FinishInterruptedLanding(order)) << "the mission is done";
  EXPECT_EQ(Records().size(), 2u);
}

// Main is 1.5 % slower than the record, as the ratchet may allow it.
class OlderRecord : public RecordsMove {
 protected:
  void SetUp() override {
    RecordsMove::SetUp();
    CommitTime("101.5");
  }
};

TEST_F(OlderRecord, AGainOverMainAloneLandsAndLeavesTheRecordWhereItIs) {
  EXPECT_EQ(Merge(Ended("m1", "100.8", WriteTarget(""))).outcome, "landed");
  ExpectRecordStays();
  const std::vector<Point> points = Log().Points("fake").value();
  EXPECT_NEAR(points.back().median_us, 100.8, 0.5)
      << "the bar's newest point is there all the same";
}

TEST_F(OlderRecord, AGainOverTheRecordTooMovesIt) {
  EXPECT_EQ(Merge(Ended("m1", "95", WriteTarget(""))).outcome, "landed");
  EXPECT_EQ(Records().size(), 2u);
}

TEST_F(OlderRecord, GainsOverASlowerMainDoNotErodeTheRecord) {
  CommitTime("107");
  const Integration merged = Merge(Ended("m1", "106", WriteTarget("")));
  EXPECT_EQ(merged.outcome, "ratchet_failed");
  EXPECT_NE(merged.text.find("against the record of " + main_.substr(0, 12)), std::string::npos)
      << merged.text;
  ExpectRecordStays();
}

TEST_F(OlderRecord, WhatStaysUndecidedAgainstTheRecordIsInconclusiveNotRejected) {
  const auto target = WriteTarget("ratchet_time = \"1ms\"\n");
  EXPECT_EQ(Merge(Ended("m1", "95", target)).outcome, "inconclusive");
  ExpectRecordStays();
  ASSERT_EQ(Entries().size(), 1u);
  EXPECT_EQ(Entries()[0].kind, EntryKind::kInconclusive);
}

}  // namespace
}  // namespace crucible
