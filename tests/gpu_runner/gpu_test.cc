// GPUs, through a fake NVML on the real loading path: choice, pins, refusals, a GPU that vanishes.
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

class Gpu : public RunnerFixture {};

std::string Lines(const std::string& text, const std::string& line) {
  std::string found;
  for (std::size_t at = 0; (at = text.find(line + "\n", at)) != std::string::npos; ++at)
    found += "x";
  return found;
}

TEST_F(Gpu, IsNamedByUuidToTheJob) {
  SetNvml("gpus 2\n");
  const auto run =
      Run({"--device", "1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"});
  EXPECT_EQ(run.out, "GPU-fake-1 PCI_BUS_ID\n") << run.err;
  EXPECT_EQ(Rows().at(0).device, "GPU-fake-1");
  EXPECT_EQ(Run({"--device", "7", "--", "true"}).status.ShellCode(), 2);
  EXPECT_EQ(Run({"--device", "GPU-fake-", "--", "true"}).status.ShellCode(), 2);
}

TEST_F(Gpu, AnyTakesTheOneThatIsFree) {
  SetNvml("gpus 2\n");
  Subprocess holder =
      Start({"--device", "0", "--", "sh", "-c", "touch " + Path("up") + "; sleep 60"});
  ASSERT_TRUE(Appears("up"));
  const auto run = Run(
      {"--device", "any", "--queue-limit", "20s", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(run.out, "GPU-fake-1\n") << run.err;
}

TEST_F(Gpu, ASecondDeviceIsTakenOnlyInAscendingOrder) {
  SetNvml("gpus 2\n");
  EXPECT_EQ(
      Run({"--device", "0", "--", Program(), "--device", "1", "--", "true"}).status.ShellCode(), 0);
  const auto run = Run({"--device", "1", "--", Program(), "--device", "0", "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("ascending"), std::string::npos) << run.err;
}

TEST_F(Gpu, ObserveNeverSetsAClock) {
  EXPECT_EQ(Run({"--device", "0", "--", "true"}).status.ShellCode(), 0);
  EXPECT_EQ(NvmlCalls(), "");
}

TEST_F(Gpu, APinDroppedByTheJobIsSetAgainAndSeen) {
  const auto run = Run({"--device", "0", "--clocks", "pin", "--", "sh", "-c",
                        "echo dropped >>$FAKE_NVML_CALLS; sleep 0.4"});
  EXPECT_EQ(run.status.ShellCode(), 0) << run.err;
  EXPECT_EQ(NvmlCalls(), "lock 1980\ndropped\nlock 1980\n");
  EXPECT_EQ(Rows().at(0).drift, "drifted");
}

TEST_F(Gpu, APinIsMarkedBeforeItIsSetSoThatAKillInBetweenLosesNoLock) {
  // The mark cannot be written: then nothing may be locked either.
  std::filesystem::create_directories(folder_ / "locks" / "GPU-fake-0" / "pinned_by_gpu_run");
  const auto run = Run({"--device", "0", "--clocks", "pin", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_EQ(NvmlCalls(), "");
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(Gpu, TheJobIsToldTheClockThatWasLockedForIt) {
  const auto told = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--", "sh", "-c", "echo [$CRUCIBLE_SM_CLOCK_MHZ]"});
    return Run(words).out;
  };
  environment_["CRUCIBLE_SM_CLOCK_MHZ"] = "999";  // of somebody else's job
  EXPECT_EQ(told({"--device", "0", "--clocks", "pin"}), "[1980]\n");
  EXPECT_EQ(told({"--device", "0", "--clocks", "observe"}), "[]\n");
  SetNvml("permission 0\n");
  EXPECT_EQ(told({"--device", "0", "--clocks", "pin"}), "[]\n");
}

TEST_F(Gpu, ALockThatCannotBeSetAgainIsSaidAndIsNoLostGpu) {
  const auto run = Run({"--device", "0", "--clocks", "pin", "--", "sh", "-c",
                        "echo permission 0 >$FAKE_NVML_STATE"});
  EXPECT_EQ(run.status.ShellCode(), 0);
  EXPECT_EQ(run.err.find("stopped answering"), std::string::npos) << run.err;
  EXPECT_NE(Rows().at(0).drift, "gone");
  EXPECT_NE(Rows().at(0).clocks.find("\"clock\":\"unlocked\""), std::string::npos)
      << Rows().at(0).clocks;
}

TEST_F(Gpu, ThePinIsSetAgainHoweverTheJobEnds) {
  const std::vector<std::vector<std::string>> jobs = {{"--", "false"},
                                                      {"--", "sh", "-c", "kill -9 $$"},
                                                      {"--limit", "100ms", "--", "sleep", "60"},
                                                      {"--", "/no/such/command"}};
  for (const std::vector<std::string>& job : jobs) {
    std::filesystem::remove(folder_ / "nvml.calls");
    std::vector<std::string> words = {"--device", "0", "--clocks", "pin"};
    words.insert(words.end(), job.begin(), job.end());
    EXPECT_NE(Run(words).status.ShellCode(), 0);
    EXPECT_EQ(NvmlCalls(), "lock 1980\nlock 1980\n") << job.back();
  }
}

TEST_F(Gpu, ANestedCallNeverPins) {
  Run({"--device", "0", "--clocks", "pin", "--", Program(), "--device", "0", "--clocks", "pin",
       "--", "true"});
  EXPECT_EQ(Lines(NvmlCalls(), "lock 1980"), "xx");
}

TEST_F(Gpu, ARefusedPinIsAWarningAndAStamp) {
  SetNvml("permission 0\n");
  const auto run = Run({"--device", "0", "--clocks", "pin", "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 0);
  EXPECT_NE(run.err.find("clock=unlocked"), std::string::npos) << run.err;
  EXPECT_EQ(Rows().at(0).drift, "unlocked");
  EXPECT_NE(Rows().at(0).clocks.find("\"clock\":\"unlocked\""), std::string::npos);
  EXPECT_FALSE(Exists("locks/GPU-fake-0/pinned_by_gpu_run")) << "nothing to give back";
}

TEST_F(Gpu, AForeignProcessIsNamedAndTheJobRefused) {
  SetNvml("foreign 1\n");
  const auto run = Run({"--device", "0", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("pid 1 ("), std::string::npos) << run.err;
  EXPECT_FALSE(Exists("ran"));
  EXPECT_FALSE(Folder("GPU-fake-0").IsLocked());
  EXPECT_EQ(Run({"--device", "0", "--share", "--", "true"}).status.ShellCode(), 0);
}

TEST_F(Gpu, AnyTriesAnotherWhenTheFirstIsInUseOutsideTheQueue) {
  SetNvml("gpus 3\nforeign.GPU-fake-0 1\nforeign.GPU-fake-1 1\n");
  const auto run = Run({"--device", "any", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(run.status.ShellCode(), 0) << run.err;
  EXPECT_EQ(run.out, "GPU-fake-2\n");
  EXPECT_NE(run.err.find("trying another device"), std::string::npos) << run.err;
  ASSERT_EQ(Rows().size(), 1u);
  EXPECT_EQ(Rows().at(0).device, "GPU-fake-2");
  EXPECT_FALSE(Folder("GPU-fake-0").IsLocked());
  SetNvml("gpus 2\nforeign 1\n");
  EXPECT_EQ(Run({"--device", "any", "--", "touch", Path("ran")}).status.ShellCode(), 125);
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(Gpu, ThrottlingIsRecorded) {
  SetNvml("reasons 64\n");
  Run({"--device", "0", "--", "sleep", "0.3"});
  EXPECT_EQ(Rows().at(0).drift, "throttled");
  EXPECT_NE(Rows().at(0).clocks.find("0x40"), std::string::npos) << Rows().at(0).clocks;
}

TEST_F(Gpu, ThatVanishesDuringAJobIsSaidAndTheNextIsRefused) {
  const auto run = Run({"--device", "0", "--", "sh", "-c", "echo lost 1 >$FAKE_NVML_STATE"});
  EXPECT_EQ(run.status.ShellCode(), 0);
  EXPECT_NE(run.err.find("stopped answering"), std::string::npos) << run.err;
  EXPECT_EQ(Rows().at(0).drift, "gone");
  EXPECT_EQ(Run({"--device", "0", "--", "true"}).status.ShellCode(), 125);
}

TEST_F(Gpu, NoDriverIsAClearError) {
  environment_["CRUCIBLE_NVML_LIBRARY"] = Path("none.so");
  EXPECT_EQ(Run({"--", "true"}).status.ShellCode(), 0);  // falls back to the CPU
  const auto run = Run({"--device", "any", "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("--device cpu"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace crucible
