// What the page shows of fixed rows: widths, marks, verdicts, steps, counts, cost.
#include "results_log/dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace crucible {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kStart = 1'700'000'000'000;

class Dashboard : public ::testing::Test {
 protected:
  void SetUp() override {
    input_.target = "eigh";
    input_.now_ms = kStart + 10'000;
  }
  void Add(const std::string& name, const std::string& kind, const std::string& what, double us,
           bool record = false) {
    input_.points.push_back({"eigh", name, kind, what, kStart + 1000 * ++seconds_, us, std::nullopt,
                             std::nullopt, record, "key", "{}"});
  }
  void Mission(const std::string& id, const std::string& merge_outcome) {
    MissionRow row;
    row.id = id;
    row.merge_outcome = merge_outcome;
    input_.missions.push_back(row);
  }
  void Job(const std::string& mission, std::int64_t ran_ms) {
    LoggedJob job;
    job.mission = mission;
    job.started_ms = kStart;
    job.ended_ms = kStart + ran_ms;
    input_.jobs.push_back(job);
  }
  Entry& Reject(EntryKind kind, const std::string& mechanism, double ratio) {
    Entry entry;
    entry.id = static_cast<std::int64_t>(input_.entries.size()) + 1;
    entry.key = "key" + std::to_string(entry.id);
    entry.kind = kind;
    entry.mechanism = mechanism;
    entry.cases.push_back({.name = "n32", .ratio = ratio});
    input_.entries.push_back(entry);
    return input_.entries.back();
  }
  std::string Page() const { return RenderDashboard(input_); }
  // The row of the case's bar.
  std::string Bar(const std::string& name) const {
    const std::string page = Page();
    const std::size_t begin = page.find("<span class=\"name\">" + name + "</span>");
    return begin == std::string::npos ? "no bar of " + name
                                      : page.substr(begin, page.find("</div>", begin) - begin);
  }

  DashboardInput input_;
  int seconds_ = 0;
};

TEST_F(Dashboard, ABarIsAsWideAsItsTimeOnItsFirst) {
  Add("n32", "main", "c1", 100, true);
  Add("n32", "main", "c2", 65, true);
  // The scale ends at 1.3 times the first: the track is 1 / 1.3 of it, the bar 0.65 / 1.3.
  EXPECT_THAT(Bar("n32"), HasSubstr("class=\"track\" x=\"0\" y=\"3\" width=\"76.92%\""));
  EXPECT_THAT(Bar("n32"), HasSubstr("class=\"bar moved\" x=\"0\" y=\"3\" width=\"50.00%\""));
  EXPECT_THAT(Bar("n32"), HasSubstr("1.54x faster"));
  EXPECT_THAT(Bar("n32"), HasSubstr("100 us → 65.0 us"));
  EXPECT_THAT(Page(), HasSubstr("<b class=\"moved\">1.54x faster</b>"));
}

TEST_F(Dashboard, ACaseWithTwoStartPointsAndNothingLandedHasNotMoved) {
  Add("n32", "main", "c1", 100, true);
  Add("n32", "main", "c1", 72);  // another campaign began on the same main
  EXPECT_THAT(Bar("n32"), HasSubstr("not moved"));
  EXPECT_THAT(Bar("n32"), HasSubstr("main alone since: 72.0 us"));
  const std::string page = Page();
  EXPECT_THAT(page, Not(HasSubstr("x faster</b>")));
  EXPECT_THAT(page, HasSubstr("geomean 1.000"));
  EXPECT_THAT(page, Not(HasSubstr("geomean 0.720")));
}

TEST_F(Dashboard, FloorAndPeersStandWhereTheirTimesAre) {
  Add("n32", "main", "c1", 100, true);
  Add("n32", "floor", "flops", 26);
  Add("n32", "peer", "eigen", 52);
  Add("n32", "peer", "mkl & co", 900);
  EXPECT_THAT(Bar("n32"), HasSubstr("<line class=\"floor\" x1=\"20.00%\" x2=\"20.00%\""));
  EXPECT_THAT(Bar("n32"), HasSubstr("floor: 26.0 us, flops"));
  EXPECT_THAT(Bar("n32"), HasSubstr("<line class=\"peer\" x1=\"40.00%\" x2=\"40.00%\""));
  EXPECT_THAT(Bar("n32"), HasSubstr("<line class=\"peer\" x1=\"100.00%\" x2=\"100.00%\""))
      << "beyond the scale it stands at its end";
  EXPECT_THAT(Bar("n32"), HasSubstr("mkl &amp; co: 900 us"));
}

