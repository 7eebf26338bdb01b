// A bar moves by records alone; everything else stands beside it.
#include "results_log/bars.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

Point At(const char* kind, const char* name, std::int64_t time_ms, double us, bool record = false) {
  return {"eigh", "n32", kind, name, time_ms, us, std::nullopt, std::nullopt, record, "", "{}"};
}

TEST(Bars, LaterMeasurementsOfMainByItselfMoveNothing) {
  // Three campaigns began, a day apart, on a machine that got faster; nothing was merged.
  const std::vector<Point> points = {At("main", "c1", 1, 100, true), At("main", "c1", 2, 72),
                                     At("main", "c1", 3, 70)};
  const auto bars = BarsOf(points);
  ASSERT_EQ(bars.size(), 1u);
  EXPECT_EQ(bars[0].Ratio(), 1);
  EXPECT_EQ(bars[0].record, &points[0]);
  EXPECT_EQ(bars[0].alone, &points[2]);
}

TEST(Bars, TheFastestRecordIsTheRecordAndTheLastIsTheNewest) {
  const std::vector<Point> points = {At("main", "c1", 1, 100, true), At("main", "c2", 2, 60, true),
                                     At("main", "c2", 3, 55), At("main", "c3", 4, 61, true)};
  const auto bars = BarsOf(points);
  EXPECT_EQ(bars[0].first, &points[0]);
  EXPECT_EQ(bars[0].record, &points[1]);
  EXPECT_EQ(bars[0].newest, &points[3]);
  EXPECT_EQ(bars[0].alone, nullptr) << "it was before the newest record";
}

TEST(Bars, WithoutARecordTheNewestTimeIsAllThereIs) {
  const std::vector<Point> points = {At("main", "c1", 1, 100), At("main", "c2", 2, 90)};
  const auto bars = BarsOf(points);
  EXPECT_EQ(bars[0].first, &points[1]);
  EXPECT_EQ(bars[0].newest, &points[1]);
  EXPECT_EQ(bars[0].record, nullptr);
}

TEST(Bars, KeepTheNewestOfEachPeerAndOfTheFloor) {
  const std::vector<Point> points = {At("peer", "eigen", 1, 80),    At("floor", "flops", 1, 9),
                                     At("peer", "openblas", 1, 90), At("peer", "eigen", 2, 81),
                                     At("floor", "bytes", 2, 12),   At("main", "broken", 3, 0)};
  const auto bars = BarsOf(points);
  EXPECT_EQ(bars[0].floor, &points[4]);
  EXPECT_EQ(bars[0].peers, (std::vector<const Point*>{&points[2], &points[3]}));
  EXPECT_EQ(bars[0].first, nullptr) << "a time of nothing is none";
}

TEST(Bars, TargetsDoNotMix) {
  std::vector<Point> points = {At("main", "c1", 1, 100, true), At("main", "c1", 1, 5, true)};
  points[1].target = "matmul";
  const auto bars = BarsOf(points);
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_EQ(bars[1].target, "matmul");
  EXPECT_EQ(bars[1].record->median_us, 5);
}

}  // namespace
}  // namespace crucible
