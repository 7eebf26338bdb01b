// What the harness knows of a GPU's clock, through the driver's library that the tests bring.
#include "checks/eigh/gpu_watch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "gpu_runner/clocks.h"

namespace crucible::eigh {
namespace {

class GpuWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *MakeTemporaryDirectory("gpu-watch-test");
    ::setenv("CRUCIBLE_NVML_LIBRARY", CRUCIBLE_FAKE_NVML, 1);
    ::setenv("FAKE_NVML_STATE", (folder_ / "state").c_str(), 1);
    ::unsetenv("FAKE_NVML_CALLS");
    ::unsetenv(kSmClockVariable);
  }
  void TearDown() override {
    ::unsetenv(kSmClockVariable);
    (void)RemoveTree(folder_);
  }
  void Gpu(const std::string& state) { ASSERT_TRUE(WriteFileAtomically(folder_ / "state", state)); }
  std::filesystem::path folder_;
};

TEST_F(GpuWatchTest, ReadsTheSmClockAndSaysThatNobodyLockedIt) {
  Gpu("gpus 1\nmhz 1755\n");
  const GpuWatch watch;
  EXPECT_EQ(watch.Clock().mhz, 1755);
  EXPECT_EQ(GpuWatch::Stamp(watch.Clock()), "unlocked");
}

TEST_F(GpuWatchTest, AClockThatGpuRunLockedIsPinnedOnlyWhileItReadsSo) {
  ::setenv(kSmClockVariable, "1980", 1);
  Gpu("gpus 1\nmhz 1965\n");
  const GpuWatch watch;
  EXPECT_EQ(GpuWatch::Stamp(watch.Clock()), "pinned") << "within 2 %";
  Gpu("gpus 1\nmhz 1700\n");
  EXPECT_EQ(GpuWatch::Stamp(watch.Clock()), "unlocked") << "the lock was dropped";
  Gpu("gpus 1\nmhz 345\nreasons 1\n");
  EXPECT_EQ(GpuWatch::Stamp(watch.Clock()), "unknown") << "an idle GPU shows nothing";
  ::setenv(kSmClockVariable, "", 1);
  EXPECT_EQ(GpuWatch::Stamp({1980, false}), "unlocked");
}

TEST_F(GpuWatchTest, AGpuThatIsGoneHasNoClock) {
  Gpu("gpus 1\n");
  const GpuWatch watch;
  Gpu("gpus 1\nlost 1\n");
  EXPECT_EQ(watch.Clock().mhz, -1);
  EXPECT_EQ(GpuWatch::Stamp(watch.Clock()), "unknown");
  EXPECT_FALSE(watch.Throttled());
}

TEST_F(GpuWatchTest, WithoutADriverNothingIsKnown) {
  ::setenv("CRUCIBLE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1", 1);
  const GpuWatch watch;
  EXPECT_FALSE(watch.works());
  EXPECT_EQ(GpuWatch::Stamp(watch.Clock()), "unknown");
}

TEST_F(GpuWatchTest, HeatAndPowerBrakesHoldItBackAndIdlingDoesNot) {
  Gpu("gpus 1\nreasons 1\n");
  const GpuWatch watch;
  EXPECT_FALSE(watch.Throttled());
  for (const char* held : {"8", "32", "64", "128"}) {
    Gpu(std::string("gpus 1\nreasons ") + held + "\n");
    EXPECT_TRUE(watch.Throttled()) << held;
  }
}

}  // namespace
}  // namespace crucible::eigh
