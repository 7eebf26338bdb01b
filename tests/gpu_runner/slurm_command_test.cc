// Which srun a call becomes, and what a node says back: the parts of the Slurm backend that need no
// Slurm.
#include "gpu_runner/slurm_command.h"

#include <algorithm>

#include "gpu_runner/slurm_report.h"
#include "tests/gpu_runner/runner_fixture.h"

namespace crucible {
namespace {

Environment Holding(std::map<std::string, std::string> values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found != values.end() ? found->second : std::string();
  };
}

std::vector<std::string> Words(const std::vector<std::string>& options, SlurmPlace place,
                               const Environment& environment = Holding({})) {
  const auto parsed = ParseRunOptions(options);
  CRUCIBLE_CHECK(parsed.has_value(), parsed ? "" : parsed.error().text);
  auto words = SrunWords(*parsed, place, "j1", "/h/j1.json", "/bin/gpu_run", environment);
  CRUCIBLE_CHECK(words.has_value(), words ? "" : words.error().text);
  return *words;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(SlurmPlaces, AreToldFromTheEnvironment) {
  EXPECT_EQ(WhereInSlurm(Holding({})), SlurmPlace::kOutside);
  EXPECT_EQ(WhereInSlurm(Holding({{"SLURM_JOB_ID", "3"}})), SlurmPlace::kAllocation);
  EXPECT_EQ(WhereInSlurm(Holding({{"SLURM_JOB_ID", "3"}, {"SLURM_STEP_ID", "0"}})),
            SlurmPlace::kStep);
  EXPECT_EQ(WhereInSlurm(Holding(
                {{"SLURM_JOB_ID", "3"}, {"SLURM_STEP_ID", "0"}, {"CRUCIBLE_GPU_TOKEN", "x"}})),
            SlurmPlace::kOwnJob);
}

TEST(SrunWords, AskForOneGpuAndRunTheTimerOnTheNode) {
  const auto words = Words({"--limit", "90s", "--", "bench", "--gres=gpu:8"}, SlurmPlace::kOutside);
  EXPECT_EQ(words.front(), "srun");
  EXPECT_TRUE(Has(words, "--gres=gpu:1"));
  EXPECT_FALSE(Has(words, "--overlap"));
  EXPECT_TRUE(Has(words, "--time=4"));  // Slurm's minutes are the net below our seconds
  const std::vector<std::string> node = {"/bin/gpu_run", "--backend", "local",      "--job-id",
                                         "j1",           "--report",  "/h/j1.json", "--device",
                                         "any",          "--limit",   "90000ms"};
  EXPECT_NE(std::search(words.begin(), words.end(), node.begin(), node.end()), words.end());
  const std::vector<std::string> command(words.end() - 3, words.end());
  EXPECT_EQ(command, (std::vector<std::string>{"--", "bench", "--gres=gpu:8"}));
}

TEST(SrunWords, AProfilesNodeSaysHowTheClocksAreAfterwards) {
  EXPECT_TRUE(Has(Words({"--say-clocks", "--", "x"}, SlurmPlace::kOutside), "--say-clocks"));
  EXPECT_FALSE(Has(Words({"--", "x"}, SlurmPlace::kOutside), "--say-clocks"));
}

TEST(SrunWords, OverlapOnlyInsideAStep) {
  EXPECT_TRUE(Has(Words({"--", "x"}, SlurmPlace::kStep), "--overlap"));
  const auto allocation =
      Words({"--limit", "90s", "--priority", "low", "--", "x"}, SlurmPlace::kAllocation);
  EXPECT_FALSE(Has(allocation, "--overlap"));
  EXPECT_FALSE(Has(allocation, "--time=4"));  // the allocation has its own
  EXPECT_FALSE(Has(allocation, "--nice=1000"));
  EXPECT_TRUE(Has(Words({"--priority", "low", "--", "x"}, SlurmPlace::kOutside), "--nice=1000"));
}

TEST(SrunWords, TheCpuIsAWholeNode) {
  const auto words = Words({"--device", "cpu", "--", "x"}, SlurmPlace::kOutside);
  EXPECT_TRUE(Has(words, "--exclusive"));
  EXPECT_FALSE(Has(words, "--gres=gpu:1"));
}

TEST(SrunWords, TakeTheSitesOwnOptionsLast) {
  const auto words = Words({"--", "x"}, SlurmPlace::kOutside,
                           Holding({{"CRUCIBLE_SLURM_OPTIONS", " --partition=p  --gres=gpu:a:1"}}));
  EXPECT_TRUE(Has(words, "--partition=p"));
  EXPECT_GT(std::find(words.begin(), words.end(), "--gres=gpu:a:1"),
            std::find(words.begin(), words.end(), "--gres=gpu:1"));
}

TEST(SrunWords, RefuseAChosenGpu) {
  const auto options = ParseRunOptions({"--device", "1", "--", "x"});
  const auto words = SrunWords(*options, SlurmPlace::kOutside, "j1", "/r", "/g", Holding({}));
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().kind, ErrorKind::kUsage);
}

TEST(SlurmStep, RunsOnTheGpusItWasGiven) {
  EXPECT_EQ(DeviceOfStep("any", Holding({{"CUDA_VISIBLE_DEVICES", "2,3"}})), "2,3");
  EXPECT_EQ(DeviceOfStep("cpu", Holding({{"CUDA_VISIBLE_DEVICES", "2"}})), "cpu");
  EXPECT_EQ(DeviceOfStep("any", Holding({})), "any");
}

using SlurmReports = RunnerFixture;

TEST_F(SlurmReports, SayWhatTheNodeWrote) {
  const std::string file = Path("slurm/j1.json");
  ASSERT_TRUE(CreateReport(file));
  EXPECT_FALSE(ReadReport(file).arrived);  // empty
  JobRow row;
  row.id = "j1";
  row.device = "GPU-1";
  row.argv = {"a", "b c"};
  row.started_ms = 12;
  row.exit_code = 124;
  row.outcome = "run_limit";
  ASSERT_TRUE(WriteReport(file, row));
  const SlurmReport read = ReadReport(file);
  ASSERT_TRUE(read.arrived);
  EXPECT_EQ(read.row.argv, row.argv);
  EXPECT_EQ(read.row.started_ms, 12);
  EXPECT_EQ(read.row.ended_ms, std::nullopt);
  EXPECT_EQ(read.row.exit_code, 124);
  const std::string text = *ReadFile(file);
  ASSERT_TRUE(WriteFileAtomically(file, text.substr(0, text.size() / 2)));
  EXPECT_FALSE(ReadReport(file).arrived);
}

TEST_F(SlurmReports, AFolderThatTheNodeDoesNotSeeIsSaidAndTheJobDoesNotRun) {
  const auto run = Run({"--report", Path("none/j1.json"), "--job-id", "j1", "--device", "cpu", "--",
                        "touch", Path("ran")});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("CRUCIBLE_HOME"), std::string::npos) << run.err;
  EXPECT_FALSE(Exists("ran"));
}

