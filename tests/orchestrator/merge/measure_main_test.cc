// A campaign's first measurement of main: a bar's start, and never its gain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checks/target.h"
#include "orchestrator/baseline.h"
#include "tests/orchestrator/merge/merge_fixture.h"

namespace crucible {
namespace {

class MeasureMainTest : public MergeFixture {
 protected:
  void Measure(const std::string& commit, const std::string& key) {
    auto target = LoadTarget(WriteTarget("screen = \"20ms\"\n"));
    ASSERT_OK(target);
    auto repository = Repository::Open(repo_, "main");
    ASSERT_OK(repository);
    Store log = Log();
    ASSERT_OK(MeasureMain({&workspace_, &*target, &*repository, ""}, &log, commit, key, key,
                          MeasureFor::kFirstPoints));
  }
  std::vector<Point> Points() { return Log().Points("fake").value(); }
};

TEST_F(MeasureMainTest, ALaterCampaignOnTheSameKernelAddsNoPoint) {
  Measure(main_, "one");
  ASSERT_EQ(Points().size(), 1u);
  EXPECT_TRUE(Points()[0].record);
  Write("README", "words\n");
  Measure(GitCommit("another commit, the same kernel"), "two");
  EXPECT_EQ(Points().size(), 1u);
  EXPECT_EQ(Entries().size(), 2u) << "what was measured is in the log all the same";
}

TEST_F(MeasureMainTest, AKernelThatAPersonCommittedIsShownAndIsNoRecord) {
  Measure(main_, "one");
  Measure(CommitTime("90"), "two");
  ASSERT_EQ(Points().size(), 2u);
  EXPECT_FALSE(Points()[1].record);
}

}  // namespace
}  // namespace crucible
