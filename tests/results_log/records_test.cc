// What `crucible log records` says of a case.
#include "orchestrator/cli/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace crucible {
namespace {

using testing::HasSubstr;
using testing::Not;

Point At(const char* kind, const char* name, std::int64_t time_ms, double us, bool record,
         const char* key) {
  return {"eigh", "n32", kind, name, time_ms, us, std::nullopt, std::nullopt, record, key, "{}"};
}

Entry Measured(const char* key, double us) {
  Entry entry;
  entry.key = key;
  CaseResult result{.name = "n32", .role = "measure"};
  result.after_us = us;
  entry.cases = {result};
  return entry;
}

TEST(Records, TheBestIsTheFastestThatWasConfirmed) {
  const auto records =
      RecordsOf({At("main", "c1", 1, 100, true, "a"), At("main", "c2", 2, 60, true, "b"),
                 At("main", "c3", 3, 50, false, "c")},
                {});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["first"]["commit"], "c1");
  EXPECT_EQ(records[0]["best"]["commit"], "c2");
  EXPECT_EQ(records[0]["newest"]["commit"], "c2");
  EXPECT_EQ(records[0]["alone"]["entry"], "c") << "a time by itself is told, and moves nothing";
  EXPECT_TRUE(records[0]["beside_peers"].is_null());
}

TEST(Records, PeersAreComparedWithinTheNewestRunThatTimedThem) {
  const std::vector<Point> points = {
      At("main", "c1", 1, 100, true, "start"), At("peer", "eigen", 1, 80, false, "start"),
      At("peer", "openblas", 1, 90, false, "start"), At("main", "c2", 2, 30, true, "m1"),
      At("peer", "eigen", 3, 88, false, "end")};
  const auto records = RecordsOf(points, {Measured("start", 100), Measured("end", 40)});
  EXPECT_EQ(records[0]["beside_peers"]["ours_us"], 40);
  EXPECT_EQ(records[0]["beside_peers"]["peers"].size(), 1u);
  const std::string text = RecordsText(records);
  EXPECT_THAT(text, HasSubstr("in one run (end): ours 40.0 us, eigen 88.0 us: 2.20 times as fast"));
  EXPECT_THAT(text, Not(HasSubstr("openblas")));
}

TEST(Records, ASlowerKernelIsSaidToBeSlower) {
  const auto records = RecordsOf(
      {At("main", "c1", 1, 100, true, "start"), At("peer", "eigen", 1, 80, false, "start")},
      {Measured("start", 100)});
  EXPECT_THAT(RecordsText(records), HasSubstr("the best peer is 1.25 times as fast"));
}

TEST(Records, AnEmptyLogSaysSo) {
  EXPECT_THAT(RecordsText(RecordsOf({}, {})), HasSubstr("main was not measured in this log yet"));
}

}  // namespace
}  // namespace crucible
