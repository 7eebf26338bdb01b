// Profiling: the text made of ncu's tables (ncu/*.csv: an H200's, of a small program), and gpu_run
// with a fake ncu on PATH.
#include <unistd.h>

#include <cstdlib>

#include "gpu_runner/broker.h"
#include "gpu_runner/profile_summary.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

std::string Pages() { return std::string(CRUCIBLE_SOURCE_DIR) + "/tests/gpu_runner/ncu"; }

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ProfileSummary, ReadsQuotedFields) {
  const auto rows = ParseCsv("a,\"b, \"\"c\"\"\",\r\n\n\"two\nlines\",\n\"\",x");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"a", "b, \"c\"", ""}));
  EXPECT_EQ(rows[1], (std::vector<std::string>{"two\nlines", ""}));
  EXPECT_EQ(rows[2], (std::vector<std::string>{"", "x"}));
  EXPECT_TRUE(ParseCsv("").empty());
}

TEST(ProfileSummary, ReadsAReport) {
  const auto kernels =
      ParseProfile(*ReadFile(Pages() + "/details.csv"), *ReadFile(Pages() + "/source.csv"));
  ASSERT_TRUE(kernels) << kernels.error().text;
  ASSERT_EQ(kernels->size(), 2u);
  const KernelProfile& gather = (*kernels)[0];
  EXPECT_TRUE(gather.name.starts_with("gather("));
  EXPECT_EQ(gather.launches, 1);
  EXPECT_DOUBLE_EQ(gather.total_us, 273.66);
  EXPECT_DOUBLE_EQ(*gather.bytes_per_s, 63.19e9);
  EXPECT_DOUBLE_EQ(*gather.dram_pct, 1.31);
  EXPECT_DOUBLE_EQ(*gather.memory_pct, 24.51)
      << "the section's own percentage, not the other's rate";
  EXPECT_DOUBLE_EQ(*gather.issued_per_cycle, 0.41);
  EXPECT_DOUBLE_EQ(*gather.registers, 17);
  ASSERT_FALSE(gather.lines.empty());
  EXPECT_EQ(gather.lines[0].place, "k.cu:15");
  EXPECT_EQ(gather.lines[0].samples, 33387);
  EXPECT_EQ(gather.lines[0].top_reason, "mio");
  const KernelProfile& saxpy = (*kernels)[1];
  EXPECT_EQ(saxpy.launches, 2);
  EXPECT_DOUBLE_EQ(saxpy.total_us, 14.43 + 14.56);
  EXPECT_DOUBLE_EQ(saxpy.longest_us, 14.56);
  EXPECT_DOUBLE_EQ(*saxpy.bytes_per_s, 2.37e12) << "of the longest launch";
  EXPECT_EQ(saxpy.lines[0].place, "k.cu:6");
  EXPECT_EQ(saxpy.lines[0].samples, 1377 + 1363) << "of both launches";

  const std::string text = RenderProfile(*kernels);
  EXPECT_TRUE(Has(text, "63.19 GB/s of 4824 GB/s peak (1.3 %)")) << text;
  EXPECT_TRUE(Has(text, "0.41 of 1 instruction a cycle")) << text;
  EXPECT_TRUE(Has(text, "95.9 % of 100 % possible, all that fit, 17 reg")) << text;
  std::vector<KernelProfile> limited = *kernels;
  limited[0].occupancy_max_pct = 50;
  limited[0].block_limits = {{"SM", 32}, {"Registers", 4}, {"Shared Mem", 4}};
  EXPECT_TRUE(Has(RenderProfile(limited),
                  "of 50 % possible, limited by Registers and Shared Mem (4 blocks"));
  EXPECT_TRUE(Has(text, "% at k.cu:15, most of it mio: t += s[k]")) << text;
  EXPECT_TRUE(Has(text, "(up to 6 %)")) << text;
  EXPECT_TRUE(Has(RenderProfile(*kernels, 1), "and 1 more in the report")) << text;
}

