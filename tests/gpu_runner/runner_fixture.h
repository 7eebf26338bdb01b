// The real gpu_run, with its own lock folder and history, so that it never meets a real queue.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "base/clock.h"
#include "base/files.h"
#include "base/process_identity.h"
#include "base/subprocess.h"
#include "gpu_runner/device_folder.h"
#include "gpu_runner/history.h"

namespace crucible {

class RunnerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTemporaryDirectory("gpu_runner_test");
    ASSERT_TRUE(folder) << folder.error().text;
    folder_ = *folder;
    environment_ = {{"CRUCIBLE_LOCK_DIR", (folder_ / "locks").string()},
                    {"CRUCIBLE_HOME", (folder_ / "home").string()},
                    {"CRUCIBLE_NVML_LIBRARY", std::string(CRUCIBLE_LIB_DIR) + "/libfake_nvml.so"},
                    {"FAKE_NVML_STATE", (folder_ / "nvml.state").string()},
                    {"FAKE_NVML_CALLS", (folder_ / "nvml.calls").string()}};
  }
  void TearDown() override {
    (void)KillByEnvironment("CRUCIBLE_LOCK_DIR", environment_["CRUCIBLE_LOCK_DIR"], 5000);
    (void)RemoveTree(folder_);
  }

  std::string Program() const { return std::string(CRUCIBLE_BIN_DIR) + "/gpu_run"; }

  SubprocessSpec Spec(std::vector<std::string> words) const {
    words.insert(words.begin(), Program());
    return {.argv = std::move(words),
            .environment = environment_,
            .unset = {"CRUCIBLE_GPU_TOKEN", "CRUCIBLE_JOB_NONCE", "CRUCIBLE_JOB_ID",
                      "CRUCIBLE_MISSION", "CRUCIBLE_MISSION_DIR"}};
  }
  Captured Run(std::vector<std::string> words) const {
    auto run = RunCaptured(Spec(std::move(words)), std::chrono::milliseconds(60'000));
    EXPECT_TRUE(run) << run.error().text;
    if (!run) return {};
    EXPECT_FALSE(run->timed_out) << run->err;
    return *run;
  }
  Subprocess Start(std::vector<std::string> words) const {
    SubprocessSpec spec = Spec(std::move(words));
    spec.out = spec.err = Stdio::kNull;
    auto started = Subprocess::Start(spec);
    CRUCIBLE_CHECK(started.has_value(), started ? "" : started.error().text);
    return std::move(*started);
  }

  // Waits for a state, not for a time; false only on a machine that does not get there in 30 s.
  static bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      SystemClock().SleepFor(std::chrono::milliseconds(10));
    }
    return false;
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  bool Appears(const std::string& name) const {
    return Eventually([&] { return Exists(name); });
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  DeviceFolder Folder(const std::string& device = "cpu") const {
    std::filesystem::create_directories(folder_ / "locks");
    return *DeviceFolder::Open(folder_ / "locks", device);
  }
  std::vector<JobRow> Rows() const {
    auto history = History::Open(folder_ / "home" / "log.sqlite");
    EXPECT_TRUE(history) << history.error().text;
    auto rows = history->Recent(10'000);
    EXPECT_TRUE(rows) << rows.error().text;
    return *rows;
  }
  void SetNvml(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / "nvml.state", text));
  }
  std::string NvmlCalls() const { return ReadFile(folder_ / "nvml.calls").value_or(""); }

  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
};

}  // namespace crucible
