// Toolchain profiles: what the file may say, what is refused before the wait, what the job and its
// row get. The compilers are scripts that answer --version.
#include "gpu_runner/toolchain.h"

#include <set>

#include "base/json.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

class Toolchains : public RunnerFixture {
 protected:
  void SetUp() override {
    RunnerFixture::SetUp();
    WriteProgram("cuda/bin/nvcc",
                 "echo 'nvcc: NVIDIA (R) Cuda compiler driver'\n"
                 "echo 'Cuda compilation tools, release 13.0, V13.0.48'\n");
    WriteProgram("gxx", "echo 'gxx (Fake) 12.2.0'\necho 'more'\n");
    environment_["CRUCIBLE_TOOLCHAIN_FILE"] = Path("toolchains.toml");
  }
  void WriteProgram(const std::string& name, const std::string& script) {
    ASSERT_TRUE(WriteFileAtomically(Path(name), "#!/bin/sh\n" + script));
    std::filesystem::permissions(Path(name), std::filesystem::perms::owner_all);
  }
  void WriteProfiles(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(Path("toolchains.toml"), text));
  }
  std::string Whole() const {
    return "[cuda13]\ncuda_root = \"" + Path("cuda") + "\"\nhost_compiler = \"" + Path("gxx") +
           "\"\ndriver_min = \"580.65\"\narch = \"sm_90a\"\nenv.NVCC_APPEND_FLAGS = \"-t 2\"\n";
  }
  nlohmann::json RowToolchain() const { return nlohmann::json::parse(Rows().at(0).toolchain); }
};

TEST_F(Toolchains, TheJobRunsUnderItsProfile) {
  WriteProfiles(Whole());
  const auto run = Run({"--device", "0", "--toolchain", "cuda13", "--", "sh", "-c",
                        "command -v nvcc; echo $CUDA_HOME $CXX $NVCC_CCBIN $CUDAARCHS; "
                        "echo $NVCC_APPEND_FLAGS; echo $LD_LIBRARY_PATH | cut -d: -f1"});
  EXPECT_EQ(run.out, Path("cuda/bin/nvcc") + "\n" + Path("cuda") + " " + Path("gxx") + " " +
                         Path("gxx") + " 90a\n-t 2\n" + Path("cuda/lib64") + "\n")
      << run.err;
}

TEST_F(Toolchains, TheRowSaysWhichToolsItWere) {
  WriteProfiles(Whole());
  Run({"--device", "0", "--toolchain", "cuda13", "--", "true"});
  const auto first = RowToolchain();
  EXPECT_EQ(first["profile"], "cuda13");
  EXPECT_EQ(first["nvcc"], "13.0.48");
  EXPECT_EQ(first["host_compiler"], "gxx (Fake) 12.2.0");
  EXPECT_EQ(first["driver"], "999.1");
  EXPECT_EQ(first["device"], "Fake GPU");
  EXPECT_EQ(first["compute_capability"], "9.0");
  EXPECT_EQ(first["arch"], "90a");
  EXPECT_EQ(first["fingerprint"].get<std::string>().size(), 16u);
  // Another name for the same tools has the same fingerprint; another compiler has not.
  WriteProfiles("[again]" + Whole().substr(Whole().find('\n')));
  Run({"--device", "0", "--toolchain", "again", "--", "true"});
  EXPECT_EQ(RowToolchain()["fingerprint"], first["fingerprint"]);
  WriteProgram("gxx", "echo 'gxx (Fake) 12.3.0'\n");
  Run({"--device", "0", "--toolchain", "again", "--", "true"});
  EXPECT_NE(RowToolchain()["fingerprint"], first["fingerprint"]);
}

TEST_F(Toolchains, ANestedCallHasTheSameProfileAndNoLongerPath) {
  WriteProfiles(Whole());
  const std::string count =
      "echo $CRUCIBLE_TOOLCHAIN; echo $PATH | tr : '\\n' | grep -cx " + Path("cuda/bin");
  const auto run = Run({"--device", "0", "--toolchain", "cuda13", "--", Program(), "--device", "0",
                        "--", "sh", "-c", count});
  EXPECT_EQ(run.out, "cuda13\n1\n") << run.err;
}