// As ncu 2025.3 wrote them of one kernel, on its two pages.
TEST(ProfileSummary, FindsAKernelsLinesHoweverItsNameIsSpelt) {
  const auto kernels = ParseProfile(
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"void unnamed>::apply_kernel<6, "
      "float>(unnamed>::Arguments<T2>)\",\"Duration\",\"us\","
      "\"60\"\n",
      "\"File Path\",\"/src/kernels/apply.cu\"\n"
      "\"Function Name\",\"void a::b::<unnamed>::apply_kernel<(int)6, float>"
      "(a::b::<unnamed>::Arguments<float>)\"\n"
      "\"Line No\",\"Source\",\"# Samples\",\"stall_long_sb\"\n"
      "\"12\",\"x = y[i];\",\"40\",\"30\"\n");
  ASSERT_TRUE(kernels) << kernels.error().text;
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ((*kernels)[0].name, "apply_kernel<6, float>(Arguments<T2>)");
  ASSERT_EQ((*kernels)[0].lines.size(), 1u);
  EXPECT_EQ((*kernels)[0].lines[0].place, "apply.cu:12");
}

TEST(ProfileSummary, TakesWhatThereIs) {
  const std::string head =
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  const auto kernels = ParseProfile("==PROF== hello\n" + head +
                                        "\"0\",\"k()\",\"Duration\",\"usecond\",\"1,500.5\"\n"
                                        "\"0\",\"k()\",\"DRAM Throughput\",\"%\",\"no data\"\n",
                                    "");
  ASSERT_TRUE(kernels) << kernels.error().text;
  EXPECT_DOUBLE_EQ(kernels->at(0).total_us, 1500.5);
  EXPECT_FALSE(kernels->at(0).dram_pct);
  EXPECT_TRUE(Has(RenderProfile(*kernels), "k(): 1 launch, 1500.5 us (100 %)"));
  EXPECT_TRUE(ParseProfile(head, "")->empty());
  EXPECT_EQ(ParseProfile("no table", "").error().kind, ErrorKind::kInternal);
  // Without line numbers the instructions themselves are the places.
  const auto by_instruction =
      ParseProfile(head + "\"0\",\"k()\",\"Duration\",\"ms\",\"1\"\n",
                   "\"Kernel Name\",\"k()\",\n\"Address\",\"Source\",\"# Samples\",\"stall_wait\"\n"
                   "\"0x10\",\"LDG R1\",\"5\",\"4\"\n");
  ASSERT_TRUE(by_instruction);
  EXPECT_EQ(by_instruction->at(0).lines.at(0).place, "0x10");
}

class Profile : public RunnerFixture {
 protected:
  void SetUp() override {
    RunnerFixture::SetUp();
    fs::create_directory(folder_ / "bin");
    fs::create_symlink(std::string(CRUCIBLE_SOURCE_DIR) + "/tests/support/fake_ncu.sh",
                       folder_ / "bin" / "ncu");
    environment_["PATH"] = Path("bin") + ":/usr/bin:/bin";
    environment_["FAKE_NCU_PAGES"] = Pages();
    environment_["FAKE_NCU_CALLS"] = Path("ncu.calls");
  }
};

TEST_F(Profile, KeepsTheReportAndItsSummary) {
  const auto run = Run({"--device", "0", "--profile", Path("r"), "--profile-launches", "3",
                        "--profile-kernel=^eigh", "--", "sh", "-c",
                        "echo $CUDA_VISIBLE_DEVICES $CRUCIBLE_PROFILED; exit 3"});
  EXPECT_EQ(run.status.ShellCode(), 3) << run.err;
  EXPECT_EQ(run.out, "GPU-fake-0 1\n") << "the command's own output only";
  EXPECT_TRUE(Exists("r.ncu-rep"));
  const std::string summary = ReadFile(Path("r.txt")).value_or("");
  EXPECT_TRUE(Has(summary, "profile of 3 launches of 2 kernels")) << summary;
  EXPECT_TRUE(Has(run.err, summary)) << run.err;
  EXPECT_TRUE(Has(run.err, "the clock is not locked")) << run.err;
  const std::string calls = ReadFile(Path("ncu.calls")).value_or("");
  for (const char* words :
       {"--clock-control none ", "--launch-count 3 ", "--kernel-name regex:^eigh "})
    EXPECT_TRUE(Has(calls, words)) << calls;
  ASSERT_EQ(Rows().size(), 1u) << "one job, and none for reading the report";
  const auto silent = Run({"--device", "0", "--profile", Path("s"), "--no-summary", "--", "true"});
  EXPECT_FALSE(Has(silent.err, "profile of ")) << silent.err;
  EXPECT_EQ(ReadFile(Path("s.txt")).value_or(""), summary);
}

