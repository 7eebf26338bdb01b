// judge_fixture.h: a judge's request on the target "fake", whose arms are plans for a harness that
// makes its times up (tests/support/fake_harness).
#pragma once

#include <gtest/gtest.h>

#include "base/files.h"
#include "checks/judge/judge.h"

namespace crucible::judge {

inline constexpr char kFakeTarget[] = R"(name = "fake"
device = "cpu"
[paths]
editable = ["kernel/"]
[harness]
command = [")" CRUCIBLE_FAKE_HARNESS R"(", "{build}/plan"]
[[peer]]
name = "library"
command = [")" CRUCIBLE_FAKE_HARNESS R"(", "{source}/peer_plan"]
[[case]]
name = "small"
params = { n = 32 }
[[case]]
name = "large"
params = { n = 512 }
[[check]]
params = { kind = ["dense", "zero"], n = 8 }
level = "quick"
[[check]]
params = { kind = "wide", n = [3, 5] }
[limits]
request_limit = "2s"
)";

class Judge : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *MakeTemporaryDirectory("judge-test");
    auto target = ParseTarget(kFakeTarget, folder_ / "t.toml");
    ASSERT_TRUE(target) << target.error().text;
    request_.target = *target;
    request_.seed = 7;
    request_.baseline = MakeArm("main", "time_us 100\ntime_us.large 4000\n");
  }
  void TearDown() override { (void)RemoveTree(folder_); }

  Arm MakeArm(const std::string& name, const std::string& plan) {
    const std::filesystem::path build = folder_ / name;
    EXPECT_TRUE(WriteFileAtomically(build / "plan", plan));
    return {.name = name,
            .source = folder_,
            .build = build,
            .main = folder_,
            .source_hash = "hash of " + name};
  }

  Request With(const std::string& candidate_plan) {
    Request request = request_;
    request.candidate = MakeArm("m1", candidate_plan);
    return request;
  }

  std::filesystem::path folder_;
  Request request_;
};

}  // namespace crucible::judge
