// A free GPU, known from the driver's files, does not make a job wait for NVML.
#include "gpu_runner/driver_files.h"

#include <cstdlib>

#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

class DriverFiles : public RunnerFixture {
 protected:
  void SetUp() override {
    RunnerFixture::SetUp();
    std::filesystem::create_directories(InUse());
    environment_["CRUCIBLE_DRIVER_FILES"] = Path("driver");
    ::setenv("CRUCIBLE_DRIVER_FILES", Path("driver").c_str(), 1);
    AddGpu("0000:41:00.0", "GPU-fake-0");
  }
  void TearDown() override {
    ::unsetenv("CRUCIBLE_DRIVER_FILES");
    RunnerFixture::TearDown();
  }

  std::filesystem::path Root() const { return folder_ / "driver"; }
  std::filesystem::path InUse() const { return Root() / "proc/driver/nvidia-uvm/gpus"; }
  std::filesystem::path Configuration(const std::string& bus) const {
    return Root() / "sys/bus/pci/devices" / bus / "config";
  }
  void Write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(WriteFileAtomically(file, text));
  }
  void AddGpu(const std::string& bus, const std::string& uuid, const std::string& excluded = "No",
              const std::string& minor = "0") {
    Write(Root() / "proc/driver/nvidia/gpus" / bus / "information",
          "Model: \t\t Fake GPU\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " + minor +
              "\nGPU Excluded:\t " + excluded + "\n");
    Write(Configuration(bus), "\xde\x10");
    Write(Root() / "dev/nvidia0", "");
  }
  void NoNvml() { environment_["CRUCIBLE_NVML_LIBRARY"] = Path("none.so"); }
};

TEST_F(DriverFiles, NameTheGpusInTheOrderOfTheirBuses) {
  AddGpu("0000:01:00.0", "GPU-fake-9");
  AddGpu("0000:21:00.0", "GPU-fake-5", "Yes");
  const std::vector<Device> gpus = GpusInDriverFiles();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].id, "GPU-fake-9");
  EXPECT_EQ(gpus[0].index, 0);
  EXPECT_EQ(gpus[1].id, "GPU-fake-0");
  EXPECT_EQ(gpus[1].index, 1);
  EXPECT_EQ(gpus[1].name, "Fake GPU");
}

TEST_F(DriverFiles, LeaveAllToNvmlWhenOneGpuCannotBeTold) {
  AddGpu("0000:01:00.0", "GPU-" + std::string(8, '?'));
  EXPECT_TRUE(GpusInDriverFiles().empty());
}

TEST_F(DriverFiles, LeaveOutAGpuThatThisProcessMayNotOpen) {
  AddGpu("0000:01:00.0", "GPU-of-another-job", "No", "7");
  const std::vector<Device> gpus = GpusInDriverFiles();
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].id, "GPU-fake-0");
  EXPECT_EQ(gpus[0].index, 0);
}

TEST_F(DriverFiles, AGpuThatFellOffItsBusIsRefusedAsEver) {
  Write(Configuration("0000:41:00.0"), "\xff\xff");
  EXPECT_TRUE(GpusInDriverFiles().empty());
  SetNvml("lost 1\n");
  const auto run = Run({"--device", "0", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(DriverFiles, TellTheDriversVersion) {
  EXPECT_EQ(DriverVersionInFiles(), "");
  Write(Root() / "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  999.1  Release Build\n");
  EXPECT_EQ(DriverVersionInFiles(), "999.1");
}

TEST_F(DriverFiles, AJobHasTheSameFingerprintWhetherNvmlWasAskedOrNot) {
  Write(Root() / "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  999.1  Release\n");
  Run({"--device", "0", "--clocks", "off", "--", "true"});
  std::filesystem::create_directories(InUse() / "1");
  Run({"--device", "0", "--", "true"});
  const auto fingerprint = [](const std::string& json) {
    const std::size_t at = json.find("\"fingerprint\":");
    return at == std::string::npos ? "none" : json.substr(at, 32);
  };
  ASSERT_EQ(Rows().size(), 2u);
  EXPECT_NE(Rows().at(0).toolchain.find("999.1"), std::string::npos) << Rows().at(0).toolchain;
  EXPECT_EQ(fingerprint(Rows().at(0).toolchain), fingerprint(Rows().at(1).toolchain));
}

TEST_F(DriverFiles, SayNothingWhereThereAreNone) {
  EXPECT_TRUE(NobodyUsesCuda());
  ::setenv("CRUCIBLE_DRIVER_FILES", Path("elsewhere").c_str(), 1);
  EXPECT_FALSE(NobodyUsesCuda()) << "nothing is known, so NVML has to be asked";
  EXPECT_TRUE(GpusInDriverFiles().empty());
}

TEST_F(DriverFiles, AJobOnAFreeGpuStartsWithoutNvml) {
  NoNvml();
  const auto run =
      Run({"--device", "0", "--clocks", "off", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(run.status.ShellCode(), 0);
  EXPECT_EQ(run.out, "GPU-fake-0\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(Rows().at(0).device, "GPU-fake-0");
}

TEST_F(DriverFiles, ALongerJobsClocksAreRecorded) {
  Run({"--device", "0", "--", "sleep", "0.4"});
  EXPECT_NE(Rows().at(0).clocks.find("\"mhz_max\":1200"), std::string::npos) << Rows().at(0).clocks;
}

TEST_F(DriverFiles, ALongerJobWhoseClocksCannotBeReadIsToldSoAndRuns) {
  NoNvml();
  const auto run = Run({"--device", "0", "--", "sh", "-c", "sleep 0.4; echo done"});
  EXPECT_EQ(run.status.ShellCode(), 0);
  EXPECT_EQ(run.out, "done\n");
  EXPECT_NE(run.err.find("the clocks are not recorded"), std::string::npos) << run.err;
}

TEST_F(DriverFiles, WhereSomebodyComputesNvmlIsAskedWho) {
  std::filesystem::create_directories(InUse() / "1");
  EXPECT_EQ(Run({"--device", "0", "--", "true"}).status.ShellCode(), 0) << "on another GPU";
  SetNvml("foreign 1\n");
  const auto run = Run({"--device", "0", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("pid 1 ("), std::string::npos) << run.err;
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(DriverFiles, AGpuThatNvmlDoesNotListIsRefusedOnceItIsAsked) {
  std::filesystem::create_directories(InUse() / "1");
  AddGpu("0000:41:00.0", "GPU-gone");
  const auto run = Run({"--device", "0", "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("NVML does not list it"), std::string::npos) << run.err;
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(DriverFiles, APinIsSetBeforeTheJobAsEver) {
  Run({"--device", "0", "--clocks", "pin", "--", "true"});
  EXPECT_EQ(NvmlCalls(), "lock 1980\nlock 1980\n");
}

}  // namespace
}  // namespace crucible