TEST_F(Profile, ALockThatTheProfilerDroppedIsSetAgainAndRead) {
  auto run = Run({"--device", "0", "--clocks", "pin", "--profile", Path("r"), "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 0);
  EXPECT_EQ(NvmlCalls(), "lock 1980\ndropped\nlock 1980\n");
  EXPECT_TRUE(Has(run.err, "locked at 1980 MHz again and reads 1980 MHz\n")) << run.err;
  EXPECT_TRUE(Has(Rows().at(0).clocks, "\"after_repin\":{\"mhz\":1980")) << Rows().at(0).clocks;
  SetNvml("drop_pins 1\n");
  run = Run({"--device", "0", "--clocks", "pin", "--profile", Path("r"), "--", "true"});
  EXPECT_TRUE(Has(run.err, "reads 1200 MHz; it does not hold")) << run.err;
}

TEST_F(Profile, SaysWhyThereIsNone) {
  environment_["FAKE_NCU"] = "permission";
  auto run = Run({"--device", "cpu", "--profile", Path("r"), "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 1);
  EXPECT_TRUE(Has(run.err, "ERR_NVGPUCTRPERM")) << run.err;
  EXPECT_TRUE(Has(run.err, "NVreg_RestrictProfilingToAdminUsers=0")) << run.err;
  environment_["FAKE_NCU"] = "no_kernels";
  run = Run({"--device", "cpu", "--profile", Path("r"), "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_TRUE(Has(run.err, "launched no kernel")) << run.err;
  environment_["FAKE_NCU"] = "broken";
  run = Run({"--device", "cpu", "--profile", Path("r"), "--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_TRUE(Has(run.err, "could not read its report")) << run.err;
  environment_["FAKE_NCU"] = "";
  environment_["PATH"] = "/usr/bin:/bin";
  if (::access("/usr/bin/ncu", X_OK) == 0 || ::access("/usr/local/cuda/bin/ncu", X_OK) == 0)
    GTEST_SKIP() << "this machine has an ncu in its standard folders";
  run = Run({"--device", "cpu", "--profile", Path("r"), "--", "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 126);
  EXPECT_TRUE(Has(run.err, "ncu) is not on PATH")) << run.err;
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(Profile, AnOldReportIsNeverTakenForTheNewOne) {
  EXPECT_EQ(Run({"--device", "cpu", "--profile", Path("r"), "--", "true"}).status.ShellCode(), 0);
  environment_["FAKE_NCU"] = "no_kernels";
  EXPECT_EQ(Run({"--device", "cpu", "--profile", Path("r"), "--", "true"}).status.ShellCode(), 125);
  EXPECT_FALSE(Exists("r.ncu-rep"));
  EXPECT_FALSE(Exists("r.txt"));
}

TEST_F(Profile, WorksThroughABroker) {
  BrokerSpec spec;
  spec.socket = folder_ / "sockets" / "m1";
  spec.roots = {fs::canonical(folder_)};
  spec.gpu_run = Program();
  spec.environment = environment_;  // ncu is asked for outside, with the fake's variables
  auto broker = Broker::Start(spec);
  ASSERT_TRUE(broker) << broker.error().text;
  SubprocessSpec call = Spec({"--profile", "r", "--device", "cpu", "--", "touch", "ran"});
  call.environment["CRUCIBLE_BROKER"] = spec.socket.string();
  call.directory = folder_;
  const auto run = RunCaptured(call, std::chrono::seconds(60));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status.ShellCode(), 0) << run->err;
  EXPECT_TRUE(Exists("ran"));
  EXPECT_TRUE(Has(run->err, "profile of 3 launches")) << run->err;
  EXPECT_TRUE(Has(run->err, "the clock is not locked; it read")) << run->err;
}

}  // namespace
}  // namespace crucible