TEST_F(Toolchains, AnotherDriverOrKindOfGpuIsAnotherFingerprint) {
  WriteProfiles(Whole());
  std::set<std::string> fingerprints;
  // The last is as the first: equal tools, equal fingerprint.
  for (const char* gpu : {"driver 999\n", "driver 998\n", "driver 999\ncapability 90\ngpus 2\n"}) {
    SetNvml(gpu);
    EXPECT_EQ(Run({"--device", "0", "--toolchain", "cuda13", "--", "true"}).status.ShellCode(), 0);
    fingerprints.insert(RowToolchain()["fingerprint"].get<std::string>());
  }
  EXPECT_EQ(fingerprints.size(), 2u);
  SetNvml("capability 120\n");
  Run({"--device", "0", "--", "true"});
  const std::string with_12 = RowToolchain()["fingerprint"];
  SetNvml("capability 90\n");
  Run({"--device", "0", "--", "true"});
  EXPECT_NE(with_12, RowToolchain()["fingerprint"].get<std::string>());
}

TEST_F(Toolchains, WithoutAProfileTheRowHasAFingerprintToo) {
  Run({"--device", "cpu", "--", "true"});
  EXPECT_EQ(RowToolchain()["device"], "CPU");
  EXPECT_EQ(RowToolchain()["fingerprint"].get<std::string>().size(), 16u);
}

TEST_F(Toolchains, WhatIsWrongIsSaidBeforeTheWait) {
  Subprocess holder =
      Start({"--device", "cpu", "--", "sh", "-c", "touch " + Path("up") + "; sleep 60"});
  ASSERT_TRUE(Appears("up"));
  const auto refused = [&](const std::string& profiles, const std::string& says) {
    WriteProfiles(profiles);
    const auto run = Run({"--device", "cpu", "--toolchain", "t", "--", "touch", Path("ran")});
    EXPECT_EQ(run.status.ShellCode(), 2) << profiles << run.err;
    EXPECT_NE(run.err.find(says), std::string::npos) << profiles << run.err;
  };
  refused("[other]\n[second]\n", "it has other, second");
  refused("[t]\ncuda_rot = \"/x\"\n", "toolchains.toml:2: there is no key 'cuda_rot'");
  refused("[t]\ncuda_root = \"cuda\"\n", "is not absolute");
  refused("[t]\ncuda_root = 13\n", "'cuda_root' is not a text");
  refused("[t]\ncuda_root = \"" + Path("none") + "\"\n", "there is no " + Path("none/bin/nvcc"));
  refused("[t]\nhost_compiler = \"no-such-gxx\"\n", "no host compiler no-such-gxx");
  refused("[t]\nenv.CUDA_VISIBLE_DEVICES = \"0\"\n", "is set by gpu_run itself");
  refused("[t\n", "toolchains.toml:1");
  WriteProgram("cuda/bin/nvcc", "exit 3\n");
  refused("[t]\ncuda_root = \"" + Path("cuda") + "\"\n", "exit code 3");
  std::filesystem::remove(Path("toolchains.toml"));
  const auto run = Run({"--toolchain", "t", "--", "true"});
  EXPECT_NE(run.err.find("there is no such file"), std::string::npos) << run.err;
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(Toolchains, ADriverTooOldIsNamed) {
  WriteProfiles("[t]\ndriver_min = \"1000.0\"\n");
  const auto run = Run({"--device", "0", "--toolchain", "t", "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("the driver is 999.1, it needs 1000.0 or newer"), std::string::npos)
      << run.err;
}

TEST_F(Toolchains, AnArchitectureTheGpuHasNotIsNamed) {
  WriteProfiles("[t]\narch = \"100a\"\n");
  const auto run = Run({"--device", "0", "--toolchain", "t", "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("sm_100a"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("compute capability 9.0"), std::string::npos) << run.err;
}

TEST(ToolchainFit, FollowsTheRulesOfArchitectures) {
  const Device gpu{true, "GPU-1", 0, "a GPU"};
  const auto fits = [&](const std::string& arch, const std::string& capability) {
    Toolchain toolchain;
    toolchain.profile.arch = arch;
    return WhyUnfit(toolchain, gpu, "", capability).empty();
  };
  EXPECT_TRUE(fits("90", "9.0"));
  EXPECT_TRUE(fits("80", "8.6"));  // a later GPU of the same family
  EXPECT_FALSE(fits("86", "8.0"));
  EXPECT_FALSE(fits("80", "9.0"));
  EXPECT_TRUE(fits("100a", "10.0"));
  EXPECT_FALSE(fits("100a", "10.3"));
  EXPECT_TRUE(fits("90a", ""));  // the driver does not tell
}

TEST(Versions, AreComparedNumberByNumber) {
  EXPECT_EQ(CompareVersions("580.65.06", "580.65.6"), 0);
  EXPECT_EQ(CompareVersions("580.9", "580.65"), -1);
  EXPECT_EQ(CompareVersions("580.65", "580"), 1);
  EXPECT_EQ(CompareVersions("", "1"), -1);
}

}  // namespace
}  // namespace crucible