TEST_F(Dashboard, TheGeometricMeanStepsWithEachRecordAndNotBefore) {
  Add("n32", "main", "c1", 100, true);
  Add("n64", "main", "c1", 400, true);
  Add("n32", "main", "c2", 81, true);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("c1, geomean 1.000 of the first"));
  EXPECT_THAT(page, HasSubstr("c2, geomean 0.900 of the first"));
  EXPECT_THAT(page, HasSubstr("1.11x faster"));
  EXPECT_THAT(page, HasSubstr("<b class=\"still\">n64</b>"));
}

TEST_F(Dashboard, RejectionsAreCountedByMechanismAndReplacedOnesAreNot) {
  Reject(EntryKind::kLoss, "panel width", 1.08);
  Reject(EntryKind::kNull, "panel width", 1.002);
  Reject(EntryKind::kLoss, "unroll", 1.5);
  Reject(EntryKind::kWin, "unroll", 0.9).supersedes = "key3";
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("<td class=\"long\" data-of=\"mechanism\">panel width</td>"
                              "<td class=\"num\" data-of=\"count\">2</td>"
                              "<td class=\"short\" data-of=\"kinds\">1 loss, 1 null</td>"
                              "<td class=\"num\" data-of=\"worst\">+8.0 % n32</td>"));
  EXPECT_THAT(page, Not(HasSubstr(">unroll</td><td class=\"num\" data-of=\"count\">1</td>")));
  EXPECT_THAT(page, HasSubstr("<b class=\"\">2</b><span class=\"dim\">rejections among 4 entries"));
}

TEST_F(Dashboard, ThereIsNoCostWithNothingAccepted) {
  Add("n32", "main", "c1", 100, true);
  Add("n32", "main", "c1", 60);
  Mission("m1", "not_faster");
  Job("m1", 5000);
  EXPECT_THAT(Page(), HasSubstr("cost per accepted us: nothing gained yet"));
}

TEST_F(Dashboard, TheCostIsOfTheTargetsOwnMissions) {
  Add("n32", "main", "c1", 100, true);
  Add("n32", "main", "c2", 90, true);
  Mission("m1", "landed");
  Job("m1", 5000);
  Job("m7", 3'600'000);  // of another target
  EXPECT_THAT(Page(), HasSubstr("<b class=\"\">500 ms</b><span class=\"dim\">device time of "
                                "missions per accepted us"));
}

TEST_F(Dashboard, ALongNameBreaksAtItsJointsAndIsCountedInATileTooNarrowForIt) {
  Add("n1024_lapack_geometric", "main", "c1", 100, true);
  Add("n512_glued_wilkinson", "main", "c1", 100, true);
  EXPECT_THAT(Bar("n1024_<wbr>lapack_<wbr>geometric"), HasSubstr("not moved"));
  EXPECT_THAT(Page(), HasSubstr("<b class=\"still\">2 of 2</b>"));
}

TEST_F(Dashboard, TheChartsLettersDoNotShrinkWithThePage) {
  Add("n32", "main", "c1", 100, true);
  Add("n32", "main", "c2", 50, true);
  const std::string page = Page();
  EXPECT_THAT(page, Not(HasSubstr("viewBox")));
  EXPECT_THAT(page, HasSubstr("<line class=\"step\" x1=\"0.00%\""));
}

TEST_F(Dashboard, AJobsCommandIsShownAsWordsAndOneThingInTheSingular) {
  Job("m1", 5000);
  input_.jobs.back().argv = R"(["sh","-c","sleep 1","a&b"])";
  Mission("m1", "landed");
  Reject(EntryKind::kLoss, "unroll", 1.5);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("sh -c &#39;sleep 1&#39; a&amp;b"));
  EXPECT_THAT(page, HasSubstr("mission landed"));
  EXPECT_THAT(page, HasSubstr("rejection among 1 entry"));
}

TEST_F(Dashboard, OfAnEmptyLogIsWhole) {
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("Nothing was measured yet."));
  EXPECT_THAT(page, HasSubstr("</body></html>"));
}

}  // namespace
}  // namespace crucible