TEST_F(SlurmReports, OnANodeTheJobIsReportedAndTheDatabaseLeftAlone) {
  ASSERT_TRUE(CreateReport(Path("j1.json")));
  const auto run = Run({"--report", Path("j1.json"), "--job-id", "j1", "--device", "cpu", "--",
                        "sh", "-c", "echo $CRUCIBLE_JOB_ID; exit 6"});
  EXPECT_EQ(run.out, "j1\n");
  EXPECT_EQ(run.status.ShellCode(), 6);
  const SlurmReport report = ReadReport(Path("j1.json"));
  EXPECT_EQ(report.row.exit_code, 6);
  EXPECT_EQ(report.row.outcome, "failed");
  EXPECT_FALSE(Exists("home/log.sqlite"));
}

TEST_F(SlurmReports, WithoutSlurmTheErrorSaysWhatToInstall) {
  environment_["PATH"] = folder_.string();
  environment_["CRUCIBLE_GPU_BACKEND"] = "slurm";
  const auto run = Run({"--", "true"});
  EXPECT_EQ(run.status.ShellCode(), 125);
  EXPECT_NE(run.err.find("slurm-client"), std::string::npos) << run.err;
  environment_["CRUCIBLE_GPU_BACKEND"] = "slrum";
  EXPECT_EQ(Run({"--", "true"}).status.ShellCode(), 2);
}

}  // namespace
}  // namespace crucible
